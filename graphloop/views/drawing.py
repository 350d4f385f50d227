"""Drawing: what every diagram of a graph shows, before any notation is chosen.

Both notations take their lines, kinds, colours and safe words from here, so that two diagrams of
one graph can never disagree. All of it is read off the table the engine executes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar, final

from ..graph import Graph
from ..naming import turns_direction
from ..node_protocol import Kind, Node
from ..nodes.child import Child
from ..nodes.gate import Gate
from ..nodes.verify import AnswerCheck, Verify
from ..outcomes import Outcome, outcome_name
from ..policy import describe

__all__ = ["INK", "LINE", "PALETTE", "Line", "Look", "Role", "lines", "notes", "visible"]

S = TypeVar("S")

INK: Final = "#1f2933"
"""Text on a filled shape."""
LINE: Final = "#6f8297"
"""Lines and their labels: readable on a white page and on a dark one."""

Look: TypeAlias = Kind | Literal["loop"]
"""How a shape looks: as the kind of its node; or as several nodes that lead back to each other."""

PALETTE: Final[Mapping[Look, tuple[str, str]]] = {
    "prepare": ("#e9eef3", "#7d92a8"),
    "model": ("#dbe8fa", "#4d7cb8"),
    "gate": ("#fcedc9", "#bd8f2f"),
    "execute": ("#fbdfd4", "#c26e4e"),
    "append": ("#dcefe3", "#56976f"),
    "check": ("#eae0f5", "#8a69b0"),
    "stop": ("#f8dde5", "#b65f7d"),
    "human": ("#fdf4bf", "#a8911f"),
    "graph": ("#dbf0f1", "#45908f"),
    "act": ("#f9d9d9", "#b84a4a"),
    "pure": ("#efefec", "#86867f"),
    "loop": ("#e8eafb", "#5b67b5"),
}
"""The fill and the outline of each look, in the order a legend lists them."""

_QUIET_OUTCOMES: Final = frozenset({"aborted", "failed"})
_NOT_FOLLOWED: Final = _QUIET_OUTCOMES | {"held"}
"""By what the main path goes on from no node: calls that are held come back from a person."""

# The explicit directional embeddings, overrides and isolates of UAX #9: with them a label can be
# made to read as another one (the "Trojan Source" attack, CVE-2021-42574).

Role: TypeAlias = Literal["main", "closing", "leaving", "quiet", "side"]


@final
@dataclass(frozen=True, slots=True)
class Line:
    """One drawn line: every outcome that leads from one node to one target.

    Its role decides how it looks. `main` lines are the path of first outcomes from the start that
    are no failure, no abort and no wait for a person, and the `closing` one leads back into it; a
    `leaving` line goes from where the path closes to END; `quiet` lines are taken by failures and
    aborts alone; the rest are `side` lines.
    """

    source: str
    target: str
    outcomes: tuple[str, ...]
    role: Role


def lines(graph: Graph[S]) -> tuple[Line, ...]:
    """Return the lines of `graph`, in the order of its table."""
    outcomes: dict[tuple[str, str], list[str]] = {}
    for edge in graph.edges:
        outcomes.setdefault((edge.source, edge.target), []).append(edge.outcome)
    path = _main_path(graph)
    last = next(reversed(path), "")
    return tuple(
        Line(source, target, tuple(names), _role(source, target, names, path, last))
        for (source, target), names in outcomes.items()
    )


def notes(node: Node[S, Outcome]) -> tuple[str, ...]:
    """Return what is drawn beside a node: a gate's rules, the checks of an answer, or an agent.

    A gate's are the words of `graphloop.policy.describe`, so a reviewer reads what is decided.
    """
    if isinstance(node, Gate):
        return describe(node.rules) if node.rules else ()
    if isinstance(node, Verify):
        return tuple(map(_check, node.checks))
    if isinstance(node, Child) and node.agent != node.name:
        return (f"agent {node.agent}",)
    return ()


def visible(text: str) -> str:
    """Return `text` with a visible sign for each character no picture can show.

    Control characters become their control pictures; line separators, lone surrogates, changes of
    writing direction and noncharacters become U+FFFD. A name stays on one line and cannot make
    a reader see another name than the one that runs.
    """
    return "".join(_visible(character) for character in text)


def _check(check: AnswerCheck) -> str:
    """Return a check of the answer, and how often it may send one back."""
    return f"{check.callback}, {check.retries} {'retry' if check.retries == 1 else 'retries'}"


def _main_path(graph: Graph[S]) -> dict[str, str]:
    """Follow the first outcome of each row from the start, until END or a node that was passed.

    Failures and aborts are not followed, nor is what leads to a person and back: a node that has
    nothing else is where the path stops.
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


def _role(
    source: str, target: str, outcomes: list[str], path: Mapping[str, str], last: str
) -> Role:
    if path.get(source) == target:
        return "closing" if source == last and target in path else "main"
    if _QUIET_OUTCOMES.issuperset(outcomes):
        return "quiet"
    return "leaving" if source == last and target == "END" else "side"


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
