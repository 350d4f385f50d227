"""Ignored: the findings that a file sets aside, each of a node that there is, for a reason.

A node of an agent is `agent/node`, as the checker names it; `agent/` is the agent as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

from ..errors import nearest
from ..graph import Graph
from ..node_protocol import Node
from ..outcomes import Outcome
from .document import AgentEntry, Document
from .forms import Reading, Text
from .included import graphs_run
from .problems import Mark, Misread
from .record import mapping_of, refuse_unknown
from .tree import Entry, Items, Value

__all__ = ["CODES", "IGNORE_KEYS", "Findable", "lost", "read_ignored"]

CODES: Final = tuple(f"GL{number}" for number in range(1, 14))
"""What may be set aside."""

IGNORE_KEYS: Final = ("node", "code", "reason")

Near: TypeAlias = Callable[[str, Iterable[str]], str]
"""Suggests the nearest of some names."""


@final
@dataclass(frozen=True)
class Findable:
    """What findings can be about.

    Args:
        nodes: the nodes by name; None for one that could not be read.
        agents: the agents of the file.
        tools: its tools: registered ones may be agents, too.
    """

    nodes: Mapping[str, Node[Any, Outcome] | None]
    agents: Mapping[str, AgentEntry]
    tools: Container[str] = ()


def read_ignored(entry: Entry, known: Findable, to: Reading) -> dict[tuple[str, str], str]:
    """Return the reasons by node and code; what is wrong is noted."""
    ignored: dict[tuple[str, str], str] = {}
    first: dict[tuple[str, str], Mark] = {}
    items = entry.value.items if isinstance(entry.value, Items) else ()
    if not items:
        fix = "write `- {node: gate, code: GL6, reason: …}`."
        to.misread(entry.value, "a list of findings was expected", fix)
    for one in items:
        try:
            node, code, reason = _one(one, known, to)
        except Misread:
            continue
        if code and first.setdefault((node, code), one.mark) is not one.mark:
            line = first[node, code].line
            of = repr(node) if node else "the graph"
            found = f"{code} of {of} is set aside twice, first on line {line}."
            to.complaints.note(one.mark, found, "remove one of the two.")
        ignored[node, code] = reason
    return ignored


def _one(value: Value, known: Findable, to: Reading) -> tuple[str, str, str]:
    parts = {part.key: part for part in mapping_of(value, "an `ignore`", to)}
    refuse_unknown("an `ignore`", dict.fromkeys(IGNORE_KEYS), tuple(parts.values()), to)
    for key in IGNORE_KEYS[1:]:
        if key not in parts:
            to.complaints.note(value.mark, f"an `ignore` lacks `{key}`.", f"add `{key}: …`.")
    node, code, reason = [_said(parts, key, to) for key in IGNORE_KEYS]
    if node and (wrong := lost(node, known, to.complaints.nearest)) is not None:
        to.complaints.note(parts["node"].value.mark, *wrong)
    if code and code not in CODES:
        hint = to.complaints.nearest(code, CODES)
        fix = f"write one of {', '.join(CODES)}."
        to.complaints.note(parts["code"].value.mark, f"there is no finding {code!r}.{hint}", fix)
    return node, code, reason


def _said(parts: Mapping[str, Entry], key: str, to: Reading) -> str:
    if key not in parts:
        return ""
    try:
        return Text(filled=True).read(parts[key].value, to)
    except Misread:
        return ""


def lost(path: str, known: Findable, near: Near = nearest) -> tuple[str, str] | None:
    """Return what is wrong with the name of a node, and what to do; None for one that there is.

    Args:
        path: the name; what stands below a graph that is not known is taken to be there.
        known: what there is.
        near: suggests another name.
    """
    *agents, node = path.split("/")
    within = ""
    here: Findable | Graph[Any] = known
    for name in agents:
        if isinstance(here, Findable) and name in here.tools and name not in here.agents:
            return None
        below = _below(here)
        if name not in below:
            ways = [*below, *here.nodes]
            what = "runs no agent" if name in here.nodes else "is no agent"
            hint = "" if name in here.nodes else near(name, ways)
            found = f"{name!r}{within} {what}, so nothing stands below it.{hint}"
            return found, f"name one of the agents: {', '.join(below) or 'there are none'}."
        inner = below[name]
        if inner is None:
            return None
        here, within = inner, f" of the agent {name!r}"
    if node in here.nodes or (agents and not node):
        return None
    hint = near(node, here.nodes)
    fix = "name one of the nodes."
    if node in _below(here):
        fix = f"write '{path}/' for the agent as a whole, or '{path}/node' for a node of it."
    return f"there is no node {node!r}{within}.{hint}", fix


def _below(here: Findable | Graph[Any]) -> dict[str, Findable | Graph[Any] | None]:
    """Return what the nodes of a graph run, and its models call; None for an unknown graph."""
    nodes = [one for one in here.nodes.values() if one is not None]
    below: dict[str, Findable | Graph[Any] | None] = {**graphs_run(nodes)}
    if isinstance(here, Graph):
        return {**below, **here.agents}
    return below | {name: _of(one.document) for name, one in here.agents.items()}


def _of(document: Document | None) -> Findable | None:
    if document is None:
        return None
    return Findable(document.graph.nodes, document.agents, document.tools)
