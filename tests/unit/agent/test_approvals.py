"""Approvals: the calls that wait at a gate, the person who is asked, and the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from graphloop import (
    Agent,
    Approval,
    EndReason,
    Pending,
    RunResult,
    Tool,
    ToolContext,
    allow,
    ask,
    deny,
    tool,
)
from graphloop.agent.answers import ToolApprover, approver_alone, child_approver
from graphloop.agent.options import Decide
from graphloop.driver.ports import LeftOpen
from graphloop.effects import AskHuman
from graphloop.errors import ConfigError, ToolError
from graphloop.events import Setup
from graphloop.policy.policy import Policy
from graphloop.run import Run
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.tools.outcome import ToolOutcome
from graphloop.values import AssistantMessage, TextPart, ToolCall, ToolResult, UserMessage, evolve
from tests.strategies import call, fresh, reply, wrong
from tests.unit.agent.doubles import PAY, Till, read, statuses, texts


def again() -> str:
    """Read again."""
    return "again"


def behind(gate: Policy, *names: str, **options: Any) -> tuple[RunResult, list[str]]:
    """Run these calls in one turn behind a gate; return the statuses of their results."""
    said = ScriptedModel([reply(*(call(name, name) for name in names)), "done"])
    result = Agent(said, tools=[read, again], gate=gate, **options).generate_sync("go")
    return result, [one.status for one in result.steps[0].tool_results] if result.steps else []


def is_broken(arguments: object, context: ToolContext) -> bool:
    """Fail to say."""
    raise LookupError("bug")


def is_first(arguments: object, context: ToolContext) -> bool:
    """Whether it is the first turn."""
    return context.turn == 0


@pytest.mark.parametrize(
    ("gate", "statuses"),
    [
        (allow("read", "again"), ["ok", "ok"]),
        (allow("read"), ["ok", "denied"]),
        (deny("read", reason="no") | allow("*"), ["denied", "ok"]),
        (allow("r*") | deny("*"), ["ok", "denied"]),
        (allow("read", when=is_first), ["ok", "denied"]),
        (allow("read", when=is_broken), ["denied", "denied"]),
    ],
)
def test_a_gate_decides_about_every_call(gate: Policy, statuses: list[str]) -> None:
    assert statuses == behind(gate, "read", "again")[1]


def yes(_: Pending) -> bool:
    """Approve."""
    return True


@pytest.mark.parametrize(
    ("answer", "paid", "status"),
    [
        (True, [7], "ok"),
        (False, [], "denied"),
        (Approval(approved=True), [7], "ok"),
        (Approval(approved=False, reason="too much"), [], "denied"),
        (Approval(approved=True, arguments='{"amount": 5}'), [5], "ok"),
        (Approval(approved=True, arguments={"amount": 5}), [5], "ok"),
        (Approval(approved=False, arguments="nonsense"), [], "denied"),
    ],
)
def test_an_answer_lets_a_parked_call_run_or_not(
    answer: object, paid: list[int], status: str
) -> None:
    till = Till(PAY, "done")

    result = till.resumed(till.parked(), {"c0.0": cast("bool", answer)})

    assert (paid, "done") == (till.paid, result.text)
    assert [status] == [one.status for one in result.steps[0].tool_results]


def test_the_model_reads_the_reason_of_a_denial() -> None:
    till = Till(PAY, "done")

    result = till.resumed(till.parked(), {"c0.0": Approval(approved=False, reason="too much")})

    assert "too much" in result.steps[0].tool_results[0].text


@pytest.mark.parametrize("answer", [None, "yes", 1, Approval(wrong("no"))])
def test_what_is_neither_a_yes_nor_a_no_lets_nothing_run(answer: object) -> None:
    till = Till(PAY, "denied", PAY, "done")
    denied = till.agent.with_options(approve_tool_call=lambda _: wrong(answer)).generate_sync("go")
    assert ["denied"] == statuses(denied)

    leg = till.agent.generate_sync("go")
    history = [UserMessage("go"), *leg.messages]
    with pytest.raises(
        ConfigError, match=r"approvals\['c0.0'\]: expected True, False or an Approval"
    ):
        till.agent.resume_sync(leg, approvals={"c0.0": wrong(answer)})
    with pytest.raises(
        ConfigError, match=r"approvals\['c-1.0'\]: expected True, False or an Approval"
    ):
        till.agent.generate_sync(messages=history, approvals={"c-1.0": wrong(answer)})

    assert [] == till.paid
    till.agent.resume_sync(leg, approvals={"c0.0": True})
    assert [7] == till.paid


def test_an_edit_that_does_not_fit_leaves_the_run_waiting() -> None:
    store = MemoryStore()
    till = Till(PAY, "done", store=store)
    first = till.parked("r")
    before = asyncio.run(store.load("r"))

    for edit in ('{"amount": "much"}', "{", "[]"):
        with pytest.raises(ConfigError, match=r"approvals\['c0.0'\].*(amount|fail|JSON)"):
            till.resumed(first, {"c0.0": Approval(approved=True, arguments=edit)})

    assert before == asyncio.run(store.load("r"))
    till.resumed("r", {"c0.0": Approval(approved=True, arguments='{"amount": 6}')})
    assert [6] == till.paid


PAY_TWICE = reply(call("pay", arguments='{"amount": 1}'), call("pay", arguments='{"amount": 2}'))


def test_what_is_not_answered_keeps_the_run_parked() -> None:
    till = Till(PAY_TWICE, "done", store=MemoryStore())

    first = till.parked("r")
    assert first.run == till.resumed("r").run
    second = till.resumed(first, {"c0.1": True})

    assert EndReason.PARKED is second.end_reason
    assert ["c0.0"] == [one.key for one in second.pending]
    assert [] == till.paid
    assert "done" == till.resumed("r", {"c0.0": True}).text
    assert [1, 2] == till.paid


@pytest.mark.parametrize(
    ("value", "text", "status"),
    [
        ("sunny", "sunny", "ok"),
        ({"degrees": 21}, '{"degrees":21}', "ok"),
        (None, "null", "ok"),
        (TextPart("part"), "part", "ok"),
        (ToolError("the tab was closed"), "the tab was closed", "error"),
        (OSError("disk"), "OSError: disk", "error"),
        (ToolOutcome("late", "timeout"), "late", "timeout"),
    ],
)
def test_a_client_tool_s_result_is_what_the_model_reads(
    value: object, text: str, status: str
) -> None:
    till = Till(reply(call("client")), "done")

    result = till.resumed(till.parked(), tool_results={"c0.0": value})

    assert ("done", [text], [status]) == (result.text, texts(result), statuses(result))
    assert result.steps[0].tool_results[0] in till.model.requests[1].messages


def test_client_tools_can_be_answered_one_by_one() -> None:
    till = Till(reply(call("client"), call("client")), "done")

    second = till.resumed(till.parked(), tool_results={"c0.1": "second"})
    third = till.resumed(second, tool_results={"c0.0": "first"})

    assert ["c0.0"] == [one.key for one in second.pending]
    assert ["first", "second"] == [one.text for one in third.steps[0].tool_results]


@pytest.mark.parametrize(
    ("approvals", "tool_results", "message"),
    [
        ({"c0.9": True}, {}, r"`approvals` answers 'c0.9'.*waits for c0.0.*Did you mean 'c0.0'"),
        ({}, {"c0.0": "x"}, r"`tool_results` answers 'c0.0'.*nothing of this kind"),
        ({"c0.0": True, "zz": True}, {}, "'zz'"),
    ],
)
def test_a_wrong_key_undoes_the_right_one_beside_it(
    approvals: dict[str, bool | Approval], tool_results: dict[str, object], message: str
) -> None:
    store = MemoryStore()
    till = Till(PAY, "done", store=store)
    first = till.parked("r")
    before = asyncio.run(store.load("r"))

    with pytest.raises(ConfigError, match=message):
        till.resumed(first, approvals, tool_results)

    assert (before, 1) == (asyncio.run(store.load("r")), len(till.model.requests))
    assert [] == till.paid


def answering(answer: object) -> Callable[[Pending], object]:
    """Return an approver that gives this answer."""
    return lambda _: answer


async def approve_later(pending: Pending) -> bool:
    """Approve, in an async function."""
    await asyncio.sleep(0)
    return pending.name == "pay"


def no_mind(_: Pending) -> bool:
    """Fail to decide."""
    raise LookupError("no policy")


@pytest.mark.parametrize(
    ("decide", "paid"),
    [
        (answering(True), [7]),
        (answering(False), []),
        (answering(Approval(approved=True, arguments='{"amount": 3}')), [3]),
        (answering(Approval(approved=True, arguments='{"amount": "x"}')), []),
        (answering("yes"), []),
        (answering(None), []),
        (approve_later, [7]),
        (no_mind, []),
    ],
)
def test_an_approver_in_this_process_decides_at_once(
    decide: Callable[[Pending], bool], paid: list[int]
) -> None:
    till = Till(PAY, "done")

    result = asyncio.run(till.agent.with_options(approve_tool_call=decide).generate("go"))

    assert (paid, EndReason.COMPLETED) == (till.paid, result.end_reason)


def test_an_approver_reads_the_call_it_decides_about() -> None:
    till = Till(reply(call("pay", "id-1", '{"amount": 7}')), "done")
    told: list[Pending] = []

    def decide(pending: Pending) -> bool:
        told.append(pending)
        return True

    asyncio.run(till.agent.with_options(approve_tool_call=decide).generate("go"))

    assert [Pending("approval", "c0.0", "id-1", "pay", '{"amount": 7}')] == told


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"{amount} paid"


def says(name: str, **arguments: object) -> dict[str, object]:
    return {"calls": [{"name": name, "arguments": arguments, "id": name}]}


def result_of(run: RunResult) -> ToolResult:
    return run.steps[0].tool_results[0]


def paid(decide: Decide) -> ToolResult:
    model = ScriptedModel([says("pay", amount=5), "done"])
    return result_of(Agent(model, tools=[pay], approve_tool_call=decide).generate_sync("pay"))


def test_an_approver_reads_the_conversation_of_the_call() -> None:
    told: list[Pending] = []

    def decide(pending: Pending) -> bool:
        told.append(pending)
        return False

    paid(decide)
    parked = Agent(ScriptedModel([says("pay", amount=5)]), tools=[pay]).generate_sync("go")

    for pending in (told[0], parked.pending[0]):
        asked, said = pending.messages
        assert isinstance(asked, UserMessage)
        assert isinstance(said, AssistantMessage)
        assert ["pay"] == [one.name for one in said.calls]


def test_an_edit_of_a_call_that_may_have_run_is_a_mistake() -> None:
    approver = ToolApprover(lambda _: Approval(approved=True, arguments='{"amount": 2}'))
    ask = AskHuman(7, "c0.0", ToolCall("p", "pay", '{"amount": 5}'), unknown=True)

    with pytest.raises(ConfigError, match=r"c0\.0#7: it may have run already"):
        asyncio.run(approver(ask, fresh()))
    assert asyncio.run(approver(evolve(ask, unknown=False), fresh())).approved


READS, ASKS = allow("read") | ask("pay"), ask("pay") | allow("*")


def decided(approver: object, run: Run[None], *names: str) -> list[bool | None]:
    """Return what is said of a call of each tool; None where the question stays open."""

    async def said(name: str) -> bool | None:
        assert isinstance(approver, ToolApprover)
        try:
            return (await approver(AskHuman(7, "c0.0", ToolCall("p", name, "{}")), run)).approved
        except LeftOpen:
            return None

    return [asyncio.run(said(name)) for name in names]


def under(*gates: Policy, depth: int = 1) -> Run[None]:
    """Return a run whose journal has these gates above it."""
    return evolve(fresh(), setup=Setup(rules=tuple([one.rules for one in gates]), depth=depth))


def test_an_agent_s_own_approver_is_asked_without_a_parent() -> None:
    own = ToolApprover(lambda _: True)

    today = child_approver(None, own, "payer", fresh(), [READS])
    gone = child_approver(None, own, "payer", fresh(), [])

    assert [True, None] == decided(today, under(), "read", "pay")
    assert [True, None] == decided(gone, under(READS), "read", "pay")
    assert [True, None] == decided(approver_alone(own, under()), under(READS), "read", "pay")
    assert [True, True] == decided(approver_alone(own, fresh()), under(READS), "read", "pay")
    assert child_approver(None, None, "payer", fresh(), [READS]) is None
    assert approver_alone(None, under()) is None


def test_what_its_own_gates_ask_it_answers_below_too() -> None:
    own = ToolApprover(lambda _: True, own=(ASKS.rules,))
    lenient = allow("*")
    bringer = child_approver(None, own, "lead", fresh(), [lenient])

    assert [True] == decided(bringer, under(lenient, ASKS), "pay")
    below = child_approver(bringer, None, "kid", under(lenient, ASKS), [lenient, ASKS, READS])
    assert [True] == decided(below, under(lenient, ASKS, READS, depth=2), "pay")
    assert [None] == decided(below, under(ask("*"), ASKS, READS, depth=2), "pay")
    top = child_approver(ToolApprover(own.decide), None, "kid", fresh(), [READS])
    assert [True] == decided(top, under(READS), "pay")


def same(arguments: dict[str, object]) -> object:
    """Return the arguments."""
    return arguments or "text"


GATED: Tool = Tool(name="read", parameters={"type": "object"}, execute=same, needs_approval=True)


def test_only_a_signed_approval_of_this_call_counts() -> None:
    agent = Agent(
        ScriptedModel([reply(call()), "done"], restart=True),
        tools=[GATED],
        approval_secret=b"secret",
    )
    other = agent.with_options(approval_secret=b"another")

    async def answered(answer: Callable[[Pending], object], asking: Agent = agent) -> str:
        (pending,) = (await asking.generate("go", run_id="r")).pending
        parked = await agent.generate("go", run_id="r")
        result = await agent.resume(parked, approvals={"c0.0": wrong(answer(pending))})
        return result.steps[0].tool_results[0].status

    assert "ok" == asyncio.run(answered(lambda pending: pending.approve()))
    assert "denied" == asyncio.run(
        answered(lambda pending: replace(pending.approve(), token=f"{pending.token}x"))
    )
    assert "denied" == asyncio.run(answered(lambda pending: pending.approve(), other))
