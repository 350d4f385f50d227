"""model_call: what is asked, and what each kind of reply leads to."""

from __future__ import annotations

import pytest

from graphloop.effects import CallModel
from graphloop.events import Cancelled, EffectFailed, Event, Failure, ModelReplied
from graphloop.node import Leave, Wait
from graphloop.nodes.model_call import ModelCall
from graphloop.outcomes import (
    Aborted,
    Answered,
    Calls,
    ContextFull,
    Empty,
    Failed,
    Outcome,
    Paused,
    Refused,
    Truncated,
)
from graphloop.run import EndReason, Run, Turn, evolve
from graphloop.values import FinishReason, Reply, Usage
from tests.strategies import call, fresh, reply

F = FinishReason


def asked(run: Run[None], node: ModelCall | None = None) -> CallModel:
    """Return the wish on entering."""
    reaction = (node or ModelCall()).enter(run)
    assert isinstance(reaction, Wait)
    (effect,) = reaction.effects
    assert isinstance(effect, CallModel)
    return effect


def left(event: Event) -> Leave[None, Outcome]:
    """Return how the node is left after an event."""
    reaction = ModelCall().on(fresh(), event, None)
    assert isinstance(reaction, Leave)
    return reaction


def test_the_whole_history_and_the_turn_s_tools_are_sent() -> None:
    """The history is passed on as it is: its bytes are cached by identity."""
    run = fresh()

    effect = asked(run)

    assert run.messages is effect.request.messages
    assert run.turn.tools == effect.request.tools
    assert run.setup.settings == effect.request.settings


@pytest.mark.parametrize(
    ("turn", "node", "label"),
    [("", "", "model"), ("", "judge", "judge"), ("mine", "judge", "mine")],
)
def test_the_nearest_label_names_the_model(turn: str, node: str, label: str) -> None:
    """The turn's before the node's before the run's."""
    assert label == asked(fresh(Turn(model=turn)), ModelCall(model=node)).model


def test_a_turn_s_own_token_limit_goes_before_the_run_s() -> None:
    """Asking again with more room would otherwise change nothing."""
    assert 9 == asked(fresh(Turn(max_tokens=9))).request.settings.max_tokens


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (reply("text"), Answered),
        (reply(call()), Calls),
        (reply(call(), finish=F.STOP), Calls),
        (reply(call(), finish=F.PAUSE), Calls),
        (reply("…", finish=F.PAUSE), Paused),
        (reply(call(), finish=F.LENGTH), Truncated),
        (reply("text", finish=F.LENGTH), Answered),
        (reply(finish=F.LENGTH), Empty),
        (reply(" "), Empty),
        (reply("text", call(), finish=F.REFUSAL), Refused),
        (reply(finish=F.CONTENT_FILTER), Refused),
        (reply(call(), finish=F.CONTEXT_WINDOW), ContextFull),
    ],
)
def test_a_reply_leads_to_one_outcome(answer: Reply, outcome: type[Outcome]) -> None:
    """The finish reason first, then the calls, then whether anything was said."""
    reaction = left(ModelReplied(1.0, 1, answer))

    assert outcome is type(reaction.outcome)
    assert answer == reaction.run.turn.reply
    assert answer.message.calls == reaction.run.turn.calls


def test_the_usage_of_every_attempt_is_the_turn_s() -> None:
    """An attempt that was cut has been paid for."""
    run = evolve(fresh(), turn=Turn(usage=Usage(1, 2)))

    reaction = ModelCall().on(run, ModelReplied(1.0, 1, reply("x")), None)

    assert Usage(11, 7) == reaction.run.turn.usage


def test_an_overflow_is_not_a_failure() -> None:
    """There is something to be done about it: make the history shorter."""
    reaction = left(EffectFailed(1.0, 1, Failure("ContextOverflow", "too long")))

    assert isinstance(reaction.outcome, ContextFull)
    assert reaction.run.ending is None


def test_any_other_failure_ends_the_run() -> None:
    """Retrying is over by the time a failure is an event."""
    reaction = left(EffectFailed(1.0, 1, Failure("Overloaded", "later")))

    assert isinstance(reaction.outcome, Failed)
    assert reaction.run.ending is not None
    assert EndReason.ERROR is reaction.run.ending.reason


def test_an_abort_is_passed_on() -> None:
    """Whatever the model would have said is void."""
    assert isinstance(left(Cancelled(1.0)).outcome, Aborted)
