"""Calling a node's function: what it answers is checked before it becomes a fact."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest

from graphloop import NodeContext
from graphloop.effects import AskModel
from graphloop.errors import ConfigError, NotDeterministic
from graphloop.events import NodeReturned, RequestYielded
from graphloop.outcomes import Outcome
from graphloop.own_nodes import Asking, ask_model
from graphloop.own_nodes.node_call import NodeCall
from graphloop.own_nodes.node_signature import signature_of
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


async def later(ticket: Ticket) -> Billing:
    """Answer alone."""
    return Billing()


def why(ticket: Ticket) -> Again:
    """Answer with a field."""
    return Again("why")


def changing(ticket: Ticket) -> tuple[Billing, Ticket]:
    """Change the team."""
    return Billing(), replace(ticket, team="b")


def emptying(ticket: Ticket | None) -> tuple[Billing, Ticket | None]:
    """Take the state away."""
    return Billing(), None


def test_an_answer_becomes_a_fact() -> None:
    """The outcome's name and fields, and the state where it is given."""
    assert NodeReturned("Billing") == called(later)
    assert NodeReturned("Again", None, '{"reason":"why"}') == called(why)
    assert NodeReturned("Billing", Ticket("x", "b"), changed=True) == called(changing)
    assert NodeReturned("Billing", None, changed=True) == called(emptying)


def the_class(ticket: Ticket) -> Billing:
    """Forget the brackets."""
    answer: Billing = wrong(Billing)
    return answer


def undeclared(ticket: Ticket) -> Billing:
    """Leave by another way."""
    answer: Billing = wrong(Technical())
    return answer


def forgetful(ticket: Ticket) -> Billing:
    """Return nothing."""
    answer: Billing = wrong(None)
    return answer


def state_alone(ticket: Ticket) -> tuple[Billing, Ticket]:
    """Return the state only."""
    answer: tuple[Billing, Ticket] = wrong(ticket)
    return answer


def undeclared_state(ticket: Ticket) -> Billing:
    """Change a state without a word."""
    answer: Billing = wrong((Billing(), ticket))
    return answer


def other_state(ticket: Ticket) -> tuple[Billing, Ticket]:
    """Return another thing for a state."""
    answer: tuple[Billing, Ticket] = wrong((Billing(), "x"))
    return answer


def three(ticket: Ticket) -> tuple[Billing, Ticket]:
    """Return too many things."""
    answer: tuple[Billing, Ticket] = wrong((Billing(), ticket, 1))
    return answer


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (the_class, r"returned the class Billing: return one, `Billing\(\)`"),
        (undeclared, "returned 'technical', which its annotation does not name: add Technical"),
        (forgetful, "found None: is there a way through it without a `return`"),
        (state_alone, "returns one of Billing; found Ticket"),
        (undeclared_state, "a new state, which its annotation does not say"),
        (other_state, "returns a state of type Ticket; found str"),
        (three, "returns one of Billing; found"),
    ],
)
def test_an_answer_that_its_annotation_does_not_say_is_refused(
    function: Callable[..., object], words: str
) -> None:
    """A journal must not hold what no row expects."""
    with pytest.raises(ConfigError, match=words):
        called(function)


def test_a_function_writes_what_it_declares_and_no_more() -> None:
    """The proofs rely on it."""
    left = called(changing, writes=frozenset({"team"}))
    assert isinstance(left, NodeReturned)
    assert left.changed

    with pytest.raises(ConfigError, match="writes 'text', as it declares; it changed 'team'"):
        called(changing, writes=frozenset({"text"}))


def in_place(state: Open) -> Billing:
    """Change what no journal sees."""
    state.text = "changed"
    return Billing()


def returned(state: Open) -> tuple[Billing, Open]:
    """Change it, and return it."""
    state.text = "changed"
    return Billing(), state


