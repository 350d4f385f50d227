"""Calling a node's function: what it asks and answers is checked before it becomes a fact."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from itertools import count

import pytest

from graphloop import NodeContext
from graphloop.effects import (
    AskAgent,
    AskModel,
    AskPerson,
    PersonSaid,
    Request,
    RequestAnswer,
    Tell,
)
from graphloop.errors import ConfigError, NotDeterministic
from graphloop.events import NodeReturned, RequestYielded
from graphloop.outcomes import Outcome
from graphloop.own_nodes import Asking, ask_model
from graphloop.own_nodes.node_call import NodeCall
from graphloop.own_nodes.node_signature import signature_of
from graphloop.own_nodes.requests import ask_agent, ask_person, tell
from graphloop.run import Run, evolve
from graphloop.tools import execution as tool_execution
from graphloop.turn import Dialogue, Exchange
from graphloop.values import SystemMessage, Usage, UserMessage
from tests.own_nodes import Again, Billing, Open, Technical, Ticket
from tests.runs import changed
from tests.strategies import fresh, reply, wrong

TICKET = Ticket("x")


def called(
    function: Callable[..., object],
    state: object = TICKET,
    *,
    writes: frozenset[str] | None = None,
    timeout_s: float | None = None,
    raises: tuple[tuple[type[Exception], type[Outcome]], ...] = (),
) -> NodeReturned | RequestYielded:
    """Return what becomes of a function's answer."""
    run: Run[object] = wrong(evolve(fresh(), state=wrong(state)))
    call = NodeCall(function, signature_of(function), writes, timeout_s, raises)
    return asyncio.run(call(run))


def answering(
    answer: object, returns: object = Billing, state: object = Ticket
) -> Callable[..., object]:
    """Return a function that answers this, whatever it says of itself."""

    def function(given: object) -> object:
        return answer(given) if callable(answer) and not isinstance(answer, type) else answer

    function.__annotations__ = {"given": state, "return": returns}
    return function


CHANGED = tuple[Billing, Ticket]
to_b = answering((Billing(), Ticket("x", "b")), CHANGED)


async def later(ticket: Ticket) -> Billing:
    """Answer alone."""
    return Billing()


def test_an_answer_becomes_a_fact() -> None:
    """The outcome's name and fields, and the state where it is given."""
    nothing = answering((Billing(), None), tuple[Billing, Ticket | None], Ticket | None)

    assert NodeReturned("Billing") == called(later)
    why = called(answering(Again("why"), Again))
    assert NodeReturned("Again", None, '{"reason":"why"}') == why
    assert NodeReturned("Billing", Ticket("x", "b"), changed=True) == called(to_b)
    assert NodeReturned("Billing", None, changed=True) == called(nothing)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (answering(Billing), r"found <class .*Fix: return an instance, `Billing\(\)`"),
        (answering(Technical()), r"expected an outcome of its annotation \(Billing\), found Tech"),
        (answering(None), "found None. Fix: look for a way through it without a `return`"),
        (answering(TICKET, CHANGED), "found Ticket"),
        (answering((Billing(), TICKET)), "a new state, which its annotation does not say"),
        (answering((Billing(), "x"), CHANGED), "returns a state of type Ticket, found str"),
        (answering((Billing(), TICKET, 1), CHANGED), "found \\(Billing"),
    ],
    ids=["class", "outcome", "none", "state", "new state", "other state", "three"],
)
def test_an_answer_that_does_not_fit_is_refused(
    function: Callable[..., object], words: str
) -> None:
    """A journal must not hold what no row expects."""
    with pytest.raises(ConfigError, match=words):
        called(function)


def test_a_function_writes_what_it_declares_and_no_more() -> None:
    """The proofs rely on it."""
    left = called(to_b, writes=frozenset({"team"}))
    assert isinstance(left, NodeReturned)
    assert left.changed
    with pytest.raises(ConfigError, match="writes 'text', as it declares; it changed 'team'"):
        called(to_b, writes=frozenset({"text"}))


class Plain:
    """A state whose class does not say when two are equal."""

    text = "x"


def spoil(state: Open | Plain) -> Billing:
    """Change what no journal sees."""
    state.text = "changed"
    return Billing()


@pytest.mark.parametrize("state", [Open("x"), Plain()], ids=["open", "plain"])
def test_a_state_is_never_changed_in_place(state: Open | Plain) -> None:
    """Neither the run's nor the caller's, of any class; what is returned counts."""
    kind = type(state)

    with pytest.raises(ConfigError, match="changed its state in"):
        called(answering(spoil, Billing, kind), state)
    assert NodeReturned("Billing") == called(answering(Billing(), Billing, kind), state)
    assert "x" == state.text

    def spoil_and_return(given: Open | Plain) -> object:
        return spoil(given), given

    returning = answering(spoil_and_return, wrong(tuple)[Billing, kind], kind)
    returned = called(returning, state)
    assert isinstance(returned, NodeReturned)
    assert ("changed", True) == (wrong(returned.state).text, returned.changed)


async def own_limit(ticket: Ticket) -> Billing:
    """Run into a time limit of its own."""
    raise TimeoutError("mine")


async def slow(ticket: Ticket) -> Billing | Technical:
    """Never answer."""
    await asyncio.Event().wait()
    raise NotImplementedError


