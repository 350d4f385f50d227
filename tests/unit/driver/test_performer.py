"""Performing effects: whatever a user's function does, an event comes out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from graphloop import Approval, Tool, ToolContext, allow, ask, deny
from graphloop.driver.models import Models
from graphloop.driver.performer import Performer
from graphloop.driver.ports import Approver, Callback, Ports
from graphloop.effects import (
    AskHuman,
    AwaitCaller,
    CallModel,
    CallTool,
    CheckCalls,
    Effect,
    Invoke,
    StartRun,
)
from graphloop.errors import ConfigError
from graphloop.events import (
    AnswerChecked,
    BranchesJoined,
    CallbackAnswer,
    CallbackReturned,
    CallsChecked,
    Changes,
    Decided,
    EffectFailed,
    Event,
    NodeReturned,
    Steered,
    StopRequested,
    ToolReturned,
)
from graphloop.policy.approvals import issue
from graphloop.questions.pending import capability_of
from graphloop.run import Ending, EndReason, Run
from graphloop.stores.memory import MemoryStore
from graphloop.tools.outcome import ToolOutcome
from graphloop.tools.toolbox import Toolbox
from graphloop.turn import CallVerdict
from graphloop.values import ModelRequest, Reply, evolve
from tests.strategies import call, fresh, replied, reply, wrong

SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}}
SEEN: list[str] = []


async def echo(arguments: dict[str, object], context: ToolContext) -> str:
    """Return what was asked, and by which key."""
    return f"{context.key} {arguments}"


def picky(arguments: dict[str, object], context: ToolContext) -> bool:
    """Remember who asked; only 1 needs nobody."""
    SEEN.append(context.key)
    return arguments.get("x") != 1


TOOLS = [
    Tool(name="read", parameters=SCHEMA, execute=echo),
    Tool(name="write", parameters=SCHEMA, execute=echo, needs_approval=True),
    Tool(name="picky", parameters=SCHEMA, execute=echo, needs_approval=picky),
]


def performer(
    approve: Approver[None] | None = None, callbacks: Mapping[str, Callback[None]] | None = None
) -> Performer[None]:
    """Return a performer with the tools above."""
    ports = Ports(
        store=MemoryStore(),
        models={},
        toolbox=Toolbox(TOOLS),
        callbacks=callbacks or {},
        approve=approve,
        clock=lambda: 5.0,
    )
    return Performer(ports)


def performed(
    effect: CheckCalls | CallTool | AskHuman | Invoke,
    one: Performer[None] | None = None,
    run: Run[None] | None = None,
) -> Event:
    """Return the event that answers an effect."""
    return asyncio.run((one or performer()).perform(effect, run or fresh()))


@pytest.mark.parametrize(
    ("effect", "alone", "attended"),
    [
        (CallModel(1, "m", ModelRequest(())), True, True),
        (CallTool(1, "c0.0", call()), True, True),
        (CallTool(1, "c0.0", call(), client=True), False, False),
        (AskHuman(1, "c0.0", call()), False, True),
        (Invoke(1, "f"), True, True),
    ],
)
def test_what_nobody_here_can_do_is_left_pending(
    effect: Effect, alone: bool, attended: bool
) -> None:
    """Client tools always, questions where nobody can be asked."""

    async def yes(effect: AskHuman, run: Run[None]) -> Approval:
        return Approval(True)

    assert alone == bool(performer().performable([effect], fresh()))
    assert attended == bool(performer(yes).performable([effect], fresh()))


def test_a_tool_knows_its_key_and_its_arguments() -> None:
    """The key is ours: ids repeat."""
    run = replied(reply(call(), call()), CallVerdict("run"), CallVerdict("run"))

    event = performed(CallTool(3, "c0.1", call(arguments='{"x": 1}')), run=run)

    assert ToolReturned(5.0, 3, "c0.1 {'x': 1}") == event


@pytest.mark.parametrize("verdicts", [(), (None,), (CallVerdict("deny", "no"),)])
def test_no_node_can_run_a_tool_past_its_gate(verdicts: tuple[CallVerdict | None, ...]) -> None:
    """A node of a user's own may ask for anything; the driver is the last door."""
    event = performed(CallTool(3, "c0.0", call()), run=replied(reply(call()), *verdicts))

    assert isinstance(event, EffectFailed)
    assert "no gate has let call c0.0" in event.failure.message


def test_a_tool_that_is_not_there_fails_with_a_remedy() -> None:
    """A resumed run needs the tools it was started with."""
    one = performer()

    event = performed(CallTool(3, "c0.1", call("gone")), one)

    assert isinstance(event, EffectFailed)
    assert "resume with the tools" in event.failure.message
    assert one.exception is not None


def test_each_call_is_checked_in_its_place() -> None:
    """One check a call, whatever is wrong with the others."""
    calls = (call("read"), call("gone"), call("read", arguments="{"), call("write"), call("picky"))

    event = performed(CheckCalls(1, 0, calls, tuple(range(5))), run=replied(reply(*calls)))

    assert isinstance(event, CallsChecked)
    assert [False, False, False, True, True] == [one.needs_approval for one in event.checks]
    assert [False, True, True, False, False] == [bool(one.problem) for one in event.checks]


