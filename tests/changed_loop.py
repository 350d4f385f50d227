"""The standard loop, and what becomes of it when somebody changes it."""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType
from typing import Literal, TypeAlias

from graphloop.graph import EndType, NodeGraph
from graphloop.loop import Standard, standard_edges
from graphloop.node_protocol import Node
from graphloop.outcomes import AnsweredCalls, Calls, Outcome

__all__ = ["by_name", "bypassed", "changed", "gateless", "unbounded"]

Target: TypeAlias = Node[None, Outcome] | Literal[EndType.END]
Table: TypeAlias = dict[Node[None, Outcome], dict[type[Outcome] | EllipsisType, Target]]


def changed(
    change: Callable[[Standard, Table], None] | None = None, nodes: Standard | None = None
) -> NodeGraph[None]:
    """Return the standard loop after `change` was made to its table."""
    nodes = nodes or Standard()
    table: Table = {node: dict(row) for node, row in standard_edges(nodes).items()}
    if change is not None:
        change(nodes, table)
    return NodeGraph("agent", nodes.prepare, table)


def by_name(table: Table, name: str) -> Node[None, Outcome]:
    """Return the node of that name."""
    return next(node for node in table if node.name == name)


def bypassed(nodes: Standard, table: Table) -> None:
    """Lead the model's calls past the gate."""
    table[nodes.model][Calls] = nodes.execute


def unbounded(nodes: Standard, table: Table) -> None:
    """Lead the loop past the stop check."""
    table[by_name(table, "append")][AnsweredCalls] = nodes.prepare


def gateless(nodes: Standard, table: Table) -> None:
    """Remove the gate."""
    del table[nodes.gate]
    for row in table.values():
        for outcome, target in row.items():
            if target is nodes.gate:
                row[outcome] = nodes.execute