def test_a_function_that_takes_too_long_is_given_up() -> None:
    """Its own time limits are its own errors."""
    with pytest.raises(TimeoutError, match="node 'slow' gave no answer within"):
        called(slow, timeout_s=0.01)
    with pytest.raises(TimeoutError, match=r"^mine$"):
        called(own_limit, timeout_s=9)

    assert NodeReturned("Technical") == called(
        slow, timeout_s=0.01, raises=((TimeoutError, Technical),)
    )


@pytest.mark.parametrize("late", [True, False], ids=["answers late", "never answers"])
def test_a_function_that_keeps_its_cancellation_is_too_late(
    late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a grace, and is left behind then; nothing that it answers counts."""
    monkeypatch.setattr(tool_execution, "GRACE_S", 0.01)
    tasks: list[asyncio.Task[object]] = []

    async def deaf(ticket: Ticket) -> Billing:
        end = asyncio.Event()
        while True:
            try:
                await end.wait()
            except asyncio.CancelledError:
                if late or tool_execution.LEFT_BEHIND:
                    return Billing()

    async def scenario() -> None:
        try:
            run: Run[object] = wrong(evolve(fresh(), state=wrong(TICKET)))
            await NodeCall(deaf, signature_of(deaf), timeout_s=0.01)(run)
        finally:
            tasks.extend(tool_execution.LEFT_BEHIND)

    with pytest.raises(TimeoutError, match="node 'deaf' gave no answer within"):
        asyncio.run(asyncio.wait_for(scenario(), 5))

    assert ([] if late else ["node 'deaf'"]) == [task.get_name() for task in tasks]


def answered(function: Callable[..., object], text: str) -> NodeReturned | RequestYielded:
    """Return what comes after the first answer."""
    exchange = Exchange(AskModel("x"), reply(text))
    run: Run[object] = wrong(
        changed(fresh(), state=wrong(TICKET), dialogue=Dialogue(1, 1, Usage(), (exchange,)))
    )
    raises = ((KeyError, Again), (Exception, Technical))
    return asyncio.run(NodeCall(function, signature_of(function), raises=raises)(run))


def asking(ticket: Ticket) -> Asking[Billing]:
    """Ask, and fail where the answer is empty."""
    reply = yield from ask_model(ticket.text)
    if not reply.message.text:
        raise KeyError("empty")
    return Billing()


def test_a_generator_is_called_up_to_its_next_ask() -> None:
    """From its beginning each time, with what it was answered."""
    assert RequestYielded(AskModel("x")) == called(asking)
    assert NodeReturned("Billing") == answered(asking, "yes")
    assert NodeReturned("Again") == answered(asking, "")


COUNT = count()


def tossing(ticket: Ticket) -> Asking[Billing]:
    """Ask something else each time."""
    yield from ask_model(f"{next(COUNT)}")
    return Billing()


def test_a_generator_that_changes_its_request_has_no_outcome() -> None:
    """`raises` does not catch the error: it would hide a wrong answer."""
    with pytest.raises(NotDeterministic):
        answered(tossing, "yes")


def spoiling(ticket: Open) -> Asking[Billing]:
    """Change the state between two asks."""
    ticket.text += "!"
    yield from ask_model("?")
    return Billing()


def growing(ticket: Open) -> Asking[tuple[Billing, Open]]:
    """Change the state between two asks, and return it."""
    ticket.text += "!"
    yield from ask_model("?")
    return Billing(), ticket


def test_only_a_generator_that_returns_its_state_may_change_it() -> None:
    """Each time the generator is lent a copy of the state in the journal."""
    state = Open("x")

    with pytest.raises(ConfigError, match="changed its state in place"):
        called(spoiling, state)
    assert RequestYielded(AskModel("?")) == called(growing, state)
    assert "x" == state.text


def test_the_event_has_the_messages_of_the_function() -> None:
    """Also where it raised after that, which stands for an outcome."""

    def telling(ticket: Ticket, context: NodeContext) -> Billing | Again:
        context.tell("one", SystemMessage("two"))
        if ticket.text:
            raise KeyError(ticket.text)
        return Billing()

    notes = (UserMessage("one", "node"), SystemMessage("two"))
    assert NodeReturned("Billing", notes=notes) == called(telling, Ticket(""))
    assert NodeReturned("Again", notes=notes) == called(telling, raises=((KeyError, Again),))


def asked(
    helper: Generator[Request, RequestAnswer, object], answer: RequestAnswer
) -> tuple[Request, object]:
    """Return what a helper asks, and what it makes of an answer."""
    ask = next(helper)
    with pytest.raises(StopIteration) as stop:
        helper.send(answer)
    return ask, stop.value.value


def test_a_helper_asks_once_and_gives_the_answer_back() -> None:
    """With the type that goes with it."""
    heard = reply("yes")
    model = ask_model("?", system="s", model="m", conversation=True, max_tokens=5)

    assert (AskModel("?", "s", "m", True, 5), heard) == asked(model, heard)
    said = PersonSaid(approved=True)
    assert (AskPerson("?"), said) == asked(ask_person("?"), said)
    assert (AskAgent("a", "?", True), "x") == asked(ask_agent("a", "?", conversation=True), "x")
    assert (Tell(UserMessage("n")), None) == asked(tell("n"), None)
    assert (Tell(SystemMessage("n")), None) == asked(tell(SystemMessage("n")), None)
    with pytest.raises(ConfigError, match="max_tokens"):
        next(ask_model("?", max_tokens=wrong(0)))
