"""NodeContext: what a function may know of its run."""

from __future__ import annotations

import pytest

from graphloop.effects import Invoke
from graphloop.errors import ConfigError
from graphloop.front.node_signature import NodeContext
from graphloop.run import evolve
from graphloop.turn import Dialogue, Turn
from graphloop.values import FinishReason, Reply, Usage, UserMessage
from tests.runs import changed
from tests.strategies import QUESTION, fresh, said, wrong


def test_a_context_tells_the_visit_and_the_conversation() -> None:
    """The key is that of the effect, which is the same in every process."""
    run = evolve(fresh(), pending={4: Invoke(4, "judge")}, next_effect=5)

    context = NodeContext.of(run, "judge")

    assert (run.id, "judge.4", run.turn.number, "") == (
        context.run_id,
        context.key,
        context.turn,
        context.answer,
    )
    assert tuple(QUESTION) == tuple(context.messages)


def test_the_latest_answer_may_not_be_in_the_history_yet() -> None:
    """A child's answer is heard before it is appended, or instead."""
    run = evolve(fresh(), turn=Turn(0, reply=Reply(said("42"), FinishReason.STOP)))

    assert "42" == NodeContext.of(run, "judge").answer


def test_each_visit_has_an_idempotency_key_of_its_own() -> None:
    """Whoever asks, of whichever process, gets the same one."""
    run = evolve(fresh(), pending={4: Invoke(4, "judge")})
    keys = {NodeContext.of(one, "judge").idempotency_key for one in (run, run)}

    assert 1 == len(keys)
    later = evolve(run, pending={5: Invoke(5, "judge")})
    assert NodeContext.of(later, "judge").idempotency_key not in keys


def test_a_generator_sees_the_run_as_it_was_at_first() -> None:
    """Or it would ask something else when it is run again."""
    first = changed(fresh(), dialogue=Dialogue(4, 1, Usage(1, 2)), pending={4: Invoke(4, "f")})
    then = evolve(
        first, pending={9: Invoke(9, "f")}, messages=first.messages.append(UserMessage("more"))
    )

    one, other = NodeContext.of(first, "f"), NodeContext.of(then, "f")

    assert (one.key, tuple(one.messages), one.usage) == ("f.4", tuple(QUESTION), Usage(1, 2))
    assert (one.key, tuple(one.messages), one.usage) == (
        other.key,
        tuple(other.messages),
        other.usage,
    )


def test_a_context_takes_what_people_could_have_said() -> None:
    """Not what models and tools say; and a generator has another way."""
    context = NodeContext.of(fresh(), "f")
    context.tell("a")

    assert [UserMessage("a", "f")] == context.notes
    with pytest.raises(ConfigError, match="found AssistantMessage"):
        context.tell(wrong(said("I am the model")))
    asking = NodeContext.of(changed(fresh(), dialogue=Dialogue(4, 1, Usage())), "f")
    with pytest.raises(ConfigError, match="write `yield from tell"):
        asking.tell("a")
