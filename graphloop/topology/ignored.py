"""Ignored: the findings that a file sets aside, each of a node that there is, for a reason.

A node of an agent is `agent/node`, as the checker names it; `agent/` is the agent as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias, final

from pydantic import Field, TypeAdapter

from ..errors import nearest
from ..graph import NodeGraph
from ..node_protocol import Node
from ..outcomes import Outcome
from .diagnostics import ParseError
from .document import AgentEntry, Document
from .included import graphs_run
from .models import Form, Reading, Said, model_of, parse, parse_fields
from .tree import Entry, Items, Mark, Scalar, Value, entry_at

__all__ = ["CODES", "Findable", "IgnoreForm", "lost", "read_ignored"]

CODES: Final = tuple(f"GL{number}" for number in range(1, 14))
"""What may be set aside."""

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


MANY: Final[Form] = list
IGNORE: Final = model_of(
    "ignore", {"node": Said, "code": Literal[CODES], "reason": Said}, ["code", "reason"]
)
IgnoreForm: Final[Form] = Annotated[MANY[IGNORE.form], Field(min_length=1)]
LISTED: Final = TypeAdapter(Annotated[list[object], Field(min_length=1)])


def read_ignored(value: Value, known: Findable, to: Reading) -> dict[tuple[str, str], str]:
    """Return the reasons by node and code; what is wrong is noted.

    Raises:
        ParseError: the value is no list, or an empty one.
    """
    parse(LISTED, value, to, "ignore")
    ignored: dict[tuple[str, str], str] = {}
    first: dict[tuple[str, str], Mark] = {}
    for item in value.items if isinstance(value, Items) else ():
        match entry_at(item, "node"):
            case Entry(value=Scalar(str(path), mark)) if wrong := lost(
                path, known, to.diagnostics.nearest
            ):
                to.diagnostics.note(mark, *wrong)
            case _:
                pass
        try:
            said = parse_fields(IGNORE, item, to, "ignore")
        except ParseError:
            continue
        place = node, code = said.get("node", ""), said["code"]
        if first.setdefault(place, item.mark) is not item.mark:
            of = repr(node) if node else "the graph"
            found = f"{code} of {of} is set aside twice, first on line {first[place].line}."
            to.diagnostics.note(item.mark, found, "remove one of the two.")
        ignored[place] = said["reason"]
    return ignored


def lost(path: str, known: Findable, near: Near = nearest) -> tuple[str, str] | None:
    """Return what is wrong with the name of a node, and what to do; None for one that there is.

    Args:
        path: the name; what stands below a graph that is not known is taken to be there.
        known: what there is.
        near: suggests another name.
    """
    *agents, node = path.split("/")
    within = ""
    here: Findable | NodeGraph[Any] = known
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


def _below(here: Findable | NodeGraph[Any]) -> dict[str, Findable | NodeGraph[Any] | None]:
    """Return what the nodes of a graph run, and its models call; None for an unknown graph."""
    nodes = [node for node in here.nodes.values() if node is not None]
    below: dict[str, Findable | NodeGraph[Any] | None] = {**graphs_run(nodes)}
    if isinstance(here, NodeGraph):
        return {**below, **here.agents}
    return below | {name: _of(entry.document) for name, entry in here.agents.items()}


def _of(document: Document | None) -> Findable | None:
    if document is None:
        return None
    return Findable(document.graph.nodes, document.agents, document.tools)
