"""Marks: what is laid over a diagram: words and tones on its nodes and lines.

A diagram shows the table; marks show what is known of it: how often runs took each way, the path of
a proof's witness, where a run stands. Both notations draw the same marks; without any, a diagram is
what it always was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, final

__all__ = ["TONES", "Marks", "Tone", "Way"]

Tone: TypeAlias = Literal["weak", "strong", "lit", "added", "removed", "alarm"]
"""How something is drawn.

Pale, as what never happened; thick, as a path to follow; lit up, as where a run stands; green or
dashed red, as what is new or gone; or red, as what is wrong.
"""

_LOUD: Final[tuple[Tone, ...]] = ("alarm", "removed", "added", "lit", "strong")

Way: TypeAlias = tuple[str, str]
"""The names of a node and of one of its outcomes."""

TONES: Final[Mapping[Tone, str]] = {
    "weak": "#b8c2cc",
    "strong": "#1f2933",
    "lit": "#b45f06",
    "added": "#1a7f3c",
    "removed": "#c62f3b",
    "alarm": "#c62f3b",
}
"""The colour of each tone on a white page, the weakest first."""


@final
@dataclass(frozen=True, kw_only=True)
class Marks:
    """What is laid over the diagram of a graph; names that it does not have mark nothing.

    Args:
        title: words behind the graph's name.
        nodes: words under the names of nodes; they may have several lines.
        ways: words behind the names of outcomes, such as counts.
        node_tones: how nodes are drawn that are not drawn as usual.
        way_tones: the same for outcomes; a line with several has the strongest tone of all of
            them, and is weak only if all are.
        shaded: nodes that lie in a region that is told apart by its fill.
    """

    title: str = ""
    nodes: Mapping[str, str] = field(default_factory=dict[str, str])
    ways: Mapping[Way, str] = field(default_factory=dict[Way, str])
    node_tones: Mapping[str, Tone] = field(default_factory=dict[str, Tone])
    way_tones: Mapping[Way, Tone] = field(default_factory=dict[Way, Tone])
    shaded: Set[str] = frozenset()

    def tone(self, source: str, outcomes: Iterable[str]) -> Tone | None:
        """Return how the line of these outcomes is drawn; None for as usual."""
        tones = [self.way_tones.get((source, one)) for one in outcomes]
        for loud in _LOUD:
            if loud in tones:
                return loud
        return None if None in tones or not tones else "weak"

    def named(self, name: str) -> tuple[str, ...]:
        """Return the lines that stand in a node."""
        words = self.nodes.get(name, "")
        return (name, *words.split("\n")) if words else (name,)

    def titled(self, name: str) -> str:
        """Return the diagram's title."""
        return f"{name} ({self.title})" if self.title else name
