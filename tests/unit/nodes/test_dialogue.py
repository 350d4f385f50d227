"""A dialogue: asks become effects within what the node promises, and answers are kept."""

from __future__ import annotations

from typing import TypeVar

import pytest

from graphloop.effects import (
    REQUESTS,
    AskAgent,
    AskHuman,
    AskModel,
    AskPerson,
    CallModel,
    Effect,
    PersonSaid,
    Request,
    StartRun,
    Tell,
)
from graphloop.events import (
    Cancelled,
    ChildEnded,
    Decided,
    EffectFailed,
    Event,
    Failure,
    ModelReplied,
)
from graphloop.nodes.dialogue import (
    REQUESTS_MAX,
    RequestLimits,
    heard_back,
    over,
    requested,
    with_dialogue,
)
from graphloop.run import Run, evolve
from graphloop.turn import Exchange
from graphloop.values import Settings, SystemMessage, UserMessage
from tests.strategies import QUESTION, call, fresh, reply, said

E = TypeVar("E", bound=Effect)


def asked(ask: Request, kind: type[E], run: Run[None] | None = None) -> tuple[Run[None], E]:
    """Return the run that waits for an ask, and its effect."""
    wished = requested(with_dialogue(fresh()) if run is None else run, ask, "node")
    assert not isinstance(wished, Failure)
    waiting, effect = wished
    assert isinstance(effect, kind)
    return waiting, effect


def heard(ask: Request, event: Event, kind: type[Effect]) -> object:
    """Return what an ask was answered."""
    run, effect = asked(ask, kind)
    after = heard_back(run, event, effect)
    assert after is not None
    assert after.turn.dialogue is not None
    (exchange,) = after.turn.dialogue.exchanges
    assert (ask, None) == (exchange.ask, after.turn.dialogue.asked)
    return exchange.answer


def refused(asks: RequestLimits, ask: Request, before: tuple[Request, ...] = ()) -> str:
    """Return why an ask is not sent."""
    failure = asks.refusal(ask, [Exchange(one) for one in before])
    return "" if failure is None else f"{failure.error}: {failure.message}"


def test_a_model_reads_what_it_is_given() -> None:
    """Its prompt alone, or after the conversation; no tools."""
    _, alone = asked(AskModel("why?", system="be brief", max_tokens=7), CallModel)
    _, aloud = asked(AskModel("why?", conversation=True, model="other"), CallModel)

    note = UserMessage("why?", origin="node")
    assert (SystemMessage("be brief"), note) == tuple(alone.request.messages)
    assert (7, ()) == (alone.request.settings.max_tokens, alone.request.tools)
    assert ((*QUESTION, note), "other") == (tuple(aloud.request.messages), aloud.model)
    assert fresh().setup.model == alone.model


def test_no_ask_widens_the_limit_of_the_run() -> None:
    """What is proven of its tokens and its money rests on it."""
    run = fresh()
    run = with_dialogue(evolve(run, setup=evolve(run.setup, settings=Settings(max_tokens=10))))

    sent = [requested(run, AskModel("?", max_tokens=most), "node") for most in (None, 7, 100)]

    calls = [one[1] for one in sent if isinstance(one, tuple)]
    limits = [one.request.settings.max_tokens for one in calls if isinstance(one, CallModel)]
    assert [10, 7, 10] == limits


def test_an_agent_gets_what_is_left_and_no_deeper_than_there_may_be() -> None:
    """As any child run."""
    run = with_dialogue(fresh())
    _, start = asked(AskAgent("a", "go"), StartRun)
    deep = evolve(run, setup=evolve(run.setup, depth=run.setup.depth_max))

    assert ("a", "node.1", "") == (start.agent, start.key, start.arguments)
    assert (UserMessage("go", origin="node"),) == tuple(start.messages)
    failure = requested(deep, AskAgent("a", "go"), "node")
    assert isinstance(failure, Failure)
    assert "agents deep" in failure.message


def test_what_is_told_is_answered_at_once() -> None:
    """And comes into the conversation under the node's name."""
    wished = requested(with_dialogue(fresh()), Tell(UserMessage("listen")), "node")
    assert not isinstance(wished, Failure)
    run, effect = wished

    assert None is effect
    assert UserMessage("listen", "node") == run.messages[-1]
    assert run.turn.dialogue is not None
    assert (Exchange(Tell(UserMessage("listen"))),) == run.turn.dialogue.exchanges