def test_a_predicate_knows_the_place_of_its_call_among_equal_ones() -> None:
    """The very same object twice is still two calls; refused ones keep their place."""
    SEEN.clear()
    twin = call("picky", arguments='{"x": 1}')
    run = replied(reply(call("nowhere"), twin, twin), CallVerdict("unknown", "?"), None, None)

    event = performed(CheckCalls(1, 0, (twin, twin), (1, 2)), run=run)

    assert isinstance(event, CallsChecked)
    assert ["c0.1", "c0.2"] == SEEN
    assert not any(one.needs_approval for one in event.checks)


@pytest.mark.parametrize(
    ("approval", "approved", "reason"),
    [
        (Approval(True), True, ""),
        (Approval(False, "no"), False, "no"),
        (Approval(True, "fixed", '{"x": 2}'), True, "fixed"),
        (Approval(True, "", '{"x": "two"}'), False, "edited arguments: Invalid"),
        (Approval(True, "", "{"), False, "edited arguments: Invalid"),
    ],
)
def test_a_decision_is_taken_as_it_is_unless_it_could_not_run(
    approval: Approval, approved: bool, reason: str
) -> None:
    """Arguments that a human edited are checked like the model's."""

    async def approve(effect: AskHuman, run: Run[None]) -> Approval:
        return approval

    event = performed(AskHuman(2, "c0.0", call("write")), performer(approve))

    assert isinstance(event, Decided)
    assert approved == event.approved
    assert event.reason.startswith(reason)


def test_an_approver_that_raises_has_failed() -> None:
    """The traceback is kept for people."""

    async def approve(effect: AskHuman, run: Run[None]) -> Approval:
        raise ValueError("asleep")

    event = performed(AskHuman(2, "c0.0", call("write")), performer(approve))

    assert isinstance(event, EffectFailed)
    assert ("ValueError", "asleep") == (event.failure.error, event.failure.message)
    assert "asleep" in event.failure.traceback


async def changes(run: Run[None]) -> Changes:
    """Return an answer."""
    return Changes(model="other")


async def nothing(run: Run[None]) -> Changes:
    """Return no answer."""
    answer: Changes = wrong(None)
    return answer


def test_a_callback_s_answer_is_a_fact() -> None:
    """And a missing or wrong one is a failure that says what was expected."""
    callbacks = {"changes": changes, "nothing": nothing}
    one = performer(callbacks=callbacks)

    assert CallbackReturned(5.0, 1, Changes(model="other")) == performed(Invoke(1, "changes"), one)
    for name, message in (("nothing", "found NoneType"), ("gone", "it has ['changes', 'nothing']")):
        event = performed(Invoke(1, name), one)
        assert isinstance(event, EffectFailed)
        assert message in event.failure.message
    event = performed(Invoke(1, "gone"))
    assert isinstance(event, EffectFailed)
    assert "no callbacks" in event.failure.message


@pytest.mark.parametrize(
    "answer",
    [
        BranchesJoined(wrong(3)),
        StopRequested(wrong(("cost", 1))),
        AnswerChecked(accepted=wrong("yes")),
        NodeReturned(wrong(5)),
        NodeReturned("Ok", state=wrong(5), changed=True),
        Changes(messages=wrong(["hi"])),
    ],
)
def test_an_answer_that_no_journal_can_hold_is_a_failure(answer: CallbackAnswer) -> None:
    """It names the callback, and the run can still be read."""
    ports: Ports[None] = Ports(
        store=MemoryStore(),
        models={},
        toolbox=Toolbox(()),
        callbacks={"mine": lambda _: answer},
        state_type=str,
        kept=True,
    )
    one = Performer(ports)

    event = performed(Invoke(1, "mine"), one)

    assert isinstance(event, EffectFailed)
    assert "ConfigError" == event.failure.error
    assert "callback 'mine' return" in event.failure.message


def test_what_nobody_was_asked_for_surely_has_not_begun() -> None:
    """A client's tool before its run has parked, and a child that could not yet be claimed."""
    client = CallTool(1, "c0.0", call(), client=True)
    child = StartRun(2, "c0.1", "kid", "", ())
    run = evolve(fresh(), pending={1: client, 2: child}, next_effect=3)
    one = performer()

    assert (1, 2) == one.not_started((), run, ())
    assert (1,) == one.not_started((), run, {"c0.1"})
    one.resume(run)
    assert (2,) == one.not_started((), run, ())


class Mine(ConfigError):
    """A mistake of a kind that this package does not know."""


