"""Exports a graph as a state machine in SCXML or XState, for tools that draw or simulate these.

Each node becomes a state, each outcome an event, and END the final state. The code of the nodes is
left out.
"""

from __future__ import annotations

import json
import re
from typing import Final, TypeVar
from xml.sax.saxutils import quoteattr

from ..graph import NodeGraph
from ..outcomes import outcome_name
from .drawing import visible

__all__ = ["NAMESPACE", "scxml", "xstate"]

S = TypeVar("S")

NAMESPACE: Final = "urn:graphloop"

_plain = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch


def scxml(graph: NodeGraph[S]) -> str:
    """Return the graph as an SCXML 1.0 document, with the states in the order of its table."""
    ids = _state_ids(graph)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0"'
        f" xmlns:gl={quoteattr(NAMESPACE)} name={_quote(graph.name)}"
        f" initial={_quote(ids[graph.start])}>",
    ]
    for name, node in graph.nodes.items():
        own = "" if ids[name] == name else f" gl:name={_quote(name)}"
        lines.append(f"  <state id={_quote(ids[name])}{own} gl:kind={_quote(node.kind)}>")
        for outcome, target in graph.table[name].items():
            event = _quote(outcome_name(outcome))
            lines.append(f"    <transition event={event} target={_quote(ids[target])}/>")
        lines.append("  </state>")
    lines += ['  <final id="END"/>', "</scxml>"]
    return "\n".join(lines) + "\n"


def xstate(graph: NodeGraph[S]) -> str:
    """Return the graph as JSON for `createMachine` of XState 5, with the states in table order."""
    ids = _state_ids(graph)
    states: dict[str, object] = {
        ids[name]: {
            "meta": {"name": name, "kind": node.kind},
            "on": {
                outcome_name(outcome): ids[target] for outcome, target in graph.table[name].items()
            },
        }
        for name, node in graph.nodes.items()
    }
    machine = {
        "id": graph.name,
        "initial": ids[graph.start],
        "states": {**states, "END": {"type": "final"}},
    }
    return json.dumps(machine, indent=2) + "\n"


def _state_ids(graph: NodeGraph[S]) -> dict[str, str]:
    """Map the name of each node to its state id: the name, or a number such as `node-1`.

    A name gets a number if it has other characters than letters, digits and `_`, which XML ids and
    XState paths require. The hyphen keeps `node-1` different from every id that is a name.
    """
    ids = {
        name: name if _plain(name) else f"node-{number}"
        for number, name in enumerate(graph.nodes, 1)
    }
    return {**ids, "END": "END"}


def _quote(text: str) -> str:
    return quoteattr(visible(text))
