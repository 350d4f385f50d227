"""scxml: a graph as a state chart of the W3C, for tools that draw and simulate those.

Nodes are states, outcomes are events, END is the final state. What nodes do is not in it: a state
chart is the table, no more. Names that are no XML names are numbered, and stand in `gl:name`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar
from xml.sax.saxutils import quoteattr

from ..graph import Graph
from ..outcomes import outcome_name
from .drawing import visible
from .state_names import state_names

__all__ = ["NAMESPACE", "scxml"]

S = TypeVar("S")

NAMESPACE: Final = "urn:graphloop"


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


def _names(name: str, ids: Mapping[str, str]) -> str:
    own = "" if ids[name] == name else f" gl:name={_quoted(name)}"
    return f" id={_quoted(ids[name])}{own}"


def _quoted(text: str) -> str:
    return quoteattr(visible(text))
