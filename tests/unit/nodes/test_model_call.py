"""model_call: what is asked, and what each kind of reply leads to."""

from __future__ import annotations

import pytest

from graphloop.effects import AwaitCaller, CallModel
from graphloop.errors import GraphError, IllegalEvent
from graphloop.events import (
    CallCheck,
    Cancelled,
    EffectFailed,
    Event,
    Failure,
    ModelReplied,
    Steered,
)
from graphloop.node_protocol import Leave, Reaction, Wait
from graphloop.nodes.append import Append
from graphloop.nodes.model_call import CALLS_MAX, ModelCall
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
from graphloop.run import Run, evolve
from graphloop.spending import Spent
from graphloop.turn import CallVerdict, Queue, Turn
from graphloop.values import FinishReason, Reply, Usage, UserMessage
from tests.strategies import SETUP, call, fresh, replied, reply, said, spec

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


@pytest.mark.parametrize("count", [1, 3])
def test_a_reply_has_a_check_for_each_call_or_none(count: int) -> None:
    """A check that lands on another call would let that one through."""
    event = ModelReplied(1.0, 1, reply(call(), call()), checks=(CallCheck(),) * count)

    with pytest.raises(IllegalEvent, match=f"2 call.* {count} check"):
        left(event)


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
    assert label == asked(fresh(Turn(0, model=turn)), ModelCall(model=node)).model


def test_a_turn_s_own_token_limit_goes_before_the_run_s() -> None:
    """Asking again with more room would otherwise change nothing."""
    assert 9 == asked(fresh(Turn(0, max_tokens=9))).request.settings.max_tokens


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


def test_nothing_that_was_said_of_another_reply_holds_of_a_new_one() -> None:
    """A verdict on a call that was cut would let the call run that comes in its place."""
    before = replied(reply(call("read")), CallVerdict("run"))
    queue = Queue(spec("read"), (0,))
    turn = evolve(before.turn, waiting=(queue,), given=frozenset({0}), reply=None, calls=())

    reaction = ModelCall().on(
        evolve(before, turn=turn), ModelReplied(1.0, 1, reply(call("write"))), None
    )

    assert isinstance(reaction, Leave)
    after = reaction.run.turn
    assert ((), (), (), frozenset()) == (after.verdicts, after.results, after.waiting, after.given)


@pytest.mark.parametrize("number", [-1, 0])
def test_no_model_is_asked_where_no_turn_is_open(number: int) -> None:
    """Before the first, nothing is recorded; after one, two calls would share a key."""
    closed = Append().enter(replied(reply("x")))
    assert isinstance(closed, Leave)
    run = closed.run if number == 0 else fresh(Turn(number))

    with pytest.raises(GraphError, match=r"no turn is open.*PrepareStep"):
        ModelCall().enter(run)


def test_the_usage_of_every_attempt_is_the_turn_s() -> None:
    """An attempt that was cut has been paid for."""
    run = evolve(fresh(), turn=Turn(usage=Usage(1, 2)))

    reaction = ModelCall().on(run, ModelReplied(1.0, 1, reply("x")), None)

    assert Usage(11, 7) == reaction.run.turn.usage


TWO = ModelCall(fallbacks=("second", "third"))
BUSY = Failure("Overloaded", "later", retryable=True)


def failing(node: ModelCall, run: Run[None], event: EffectFailed) -> Reaction[None, Outcome]:
    """Return the reaction to a model that cannot be asked."""
    return node.on(run, event, asked(run, node))


def test_a_model_that_cannot_be_asked_gives_way_to_the_next() -> None:
    """In the same turn: what the run has done before stays done (CONTRACT §9 #47)."""
    labels: list[str] = []
    run = fresh()
    for _ in range(2):
        reaction = failing(TWO, run, EffectFailed(1.0, 1, BUSY))
        assert isinstance(reaction, Wait)
        labels.append(asked(reaction.run, TWO).model)
        run = reaction.run

    last = failing(TWO, run, EffectFailed(1.0, 1, BUSY))

    assert ["second", "third"] == labels
    assert isinstance(last, Leave)
    assert isinstance(last.outcome, Failed)
    assert last.run.ending is not None
    assert BUSY == last.run.ending.failure


@pytest.mark.parametrize("failure", [BUSY, Failure("ContextOverflow", "too long")])
def test_what_a_failed_call_used_is_the_turn_s(failure: Failure) -> None:
    """It has been paid for (CONTRACT §9 #24)."""
    spent = Spent(1, 0, Usage(7, 1))

    reaction = failing(TWO, fresh(), EffectFailed(1.0, 1, failure, spent))

    assert Usage(7, 1) == reaction.run.turn.usage
    assert reaction.run.turn.asked


ATTENDED = evolve(fresh(), setup=evolve(SETUP, attended=True))


def test_a_reply_is_sorted_as_its_caller_left_it() -> None:
    """A conversation of the caller's own has nothing to sort; open calls have to run."""
    handed = ModelCall().on(ATTENDED, ModelReplied(1.0, 1, reply("text")), None)
    calls = (UserMessage("go"), said(call()))

    def outcome(event: Steered) -> type[Outcome]:
        reaction = ModelCall().on(handed.run, event, AwaitCaller(1))
        assert isinstance(reaction, Leave)
        return type(reaction.outcome)

    assert Answered is outcome(Steered(1.0, 1))
    assert Answered is outcome(Steered(1.0, 1, (UserMessage("other"),)))
    assert Calls is outcome(Steered(1.0, 1, calls))


def test_an_abort_is_passed_on() -> None:
    """Whatever the model would have said is void."""
    assert isinstance(left(Cancelled(1.0)).outcome, Aborted)


def test_a_reply_with_more_calls_than_anybody_would_run_is_refused() -> None:
    """None of them runs, and none of them is in the history; the reply is on the bill."""
    storm = reply(*[call()] * (CALLS_MAX + 1))

    reaction = ModelCall().on(fresh(), ModelReplied(1.0, 1, storm), None)

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Failed)
    turn, ending = reaction.run.turn, reaction.run.ending
    assert ((), None, storm.usage) == (turn.calls, turn.reply, turn.usage)
    assert ending is not None
    assert ending.failure is not None
    assert ("BadReply", False) == (ending.failure.error, ending.failure.retryable)
    expected = "`calls`: expected at most 10,000 in a reply, found 10,001."
    assert ending.failure.message.startswith(expected)
