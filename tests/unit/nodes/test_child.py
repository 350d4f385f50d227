"""child: an agent in the model's place, within what is left and not too deep."""

from __future__ import annotations

import pytest

from graphloop.effects import StartRun
from graphloop.events import Cancelled, ChildEnded, EffectFailed, Event, Failure
from graphloop.graph import END, Edges, NodeGraph
from graphloop.node_protocol import Leave, Wait
from graphloop.nodes import Append, Child, StopCheck
from graphloop.outcomes import Aborted, Answered, Failed, Final, Go, Outcome, Resend
from graphloop.run import Ending, EndReason, Run, evolve
from graphloop.spending import Budget, Spent
from graphloop.testing.sim import ChildAnswer, World, simulate
from graphloop.tools.outcome import ToolOutcome
from graphloop.values import Usage, UserMessage
from tests.runs import changed
from tests.strategies import QUESTION, SETUP, fresh, reply, said

NODE = Child("writer")
SPENT = Spent(2, 3, Usage(20, 5), 0.5)


def left(event: Event) -> tuple[Run[None], type[Outcome]]:
    """Return how the node is left after an event."""
    reaction = NODE.on(fresh(), event, StartRun(1, "writer.1", "writer", "", QUESTION))
    assert isinstance(reaction, Leave)
    return reaction.run, type(reaction.outcome)


def test_the_agent_gets_the_conversation_and_all_that_is_left() -> None:
    """It is a turn of this run: nothing else goes on beside it."""
    setup = evolve(SETUP, budget=Budget(tokens=100, tool_calls=5))
    run = changed(fresh(), setup=setup, spent=SPENT, steering=(UserMessage("hurry"),))

    reaction = NODE.enter(run)

    assert isinstance(reaction, Wait)
    (effect,) = reaction.effects
    assert isinstance(effect, StartRun)
    assert (1, "writer.1", "writer", "") == (effect.id, effect.key, effect.agent, effect.arguments)
    assert (*QUESTION, UserMessage("hurry")) == tuple(effect.messages)
    assert Budget(tokens=75, tool_calls=2) == effect.budget
    assert (1, ()) == (reaction.run.turn.number, reaction.run.inbox.steering)


def test_the_agent_is_told_its_part_after_the_conversation() -> None:
    """One agent may have several parts; what it is told is not said to anybody else."""
    reaction = Child("writer", "polish", "Polish it.").enter(fresh())

    assert isinstance(reaction, Wait)
    (effect,) = reaction.effects
    assert isinstance(effect, StartRun)
    assert (*QUESTION, UserMessage("Polish it.", origin="polish")) == tuple(effect.messages)
    assert QUESTION == tuple(reaction.run.messages)


def test_a_spent_budget_starts_no_agent() -> None:
    """It would ask its model once, and run its tools, before it saw that nothing is left."""
    setup = evolve(SETUP, budget=Budget(tokens=15))

    reaction = NODE.enter(evolve(fresh(), setup=setup, spent=SPENT))

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Failed)
    assert Ending(EndReason.BUDGET, ("budget.tokens",)) == reaction.run.ending


def test_its_answer_is_the_turn_s_reply() -> None:
    """With what it has used on the turn's bill."""
    run, outcome = left(ChildEnded(1.0, 1, "42", spent=SPENT))

    assert Answered is outcome
    assert run.turn.reply is not None
    assert (said("42"), "writer") == (run.turn.reply.message, run.turn.reply.model)
    assert SPENT.usage == run.turn.usage


@pytest.mark.parametrize(
    ("event", "failure"),
    [
        (ChildEnded(1.0, 1, "no answer", "error"), Failure("RunFailed", "no answer")),
        (EffectFailed(1.0, 1, Failure("E", "m")), Failure("E", "m")),
    ],
)
def test_an_agent_without_an_answer_ends_the_run(event: Event, failure: Failure) -> None:
    """There is nothing to go on with."""
    run, outcome = left(event)

    assert Failed is outcome
    assert run.ending is not None
    assert (EndReason.ERROR, failure) == (run.ending.reason, run.ending.failure)


def test_an_abort_is_passed_on() -> None:
    """Whatever the agent would have said is void."""
    assert Aborted is left(Cancelled(1.0))[1]


def test_two_agents_take_turns_until_a_bound() -> None:
    """A table of nothing but agents; each one's work is counted, and each is started anew."""
    first, second, append, stop = Child("a"), Child("b"), Append(), StopCheck(max_steps=3)
    edges: Edges[None] = {
        first: {Answered: append, ...: END},
        append: {Final: second, Resend: stop, ...: END},
        second: {Answered: stop, ...: END},
        stop: {Go: first, ...: END},
    }
    keys: list[str] = []

    def child(effect: StartRun) -> ChildAnswer:
        keys.append(effect.key)
        return ("hm", "ok", SPENT)

    world = World(
        model=lambda _: reply("never"),
        tool=lambda _: ToolOutcome("", "ok"),
        child=child,
    )

    run = simulate(NodeGraph("duet", first, edges), QUESTION, world, None, setup=SETUP).run

    assert run.ended
    assert len(set(keys)) == run.next_effect - 1
    assert SPENT.tool_calls * len(set(keys)) == run.spent.tool_calls
