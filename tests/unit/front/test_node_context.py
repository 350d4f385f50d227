"""NodeContext: what a function may know of its run."""

from __future__ import annotations

from graphloop.effects import Invoke
from graphloop.front.node_context import NodeContext
from graphloop.run import Turn, evolve
from graphloop.values import FinishReason, Reply
from tests.strategies import QUESTION, fresh, said


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
