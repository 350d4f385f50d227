"""The user's `approve_tool_call`, told of a call as somebody outside knows it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import cast

import pytest

from graphloop import Agent, Approval, Pending, Policy, RunResult, allow, ask, tool
from graphloop.drivers.ports import LeftOpen
from graphloop.effects import AskHuman
from graphloop.errors import ConfigError
from graphloop.events import Setup
from graphloop.front.answers import Decide, ToolApprover, approver_alone, approver_below
from graphloop.run import Run
from graphloop.testing import ScriptedModel
from graphloop.values import AssistantMessage, ToolCall, ToolResult, UserMessage, evolve
from tests.strategies import fresh


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"{amount} paid"


def call(name: str, **arguments: object) -> dict[str, object]:
    return {"calls": [{"name": name, "arguments": arguments, "id": name}]}


def result_of(run: RunResult[None]) -> ToolResult:
    return run.steps[0].tool_results[0]


def paid(decide: Decide) -> ToolResult:
    model = ScriptedModel([call("pay", amount=5), "done"])
    return result_of(Agent(model, tools=[pay], approve_tool_call=decide).generate_sync("pay"))


async def later(_: Pending) -> bool:
    return True


ANSWERS: list[tuple[Decide, str]] = [
    (lambda _: True, "5 paid"),
    (lambda _: Approval(True, arguments='{"amount": 4}'), "4 paid"),
    (later, "5 paid"),
    (lambda _: False, "Tool call denied."),
    (  # what an unchecked caller returns
        lambda _: cast("bool", 1),
        "Tool call denied. Reason: the approver answered 1, neither a yes nor a no.",
    ),
    (lambda _: Approval(False, "too much"), "Tool call denied. Reason: too much"),
]


@pytest.mark.parametrize(("decide", "told"), ANSWERS)
def test_only_what_is_exactly_an_approval_lets_a_call_run(decide: Decide, told: str) -> None:
    """A function that forgets to return must not have consented."""
    assert paid(decide).text == told


def test_who_decides_is_told_which_agents_ask() -> None:
    """At any depth, outermost first, with the key that would answer from outside."""
    asked: list[Pending] = []

    def decide(pending: Pending) -> bool:
        asked.append(pending)
        return True

    payer = Agent(ScriptedModel([call("pay", amount=5), "paid"]), tools=[pay], name="payer")
    desk = Agent(
        ScriptedModel([call("payer", prompt="pay"), "done"]),
        tools=[payer.as_tool(description="Pays.")],
        name="desk",
    )
    agent = Agent(
        ScriptedModel([call("desk", prompt="pay"), "all done"]),
        tools=[desk.as_tool(description="Decides.")],
        approve_tool_call=decide,
    )

    asyncio.run(agent.generate("pay"))

    (pending,) = asked
    assert (pending.key, pending.agents) == ("c0.0/c0.0/c0.0", ("desk", "payer"))
    assert (pending.name, pending.arguments) == ("pay", '{"amount": 5}')


def test_an_answer_that_edits_a_call_that_may_have_run_is_a_mistake() -> None:
    """It could not run, and its author should hear of it."""
    approver = ToolApprover(lambda _: Approval(approved=True, arguments='{"amount": 2}'))
    ask = AskHuman(7, "c0.0", ToolCall("p", "pay", '{"amount": 5}'), unknown=True)

    with pytest.raises(ConfigError, match=r"c0\.0#7: it may have run already"):
        asyncio.run(approver(ask, fresh()))
    assert asyncio.run(approver(evolve(ask, unknown=False), fresh())).approved


def test_a_run_of_an_agent_adds_its_name() -> None:
    """And leaves the approver of the run above as it is."""
    above = ToolApprover(lambda _: True, ("desk",))

    inherited = approver_below(above, None, "payer", fresh(), ())

    assert replace(above, agents=("desk", "payer")) == inherited
    assert above.agents == ("desk",)


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


def test_an_agent_s_own_approver_is_asked_where_nobody_is_above() -> None:
    """But not about what gates above ask, today or by the journal; then the question stays open."""
    own = ToolApprover(lambda _: True)

    today = approver_below(None, own, "payer", fresh(), [READS])
    gone = approver_below(None, own, "payer", fresh(), [])

    assert [True, None] == decided(today, under(), "read", "pay")
    assert [True, None] == decided(gone, under(READS), "read", "pay")
    assert [True, None] == decided(approver_alone(own, under()), under(READS), "read", "pay")
    assert [True, True] == decided(approver_alone(own, fresh()), under(READS), "read", "pay")
    assert approver_below(None, None, "payer", fresh(), [READS]) is None
    assert approver_alone(None, under()) is None


def test_what_its_own_gates_ask_it_answers_below_too() -> None:
    """Those are not above whoever brings it; who answers at the top answers everything."""
    own = ToolApprover(lambda _: True, own=(ASKS.rules,))
    lenient = allow("*")
    bringer = approver_below(None, own, "lead", fresh(), [lenient])

    assert [True] == decided(bringer, under(lenient, ASKS), "pay")
    below = approver_below(bringer, None, "kid", under(lenient, ASKS), [lenient, ASKS, READS])
    assert [True] == decided(below, under(lenient, ASKS, READS, depth=2), "pay")
    assert [None] == decided(below, under(ask("*"), ASKS, READS, depth=2), "pay")
    top = approver_below(ToolApprover(own.decide), None, "kid", fresh(), [READS])
    assert [True] == decided(top, under(READS), "pay")


def test_who_decides_is_told_the_conversation_that_the_call_is_in() -> None:
    """What was asked, and the reply with the call; a parked run's request holds the same."""
    told: list[Pending] = []

    def decide(pending: Pending) -> bool:
        told.append(pending)
        return False

    paid(decide)
    parked = Agent(ScriptedModel([call("pay", amount=5)]), tools=[pay]).generate_sync("go")

    for pending in (told[0], parked.pending[0]):
        asked, said = pending.messages
        assert isinstance(asked, UserMessage)
        assert isinstance(said, AssistantMessage)
        assert ["pay"] == [one.name for one in said.calls]
