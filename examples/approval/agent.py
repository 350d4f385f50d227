"""A tool that a human must agree to, but only where it is about real money.

graphloop run examples/approval               asks at the terminal; parks where there is none
python examples/approval/agent.py             parks in runs.db and exits; again: asks, goes on
"""

import sys
from collections.abc import Mapping

from graphloop import Agent, Approval, Model, Pending, ToolContext, errors, tool
from graphloop.testing import ScriptedModel
from graphloop.values import ModelRequest

PROMPT = "Refund orders A-17 (20 dollars) and B-42 (250 dollars)."


def is_large(arguments: Mapping[str, int], _: ToolContext) -> bool:
    """Tell whether a refund needs somebody's consent."""
    return arguments["amount"] > 100


@tool(needs_approval=is_large)
async def refund(order: str, amount: int) -> str:
    """Pay the dollars of an order back."""
    return f"{amount} dollars paid back for {order}"


def build(model: Model) -> Agent:
    """Return the agent, asking `model`."""
    return Agent(model, tools=[refund])


def reply(request: ModelRequest) -> Mapping[str, object] | str:
    """Answer for a model, by the conversation alone: the second process was not there before."""
    orders = [{"order": "A-17", "amount": 20}, {"order": "B-42", "amount": 250}]
    calls = {"calls": [{"name": "refund", "arguments": order} for order in orders]}
    return calls if len(request.messages) == 1 else "I have done what was allowed."


def ask(call: Pending) -> Approval:
    """Ask at the terminal; Enter denies, and so does anything but yes."""
    said = input(f"{call.name}{call.arguments}: agree? y/N, or say why not: ").strip()
    return call.approve() if said.lower() in {"y", "yes"} else call.decline(said)


def main(store: str = "runs.db") -> None:
    """Begin the run, or take it up where another process left it."""
    agent = build(ScriptedModel([reply])).with_options(store=store)
    try:
        parked = agent.resume_sync("refunds")
    except errors.UnknownRun:
        parked = agent.generate_sync(PROMPT, run_id="refunds")
        print(parked.end_reason, *(one.arguments for one in parked.pending))
    else:
        result = agent.resume_sync("refunds", approvals={p.key: ask(p) for p in parked.pending})
        print(*(one.content for one in result.steps[0].tool_results), result.text, sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
