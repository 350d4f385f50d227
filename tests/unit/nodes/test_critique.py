"""critique: nothing is waved through by accident."""

from __future__ import annotations

import pytest

from graphloop.effects import CallModel
from graphloop.events import Cancelled, EffectFailed, Failure, ModelReplied
from graphloop.node_protocol import Leave, Wait
from graphloop.nodes.critique import Critique
from graphloop.outcomes import Aborted, Accepted, Failed, Rejected
from graphloop.run import Ending, EndReason, evolve
from graphloop.values import FinishReason, Reply, ToolChoice, UserMessage
from tests.strategies import call, fresh, reply

CRITIC = Critique("Is it good?")
YES = '{"accepted": true, "feedback": ""}'


def judged(answer: Reply) -> Leave[None, Accepted | Rejected | Failed | Aborted]:
    """Return how the node is left after this verdict."""
    run = evolve(fresh(), ending=Ending(EndReason.COMPLETED))
    reaction = CRITIC.on(run, ModelReplied(1.0, 1, answer), None)
    assert isinstance(reaction, Leave)
    return reaction


def test_the_judge_sees_everything_and_must_use_its_tool() -> None:
    """Prose would have to be guessed at."""
    reaction = CRITIC.enter(fresh())

    assert isinstance(reaction, Wait)
    (effect,) = reaction.effects
    assert isinstance(effect, CallModel)
    assert "model" == effect.model
    assert ToolChoice("tool", "verdict") == effect.request.tool_choice
    assert ["go", "Is it good?"] == [getattr(one, "content", "") for one in effect.request.messages]


def test_an_accepted_answer_passes() -> None:
    """Even with other calls beside the verdict."""
    left = judged(reply(call("other"), call("verdict", arguments=YES)))

    assert isinstance(left.outcome, Accepted)


@pytest.mark.parametrize(
    "answer",
    [
        reply("looks good to me"),
        reply(),
        reply(call("verdict", arguments="")),
        reply(call("verdict", arguments="{")),
        reply(call("verdict", arguments="[" * 100_000)),
        reply(call("verdict", arguments="true")),
        reply(call("verdict", arguments='{"accepted": "true"}')),
        reply(call("verdict", arguments='{"accepted": 1}')),
        reply(call("verdict", arguments='{"accepted": false, "feedback": " "}')),
        reply(call("verdict", arguments=YES), finish=FinishReason.LENGTH),
        reply(call("verdict", arguments=YES), finish=FinishReason.REFUSAL),
        reply(call("verdict", arguments=YES), finish=FinishReason.CONTENT_FILTER),
    ],
    ids=range(12),
)
def test_everything_but_a_clear_yes_is_a_no(answer: Reply) -> None:
    """A judge that fails, hedges or is cut has not judged."""
    left = judged(answer)

    assert isinstance(left.outcome, Rejected)
    (note,) = left.run.turn.notes
    assert isinstance(note, UserMessage)
    assert "not accepted" in str(note.content)
    assert left.run.ending is None


def test_the_feedback_is_noted_for_the_next_turn() -> None:
    """It is a message of the user's side, and says who wrote it."""
    left = judged(reply(call("verdict", arguments='{"accepted": false, "feedback": "Shorter."}')))

    (note,) = left.run.turn.notes
    assert isinstance(note, UserMessage)
    assert ("Shorter.", "critique") == (note.content, note.origin)


def test_a_judge_that_cannot_be_asked_fails_the_run() -> None:
    """Its failure is kept: it is not the answer's fault."""
    failure = Failure("Overloaded", "later")

    reaction = CRITIC.on(fresh(), EffectFailed(1.0, 1, failure), None)

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Failed)
    assert Ending(EndReason.ERROR, (), failure) == reaction.run.ending


def test_an_abort_is_passed_on() -> None:
    """Whoever stops the run stops the judge."""
    reaction = CRITIC.on(fresh(), Cancelled(1.0), None)

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Aborted)
