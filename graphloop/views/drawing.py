"""Drawing: the text of every diagram, which is line labels, notes and names.

All notations take them from here, so two diagrams of one graph cannot disagree. All of it is read
from the table that runs.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar, final

from ..graph import NodeGraph
from ..node_protocol import Kind, Node, turns_direction
from ..nodes import AnswerCheck, Child, Gate, Verify
from ..outcomes import Outcome, outcome_name
from ..policy import describe

__all__ = ["Line", "Look", "Role", "lines", "notes", "visible"]

S = TypeVar("S")

Look: TypeAlias = Kind | Literal["loop"]
"""How a shape looks: as the kind of its node, or as a loop of several nodes."""

Role: TypeAlias = Literal["main", "closing", "leaving", "quiet", "side"]

_QUIET_OUTCOMES: Final = frozenset({"aborted", "failed"})
_NOT_FOLLOWED: Final = _QUIET_OUTCOMES | {"held"}
"""The main path follows none of these: held calls come back from a person."""


@final
@dataclass(frozen=True, slots=True)
class Line:
    """A drawn line: every outcome that leads from a node to a target.

    The role decides the look. `main` lines are the path of first outcomes from the start that are
    no failure, no abort and no wait for a person; the `closing` line leads back into it. A
    `leaving` line goes to END from the node that closes the path. Only failures and aborts take
    `quiet` lines. The rest are `side` lines.
    """

    source: str
    target: str
    outcomes: tuple[str, ...]
    role: Role


def lines(graph: NodeGraph[S]) -> tuple[Line, ...]:
    """Return the lines of `graph`, in the order of its table."""
    outcomes: dict[tuple[str, str], list[str]] = {}
    for edge in graph.edges:
        outcomes.setdefault((edge.source, edge.target), []).append(edge.outcome)
    path = _main_path(graph)
    return tuple(
        Line(source, target, tuple(names), _role(source, target, names, path))
        for (source, target), names in outcomes.items()
    )


def notes(node: Node[S, Outcome]) -> tuple[str, ...]:
    """Return the slip beside a node: a gate's rules, the checks of an answer, or an agent.

    A gate's rules are in the words of `graphloop.policy.policy.describe`.
    """
    if isinstance(node, Gate):
        return describe(node.rules) if node.rules else ()
    if isinstance(node, Verify):
        return tuple(map(_check, node.checks))
    if isinstance(node, Child) and node.agent != node.name:
        return (f"agent {node.agent}",)
    return ()


def visible(text: str) -> str:
    """Return `text` with a visible sign for each character that no picture can show.

    Control characters become their control pictures. Line separators, lone surrogates, changes of
    writing direction and noncharacters become U+FFFD. So a name stays on one line, and no name
    can look like another one (CVE-2021-42574, "Trojan Source").
    """
    return "".join(map(_visible, text))


def _check(check: AnswerCheck) -> str:
    """Return a check of the answer, and how often it may reject one."""
    return f"{check.callback}, {check.retries} {'retry' if check.retries == 1 else 'retries'}"


def _main_path(graph: NodeGraph[S]) -> dict[str, str]:
    """Return the target of each node on the main path, until END or a node that was passed.

    The path stops at a node that can only fail, abort, or wait for a person.
    """
    path: dict[str, str] = {}
    place: str | None = graph.start
    while place is not None and place != "END" and place not in path:
        usual = (
            target
            for outcome, target in graph.table[place].items()
            if outcome_name(outcome) not in _NOT_FOLLOWED
        )
        target = next(usual, None)
        if target is not None:
            path[place] = target
        place = target
    return path


def _role(source: str, target: str, outcomes: list[str], path: dict[str, str]) -> Role:
    is_last = source == next(reversed(path), "")
    if path.get(source) == target:
        return "closing" if is_last and target in path else "main"
    if _QUIET_OUTCOMES.issuperset(outcomes):
        return "quiet"
    return "leaving" if is_last and target == "END" else "side"


def _visible(character: str) -> str:
    code = ord(character)
    match unicodedata.category(character):
        case "Cc" if code < 0x20:
            return chr(0x2400 + code)
        case "Cc" if code == 0x7F:
            return "\u2421"
        case "Cc" | "Cs" | "Zl" | "Zp":
            return "\ufffd"
        case "Cn" if code & 0xFFFE == 0xFFFE:
            return "\ufffd"
        case _ if turns_direction(character):
            return "\ufffd"
        case _:
            return character
