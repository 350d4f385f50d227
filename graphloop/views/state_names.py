"""Names of states that every tool takes: letters, digits and `_`, each for one node."""

from __future__ import annotations

import re
from typing import TypeVar

from ..graph import Graph

__all__ = ["state_names"]

S = TypeVar("S")

_plain = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch


def state_names(graph: Graph[S]) -> dict[str, str]:
    """Return the state of each node, and of END: its own name, or `node_1` and so on."""
    names = [*graph.nodes, "END"]
    plain = {name for name in names if _plain(name)}
    states: dict[str, str] = {}
    number = 0
    for name in names:
        state = name
        if name not in plain:
            number += 1
            while (state := f"node_{number}") in plain:
                number += 1
        states[name] = state
    return states
