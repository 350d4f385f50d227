"""Agents three deep for tests: a root, its kids and their leaves, and the world they act upon.

Each process of a test builds the tree anew over the same disk; the plans make all of them say the
same, and the ledger tells what was done, whoever did it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from graphloop import Agent, Tool, ToolContext
from graphloop.agent.options import AgentOptions
from graphloop.stores.base import Store
from tests.planned_model import Line, PlannedModel, call

__all__ = ["Ledger", "Plans", "batch", "tree"]

Plans = Mapping[str, Sequence[Line]]
"""What is said in a conversation that begins with this prompt: go, kid or leaf."""


class Ledger:
    """Counts the executions of each call, by its run and its key."""

    def __init__(self) -> None:
        self.done: Counter[tuple[str, str]] = Counter()
        self.names: Counter[str] = Counter()

    def tool(self, name: str, *, gated: bool = False) -> Tool:
        """Return a tool that enters its executions here."""

        async def execute(arguments: dict[str, object], context: ToolContext) -> str:
            self.done[context.run_id, context.key] += 1
            self.names[name] += 1
            return f"{name} is done"

        return Tool(name=name, parameters={"type": "object"}, execute=execute, needs_approval=gated)


def batch(*names: str) -> Line:
    """Return one answer of a model that calls these; kid and leaf are told to be themselves."""
    return [call(one, prompt=one) if one in {"kid", "leaf"} else call(one) for one in names]


def tree(
    ledger: Ledger,
    plans: Plans,
    store: Store | None = None,
    *,
    kid: AgentOptions | None = None,
    root: AgentOptions | None = None,
) -> Agent:
    """Return the root of three levels of agents, each with the same tools.

    Args:
        ledger: what they act upon.
        plans: what they say.
        store: where their journals go.
        kid: options of the agents in the middle.
        root: options of the root.
    """
    model = PlannedModel(lambda prompt: plans.get(prompt, ()))
    own = [
        ledger.tool("note"),
        ledger.tool("pay", gated=True),
        Tool(name="client", parameters={"type": "object"}),
    ]
    leaf = Agent(model, tools=own, name="leaf")
    below: AgentOptions = {"tools": [*own, leaf.as_tool(description="deepest")], "name": "kid"}
    below = {**below, **kid} if kid else below
    child = Agent(model, **below)
    above: AgentOptions = {"tools": [*own, child.as_tool(description="below")], "store": store}
    above = {**above, **root} if root else above
    return Agent(model, **above)
