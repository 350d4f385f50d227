"""Marks: what is laid over a diagram: words and tones on its nodes and lines.

A diagram shows the table; marks show what is known of it: how often runs took each way, the path of
a proof's witness, where a run stands. Both notations draw the same marks; without any, a diagram is
what it always was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, final

from .tally import Tally

__all__ = ["TONES", "Marks", "Tone", "Way", "loudest"]

Tone: TypeAlias = Literal["weak", "strong", "lit", "added", "removed", "alarm"]
"""How something is drawn.

Pale, as what never happened or never can; thick, as a path to follow; lit up, as where a run
stands; green or dashed red, as what is new or gone; or red, as what is wrong.
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
        visits: how often nodes were come to, and what they waited for; told before their words.
        passages: how often outcomes were taken; told before their words.
        children: what is laid over the graph that a node runs under a name.
    """

    title: str = ""
    nodes: Mapping[str, str] = field(default_factory=dict[str, str])
    ways: Mapping[Way, str] = field(default_factory=dict[Way, str])
    node_tones: Mapping[str, Tone] = field(default_factory=dict[str, Tone])
    way_tones: Mapping[Way, Tone] = field(default_factory=dict[Way, Tone])
    shaded: Set[str] = frozenset()
    visits: Mapping[str, Tally] = field(default_factory=dict[str, Tally])
    passages: Mapping[Way, Tally] = field(default_factory=dict[Way, Tally])
    children: Mapping[tuple[str, str], Marks] = field(
        default_factory=dict[tuple[str, str], "Marks"]
    )

    def tone(self, source: str, outcomes: Iterable[str]) -> Tone | None:
        """Return how the line of these outcomes is drawn; None for as usual."""
        return loudest([self.way_tones.get((source, one)) for one in outcomes])

    def named(self, name: str) -> tuple[str, ...]:
        """Return the lines that stand in a node."""
        tally, words = self.visits.get(name, Tally()), self.nodes.get(name, "")
        told = [tally.count] if tally.times else []
        told += [tally.spent] if tally.spent else []
        return (name, *told, *words.split("\n")) if words else (name, *told)

    def said(self, way: Way) -> str:
        """Return what stands behind an outcome."""
        tally = self.passages.get(way)
        count = "" if tally is None else tally.count
        return f"{count} {self.ways.get(way, '')}".strip()

    def titled(self, name: str) -> str:
        """Return the diagram's title."""
        return f"{name} ({self.title})" if self.title else name


def loudest(tones: Sequence[Tone | None]) -> Tone | None:
    """Return how something is drawn that is several things: weak only if all of them are."""
    for loud in _LOUD:
        if loud in tones:
            return loud
    return None if None in tones or not tones else "weak"
