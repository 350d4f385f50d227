"""State machines: a graph in the notations of tools that draw and simulate those.

Nodes are states, outcomes are events, END is the final state. What nodes do is not in it: a state
machine is the table, no more. A name that a tool cannot take is numbered, and stands beside.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, TypeVar
from xml.sax.saxutils import quoteattr

from ..graph import Graph
from ..outcomes import outcome_name
from .drawing import visible

__all__ = ["NAMESPACE", "scxml", "state_names", "xstate"]

S = TypeVar("S")

NAMESPACE: Final = "urn:graphloop"

_plain = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch


def scxml(graph: Graph[S]) -> str:
    """Return the graph as SCXML 1.0; its order is the table's."""
    ids = state_names(graph)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0"'
        f" xmlns:gl={quoteattr(NAMESPACE)} name={_quoted(graph.name)}"
        f" initial={_quoted(ids[graph.start])}>",
    ]
    for name, node in graph.nodes.items():
        lines.append(f"  <state{_names(name, ids)} gl:kind={_quoted(node.kind)}>")
        lines += [
            f"    <transition event={_quoted(outcome_name(one))} target={_quoted(ids[target])}/>"
            for one, target in graph.table[name].items()
        ]
        lines.append("  </state>")
    lines += [f"  <final{_names('END', ids)}/>", "</scxml>"]
    return "\n".join(lines) + "\n"


def xstate(graph: Graph[S]) -> str:
    """Return the graph as JSON that XState's `createMachine` (version 5) takes, in its order."""
    ids = state_names(graph)
    states: dict[str, object] = {}
    for name, node in graph.nodes.items():
        leads = {outcome_name(one): ids[target] for one, target in graph.table[name].items()}
        states[ids[name]] = {"meta": {"name": name, "kind": node.kind}, "on": leads}
    states[ids["END"]] = {"type": "final"}
    machine = {"id": graph.name, "initial": ids[graph.start], "states": states}
    return json.dumps(machine, indent=2) + "\n"


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


def _names(name: str, ids: Mapping[str, str]) -> str:
    own = "" if ids[name] == name else f" gl:name={_quoted(name)}"
    return f" id={_quoted(ids[name])}{own}"


def _quoted(text: str) -> str:
    return quoteattr(visible(text))