def test_a_state_is_never_changed_in_place() -> None:
    """Neither the run's nor the caller's; what is returned counts."""
    state = Open("x")

    with pytest.raises(ConfigError, match="changed its state in place, where no journal sees it"):
        called(in_place, state)
    assert NodeReturned("Billing", Open("changed"), changed=True) == called(returned, state)

    assert Open("x") == state


class Plain:
    """A state whose class does not say when two are equal."""

    def __init__(self) -> None:
        self.seen = 0


def looking(state: Plain) -> Billing:
    """Look at it."""
    return Billing()


def counting(state: Plain) -> Billing:
    """Change what nobody would see."""
    state.seen += 1
    return Billing()


def test_a_change_is_seen_in_a_state_of_any_class() -> None:
    """Dropped without a word, it would be looked for in vain."""
    assert NodeReturned("Billing") == called(looking, Plain())
    with pytest.raises(ConfigError, match="changed its state in place, where no journal sees it"):
        called(counting, Plain())


async def slow(ticket: Ticket) -> Billing | Technical:
    """Never answer."""
    await asyncio.Event().wait()
    raise NotImplementedError


async def own_limit(ticket: Ticket) -> Billing:
    """Run into a time limit of its own."""
    raise TimeoutError("mine")


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
def test_a_function_that_keeps_its_cancellation_to_itself_is_too_late_all_the_same(
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

    assert ([] if late else ["node 'deaf'"]) == [one.get_name() for one in tasks]


def asking(ticket: Ticket) -> Asking[Billing]:
    """Ask, and fail where the answer is empty."""
    reply = yield from ask_model(ticket.text)
    if not reply.message.text:
        raise KeyError("empty")
    return Billing()


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


def tossing(ticket: Ticket) -> Asking[Billing]:
    """Ask something else each time."""
    yield from ask_model(f"{next(COUNT)}")
    return Billing()


COUNT = count()


def answered(function: Callable[..., object], text: str) -> NodeReturned | RequestYielded:
    """Return what comes after the first answer."""
    exchange = Exchange(AskModel("x"), reply(text))
    run: Run[object] = wrong(
        changed(fresh(), state=wrong(TICKET), dialogue=Dialogue(1, 1, Usage(), (exchange,)))
    )
    raises = ((KeyError, Again), (Exception, Technical))
    return asyncio.run(NodeCall(function, signature_of(function), raises=raises)(run))


def test_a_generator_is_called_up_to_its_next_ask() -> None:
    """From its beginning each time, with what it was answered."""
    assert RequestYielded(AskModel("x")) == called(asking)
    assert NodeReturned("Billing") == answered(asking, "yes")
    assert NodeReturned("Again") == answered(asking, "")


def test_what_is_not_deterministic_is_no_outcome() -> None:
    """Whatever `raises` says: it would be a wrong answer that nobody sees."""
    with pytest.raises(NotDeterministic):
        answered(tossing, "yes")


def test_a_generator_does_not_change_its_state_in_place() -> None:
    """The next time it would see it changed, or not."""
    with pytest.raises(ConfigError, match="changed its state in place"):
        called(spoiling, Open("x"))


def test_a_state_that_will_be_returned_may_be_changed_on_the_way() -> None:
    """Each time the generator is lent a copy of what the journal holds."""
    state = Open("x")

    assert RequestYielded(AskModel("?")) == called(growing, state)
    assert "x" == state.text


def test_what_a_function_tells_is_in_the_fact() -> None:
    """Also where it raised after that, which stands for an outcome."""

    def telling(ticket: Ticket, context: NodeContext) -> Billing | Again:
        context.tell("one", SystemMessage("two"))
        if ticket.text:
            raise KeyError(ticket.text)
        return Billing()

    notes = (UserMessage("one", "node"), SystemMessage("two"))
    assert NodeReturned("Billing", notes=notes) == called(telling, Ticket(""))
    assert NodeReturned("Again", notes=notes) == called(telling, raises=((KeyError, Again),))
