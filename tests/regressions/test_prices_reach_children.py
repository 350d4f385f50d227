"""A price that is given at the top holds below: a budget counts what children cost."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from graphloop import Agent, EndReason, ModelPrice, budget
from graphloop.front.sub_agents import AgentTool
from graphloop.testing import ScriptedModel
from graphloop.values import Reply

ASK: Mapping[str, object] = {"calls": [{"name": "clerk", "arguments": {"prompt": "Work."}}]}


def six(_: Reply) -> float:
    """Price every reply at six dollars."""
    return 6.0


def half(_: Reply) -> float:
    """Price every reply at half a dollar."""
    return 0.5


def clerk(**options: object) -> AgentTool:
    """Return an agent that answers once and names no price, or the one it is given."""
    model = ScriptedModel(["worked"] * 3, label="clerk", model="small")
    made = Agent(model, name="clerk", **options)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    return made.as_tool(description="Works.")


def test_a_budget_counts_what_children_cost() -> None:
    """Else five dollars would buy any number of children."""
    boss = Agent(
        ScriptedModel([ASK, ASK, "done"]), tools=[clerk()], price=six, budget=budget(usd=15)
    )

    result = boss.generate_sync("Go")

    assert result.end_reason is EndReason.BUDGET
    assert result.cost_usd == 18.0
    assert result.warnings == ()


def test_prices_by_model_reach_children_of_children() -> None:
    """Each level takes them from the one above."""
    middle = Agent(
        ScriptedModel([ASK, "asked"], label="middle"), name="middle", tools=[clerk()]
    ).as_tool(description="Asks.")
    call = {"calls": [{"name": "middle", "arguments": {"prompt": "Ask."}}]}
    a_token = ModelPrice(1_000_000, 1_000_000)
    boss = Agent(
        ScriptedModel([call, "done"], model="big"),
        tools=[middle],
        prices={"big": a_token, "scripted": a_token, "small": a_token},
    )

    result = boss.generate_sync("Go")

    used = result.total_usage
    assert used is not None
    assert result.cost_usd == pytest.approx(used.input_tokens + used.output_tokens)


def test_a_child_s_own_price_goes_first() -> None:
    """It may have a contract of its own."""
    boss = Agent(ScriptedModel([ASK, "done"]), tools=[clerk(price=half)], price=six)

    assert boss.generate_sync("Go").cost_usd == 12.5
