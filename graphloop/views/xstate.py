"""xstate: a graph as the configuration of an XState machine (version 5), for its tools.

Nodes are states, outcomes are events, END is the final state; what nodes do is not in it. A node's
own name stands in `meta`, where it is none that XState can look up.
"""

from __future__ import annotations

import json
from typing import TypeVar

from ..graph import Graph
from ..outcomes import outcome_name
from .state_names import state_names

__all__ = ["xstate"]

S = TypeVar("S")


def xstate(graph: Graph[S]) -> str:
    """Return the graph as JSON that `createMachine` takes; its order is the table's."""
    ids = state_names(graph)
    states: dict[str, object] = {}
    for name, node in graph.nodes.items():
        leads = {outcome_name(one): ids[target] for one, target in graph.table[name].items()}
        states[ids[name]] = {"meta": {"name": name, "kind": node.kind}, "on": leads}
    states[ids["END"]] = {"type": "final"}
    machine = {"id": graph.name, "initial": ids[graph.start], "states": states}
    return json.dumps(machine, indent=2) + "\n"
