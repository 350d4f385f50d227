"""The user's `approve_tool_call`, told of a call as somebody outside knows it."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from graphloop import Agent, Approval, Pending, RunResult, tool
from graphloop.effects import AskHuman
from graphloop.errors import ConfigError
from graphloop.front.tool_approver import Decide, ToolApprover
from graphloop.testing import ScriptedModel
from graphloop.values import ToolCall, ToolResult, evolve
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
    (lambda _: cast("bool", 1), "Tool call denied."),  # what an unchecked caller returns
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

    assert above.within("payer").agents == ("desk", "payer")
    assert above.agents == ("desk",)
