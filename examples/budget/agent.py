"""Limits, prices and stop conditions; the result says which of them ended the run.

python examples/budget/agent.py          one question under five limits
graphloop run examples/budget            under the limits of `build`
"""

import asyncio
from pathlib import Path

from graphloop import Agent, Model, ModelPrice, budget, stop, tool
from graphloop.agent import AgentOptions
from graphloop.testing import ScriptedModel

PROMPT = "Find the best hotel in Lisbon."

# Dollars for a million tokens, by the name of the model; others are known from genai-prices.
PRICES = {"scripted": ModelPrice(input_usd=3.0, output_usd=15.0)}

LIMITS: tuple[AgentOptions, ...] = (
    {"max_steps": 2},
    {"budget": budget(tool_calls=3)},
    {"budget": budget(usd=0.03)},
    {"stop_when": stop.has_tool_call("compare")},
    {"stop_when": [stop.total_tokens_exceed(4_000), stop.step_count_is(2)]},
)


@tool
async def search(page: int) -> str:
    """Return a page of hotels."""
    return f"hotels {page * 10 - 9} to {page * 10}"


@tool
async def compare(hotels: list[str]) -> str:
    """Return the better ones of some hotels."""
    return ", ".join(sorted(hotels)[:2])


def build(model: Model) -> Agent:
    """Return the agent, asking `model`."""
    limit = budget(tokens=100_000, usd=0.50, tool_calls=20)
    return Agent(model, tools=[search, compare], budget=limit, prices=PRICES)


async def main() -> None:
    """Ask the same under each limit, and print how it ended."""
    agent = build(ScriptedModel.from_file(Path(__file__).with_name("script.yaml")))
    for limit in LIMITS:
        result = await agent.with_options(**limit).generate(PROMPT)
        spent = result.run.spent
        print(f"{result.end_reason:15}{', '.join(result.stopped_by):40}", end="")
        print(f"{len(result.steps)} turns, {spent.tool_calls} tools, {result.cost_usd:.4f} dollars")


if __name__ == "__main__":
    asyncio.run(main())
