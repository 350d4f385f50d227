"""A tool that a human must agree to, but only where it is about real money.

graphloop run examples/approval                     asks at the terminal
graphloop run examples/approval --approve never     denies (or: always)
graphloop run examples/approval < /dev/null        nobody to ask: the run parks
"""

from collections.abc import Mapping

from graphloop import Agent, Model, ToolContext, tool

PROMPT = "Refund orders A-17 (20 dollars) and B-42 (250 dollars)."

ASK_ABOVE = 100


def is_large(arguments: Mapping[str, int], _: ToolContext) -> bool:
    """Tell whether a refund needs somebody's consent."""
    return arguments["amount"] > ASK_ABOVE


@tool(needs_approval=is_large)
async def refund(order: str, amount: int) -> str:
    """Pay the dollars of an order back."""
    return f"{amount} dollars paid back for {order}"


def build(model: Model) -> Agent:
    """Return the agent, asking `model`."""
    return Agent(model, tools=[refund])