def test_a_mistake_of_any_kind_is_raised_as_what_it_was() -> None:
    """In the process that it happened in."""

    def mine(run: Run[None]) -> Changes:
        raise Mine("boom")

    one = performer(callbacks={"mine": mine})
    event = performed(Invoke(1, "mine"), one)
    assert isinstance(event, EffectFailed)
    ending = Ending(EndReason.ERROR, failure=event.failure)

    assert isinstance(one.exception_behind(evolve(fresh(), ending=ending)), Mine)


ASK = AskHuman(2, "c0.0", call("write"))
ASKED = CallModel(1, "m", ModelRequest(()))


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (issue(capability_of(fresh(), ASK), b"s"), ""),
        (issue(capability_of(fresh(), ASK), b"x"), "forged"),
        (issue(capability_of(evolve(fresh(), id="other"), ASK), b"s"), "of another run"),
        ("no token", "malformed"),
    ],
)
def test_an_approver_s_token_must_be_about_the_call(token: str, reason: str) -> None:
    """Who asks elsewhere and passes the answer on may pass on a wrong one."""

    async def approve(effect: AskHuman, run: Run[None]) -> Approval:
        return Approval(True, token=token)

    one = Performer(evolve_ports(approve=approve, secret=b"s"))
    event = performed(ASK, one)

    assert isinstance(event, Decided)
    assert (reason == "") is event.approved
    assert reason in event.reason


def evolve_ports(**changes: object) -> Ports[None]:
    """Return the usual ports with these changes."""
    ports: Ports[None] = Ports(
        store=MemoryStore(), models={}, toolbox=Toolbox(TOOLS), clock=lambda: 5.0
    )
    return evolve(ports, **wrong(changes))


def test_open_calls_are_answered_by_what_came_with_the_conversation() -> None:
    """Those of turn -1 only: whatever the model asks for later has nobody to answer it."""

    def given_answer(effect: AskHuman | CallTool) -> Approval | ToolOutcome:
        return Approval(True) if isinstance(effect, AskHuman) else ToolOutcome("theirs", "ok")

    one = Performer(evolve_ports(given_answer=given_answer))
    asked = AskHuman(1, "c-1.0", call("write"))
    client = CallTool(2, "c-1.1", call("client"), client=True)

    later = CallTool(2, "c0.1", call("client"), client=True)
    effects = (asked, client, ASK, later)
    assert [*effects[:2]] == one.performable(effects, fresh())
    assert Decided(5.0, 1, approved=True) == performed(asked, one)
    assert ToolReturned(5.0, 2, "theirs") == performed(client, one)


def test_a_turn_that_nobody_attends_goes_on_by_itself() -> None:
    """A run that was iterated, taken up by a plain resume."""
    wish = AwaitCaller(1)
    assert Performer(evolve_ports()).performable([wish], fresh())
    assert not Performer(evolve_ports(attended=True)).performable([wish], fresh())
    assert Steered(5.0, 1) == asyncio.run(
        Performer(evolve_ports()).perform(AwaitCaller(1), fresh())
    )


def test_conditions_are_told_gate_by_gate() -> None:
    """Those that hold and those that fail; the names of one gate mean nothing in another."""

    def big(arguments: dict[str, int], context: ToolContext) -> bool:
        return arguments["x"] > 1

    def broken(arguments: dict[str, int], context: ToolContext) -> bool:
        raise LookupError

    outer = allow("read", when=big) | allow("write")
    inner = deny("read", when=broken) | ask("read", when=big)
    one = Performer(evolve_ports(gates=(outer, inner)))
    calls = (call("read", "", '{"x": 2}'), call("read", "", '{"x": 1}'))

    run = replied(reply(*calls))
    run = evolve(run, setup=evolve(run.setup, rules=(outer.rules, inner.rules)))

    event = performed(CheckCalls(1, 0, calls, (0, 1)), one, run)

    assert isinstance(event, CallsChecked)
    assert [(("big",), ("big",)), ((), ())] == [one.met for one in event.checks]
    # What `broken` says nobody knows.
    assert [((), ()), (("big",), ("big",))] == [one.unmet for one in event.checks]


def test_a_gate_unknown_to_the_journal_decides_where_it_is_known() -> None:
    """The run was taken up under it; the journal keeps what it has said."""

    def big(arguments: dict[str, int], context: ToolContext) -> bool:
        return arguments["x"] > 1

    gate = deny("read", when=big, reason="too big") | ask("read")
    calls = (call("read", "", '{"x": 2}'), call("read", "", '{"x": 1}'))

    event = performed(
        CheckCalls(1, 0, calls, (0, 1)),
        Performer(evolve_ports(gates=(gate,))),
        replied(reply(*calls)),
    )

    assert isinstance(event, CallsChecked)
    assert [gate.rules[:1], gate.rules[1:]] == [one.added for one in event.checks]
    assert [(), ()] == [one.met for one in event.checks]


def test_a_price_that_cannot_be_told_is_unknown() -> None:
    """The table is the user's own function."""

    def raising(answered: Reply, label: str) -> float:
        raise KeyError("model")

    ports = evolve_ports(price=raising)

    assert Models(ports, Performer(ports)).price(reply("x"), "m") is None
