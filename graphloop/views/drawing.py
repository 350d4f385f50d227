"""Drawing: the edges, notes and safe names that every diagram of a graph shows.

All diagrams derive them from the graph's transition table, so two diagrams cannot disagree.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar, final

from ..graph import NodeGraph
from ..node_protocol import Kind, Node, turns_direction
from ..nodes import Child, Gate, MapOver, Parallel, Router, Screen, Screened, Verify
from ..outcomes import Outcome, outcome_name
from ..policy import describe
from ..turn import SCREEN
from .marks import Way

__all__ = ["Line", "Look", "Role", "lines", "notes", "visible"]

S = TypeVar("S")

Look: TypeAlias = Kind | Literal["loop"]
"""The look of a shape: the kind of its node, or "loop" for a box with several nodes in a cycle."""

Role: TypeAlias = Literal["main", "closing", "leaving", "quiet", "side"]

ANYWHERE: Final = "on any worker"
_QUIET_OUTCOMES: Final = frozenset({"aborted", "failed"})
_NOT_FOLLOWED: Final = _QUIET_OUTCOMES | {"approval_needed"}
"""The outcomes that the main path does not follow: a failure, a stop, and a wait for a person."""


@final
@dataclass(frozen=True, slots=True)
class Line:
    """An edge of a diagram, with all the outcomes that lead from one node to one target.

    The role decides how the edge is drawn:

    - `main`: part of the main path, which follows the first outcome of each node from the start;
      the main path skips the outcomes `failed`, `aborted` and `approval_needed`
    - `closing`: leads from the end of the main path back into it
    - `leaving`: leads from the last node of the main path to END
    - `quiet`: has only the outcomes `failed` and `aborted`
    - `side`: any other edge
    """

    source: str
    target: str
    outcomes: tuple[str, ...]
    role: Role

    @property
    def ways(self) -> tuple[Way, ...]:
        """The edge's outcomes, each as a pair of its node's name and its own name."""
        return tuple([(self.source, outcome) for outcome in self.outcomes])


def lines(graph: NodeGraph[S]) -> tuple[Line, ...]:
    """Return the edges of a graph's diagram, in the order of the graph's table."""
    outcomes: dict[tuple[str, str], list[str]] = {}
    for edge in graph.edges:
        outcomes.setdefault((edge.source, edge.target), []).append(edge.outcome)
    path = _main_path(graph)
    return tuple(
        Line(source, target, tuple(names), _edge_role(source, target, names, path))
        for (source, target), names in outcomes.items()
    )


def notes(node: Node[S, Outcome], placed: Collection[str] = ()) -> tuple[str, ...]:
    """Return the lines of the note beside a node: rules, checks, agents, and where these run.

    Args:
        node: the node.
        placed: the agents among a model's tools whose runs any worker may drive.
    """
    if node.kind == "execute":
        return tuple([f"{name} {ANYWHERE}" for name in sorted(placed)])
    where = getattr(getattr(node, "kernel", node), "place", "here")
    return (*_node_notes(node), *([ANYWHERE] if where == "anywhere" else ()))


def _node_notes(node: Node[S, Outcome]) -> tuple[str, ...]:
    if isinstance(node, Gate):
        return describe(node.rules) if node.rules else ()
    if isinstance(node, Verify):
        return tuple(
            f"{check.callback}, {check.retries} {'retry' if check.retries == 1 else 'retries'}"
            for check in node.checks
        )
    if isinstance(node, Child) and node.agent != node.name:
        return (f"agent {node.agent}",)
    return _state_notes(getattr(node, "kernel", node))


def _state_notes(node: object) -> tuple[str, ...]:
    """Return what a node does with fields of the state, and which screens judge in it."""
    match node:
        case MapOver(into=into) if into:
            return (f"{node.items or 'items'} → {node.agent} → {into}",)
        case Parallel(branches=branches, into=into):
            led = [(one.name, one.into or into) for one in branches]
            return tuple([f"{name} → {field}" for name, field in led if field])
        case Router(by=by) if by:
            return (f"by {by}",)
        case Screen() | Screened():
            names = (*node.functions, *node.agents)
            return tuple([name.removeprefix(f"{SCREEN}:") for name in names])
        case _:
            return ()


def visible(text: str) -> str:
    """Return `text` with each invisible or unprintable character replaced by a visible sign.

    Control characters become control pictures (U+2400 to U+2421). Line separators, lone
    surrogates, changes of writing direction and noncharacters become U+FFFD. So a name stays on
    one line and cannot look like another name (CVE-2021-42574, "Trojan Source").
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_visible_sign, text))


def _main_path(graph: NodeGraph[S]) -> dict[str, str]:
    """Map each node of the main path to the next node, from the start of the graph.

    The path ends at END or at a node that is already on it. It also ends at a node that can only
    fail, abort or wait for a person.
    """
    path: dict[str, str] = {}
    place: str | None = graph.start
    while place is not None and place != "END" and place not in path:
        row = graph.table[place].items()
        usual = (target for outcome, target in row if outcome_name(outcome) not in _NOT_FOLLOWED)
        target = next(usual, None)
        if target is not None:
            path[place] = target
        place = target
    return path


def _edge_role(source: str, target: str, outcomes: list[str], path: dict[str, str]) -> Role:
    is_last = source == next(reversed(path), "")
    if path.get(source) == target:
        return "closing" if is_last and target in path else "main"
    if _QUIET_OUTCOMES.issuperset(outcomes):
        return "quiet"
    return "leaving" if is_last and target == "END" else "side"


def _visible_sign(character: str) -> str:
    code, category = ord(character), unicodedata.category(character)
    if category == "Cc" and code <= 0x7F:
        return chr(0x2400 + code) if code < 0x20 else "\u2421"
    is_noncharacter = category == "Cn" and code & 0xFFFE == 0xFFFE
    is_hidden = category in {"Cc", "Cs", "Zl", "Zp"} or is_noncharacter
    return "\ufffd" if is_hidden or turns_direction(character) else character
