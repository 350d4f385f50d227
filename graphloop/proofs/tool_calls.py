"""tool_calls: how many tools a run may run; a budget is kept by the nodes that run them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ..contract import contract_of
from ..node_protocol import Node
from ..nodes import Execute
from ..outcomes import Outcome
from ..spending import Budget
from .ground import Ground
from .nested import Nested, nobody_knows

__all__ = ["tool_calls_most"]

S = TypeVar("S")


def tool_calls_most(ground: Ground[S], graphs: Sequence[Nested], budget: Budget) -> int | None:
    """Return how many tools run at most, in a graph and those that it runs; None for any number."""
    nodes = [ground.graph.nodes[name] for name in ground.reached]
    nodes += [node for one in graphs[1:] for node in one.graph.nodes.values()]
    running = [node for node in nodes if _runs_tools(node)]
    # An agent that nobody knows may run some.
    if not running and not any(True for one in graphs for _ in nobody_knows(one)):
        return 0
    kept = all(isinstance(node, Execute) for node in running)
    return budget.tool_calls if kept else None


def _runs_tools(node: Node[S, Outcome]) -> bool:
    contract = contract_of(node)
    return contract is None or contract.tools or node.kind == "execute"