@pytest.mark.parametrize(
    "ask", [Tell(UserMessage("x")), AskModel("x", conversation=True), AskAgent("a", "x", True)]
)
def test_nothing_comes_between_calls_and_their_results(ask: Request) -> None:
    """The run ends in an error that says so."""
    run = with_dialogue(fresh(messages=(*QUESTION, said(call("read")))))

    failure = requested(run, ask, "node")

    assert isinstance(failure, Failure)
    assert "no message may stand between calls and their results" in failure.message
    assert not isinstance(requested(run, AskModel("x"), "node"), Failure)


def test_answers_are_kept_as_what_they_are() -> None:
    """And so are failures, which the generator is told of."""
    answer = reply("yes")
    failure = Failure("Overloaded", "busy", "a long trace")

    assert answer == heard(AskModel("?"), ModelReplied(1.0, 1, answer), CallModel)
    assert "x" == heard(AskAgent("a", "?"), ChildEnded(1.0, 1, "x"), StartRun)
    assert Failure("Overloaded", "busy") == heard(
        AskModel("?"), EffectFailed(1.0, 1, failure), CallModel
    )
    assert Failure("RunFailed", "no") == heard(
        AskAgent("a", "?"), ChildEnded(1.0, 1, "no", "error"), StartRun
    )
    changed = heard(AskAgent("a", "?"), ChildEnded(1.0, 1, "x", state=5, changed=True), StartRun)
    assert isinstance(changed, Failure)
    assert "changes the state" in changed.message
    assert None is heard_back(with_dialogue(fresh()), Cancelled(1.0), None)


@pytest.mark.parametrize(
    ("decided", "expected"),
    [
        (Decided(1.0, 1, True, "fine"), PersonSaid(True, "fine")),
        (Decided(1.0, 1, False, "no"), PersonSaid(False, "no")),
        (Decided(1.0, 1, True, "", '{"answer":"blue"}'), PersonSaid(True, "", "blue")),
        (
            Decided(1.0, 1, True, "", '{"blue":1}'),
            PersonSaid(False, 'An answer in words is {"answer": "…"}.'),
        ),
        (
            Decided(1.0, 1, True, "", "blue"),
            PersonSaid(False, 'An answer in words is {"answer": "…"}.'),
        ),
    ],
)
def test_a_person_says_yes_or_no_or_more(decided: Decided, expected: PersonSaid) -> None:
    """Whatever is not clear is a no."""
    assert expected == heard(AskPerson("colour?"), decided, AskHuman)


def test_an_approval_that_comes_too_late_is_a_no() -> None:
    """As everywhere."""
    run = fresh()
    run = with_dialogue(evolve(run, setup=evolve(run.setup, approval_ttl_s=5.0)))
    waiting, effect = asked(AskPerson("?"), AskHuman, run)

    late = heard_back(waiting, Decided(9.0, 1, approved=True), effect)

    assert 5.0 == effect.expires_at
    assert late is not None
    assert late.turn.dialogue is not None
    assert PersonSaid(False, "The approval had expired.") == late.turn.dialogue.exchanges[0].answer


def test_asks_are_held_to_what_the_node_promises() -> None:
    """Before anything is sent: the proofs rely on it."""
    asks = RequestLimits(REQUESTS, 2, (("a", 1),))
    model = AskModel("?")

    assert "" == refused(asks, model, (model, AskPerson("?")))
    assert "CapReached: one visit asks 2 models at most" in refused(asks, model, (model, model))
    assert "" == refused(RequestLimits(REQUESTS), model, (model,) * (REQUESTS_MAX - 1))
    assert "has asked 1000 times" in refused(
        RequestLimits(REQUESTS), model, (model,) * REQUESTS_MAX
    )
    agent = AskAgent("a", "?")
    assert "" == refused(asks, agent, (model, AskAgent("b", "?")))
    assert "CapReached: one visit begins 1 runs of agent 'a'" in refused(asks, agent, (agent,))
    assert "declares 'a': write `agents={'b': 1}`" in refused(asks, AskAgent("b", "?"))
    narrow = RequestLimits(frozenset({AskModel}))
    assert "it asks with AskModel, as its annotation says" in refused(narrow, AskPerson("?"))
    assert (2, None, 0) == (asks.models, narrow.models, RequestLimits(frozenset({Tell}), 3).models)


def test_a_node_that_is_left_leaves_no_dialogue() -> None:
    """The next one has its own."""
    assert fresh() == over(with_dialogue(fresh())) == over(fresh())
