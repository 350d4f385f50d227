"""Marks: words and tones that an overlay puts on the nodes and lines of a diagram.

A diagram shows the table. Marks show what else is known: how often runs took each line, the path
of a witness, the node at which a run waits. Every notation draws the same marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final, Literal, TypeAlias, final

__all__ = ["Marks", "Tally", "Tone", "Way", "loudest"]

Tone: TypeAlias = Literal["weak", "strong", "lit", "added", "removed", "alarm"]
"""How a node or a line is drawn.

Pale: it never happened, or never can. Thick: a path to follow. Lit: a run stands here. Green or
dashed red: new or gone. Red: wrong.
"""

_LOUD: Final[tuple[Tone, ...]] = ("alarm", "removed", "added", "lit", "strong")

Way: TypeAlias = tuple[str, str]
"""The names of a node and of one of its outcomes."""

_APART_MAX: Final = 4
"""Up to how many runs each run's count stands beside the sum."""


@final
@dataclass(frozen=True, slots=True)
class Tally:
    """How often runs did something, and the time, tokens and money that it took.

    Numbers stay numbers until a picture is drawn, so that a box adds up those of its nodes.

    Attributes:
        times: the count of each run.
        seconds: how long the runs waited.
        tokens: how many tokens models used meanwhile.
        usd: what those tokens cost.
    """

    times: tuple[int, ...] = ()
    seconds: float = 0.0
    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            tuple([one + two for one, two in zip_longest(self.times, other.times, fillvalue=0)]),
            self.seconds + other.seconds,
            self.tokens + other.tokens,
            self.usd + other.usd,
        )

    def less_often(self, other: Tally) -> Tally:
        """Return this tally minus the counts of `other`; time and money stay."""
        times = zip_longest(self.times, other.times, fillvalue=0)
        remaining = tuple([one - two for one, two in times])
        return Tally(remaining, self.seconds, self.tokens, self.usd)

    @property
    def total(self) -> int:
        """The count of all runs together."""
        return sum(self.times)

    @property
    def count(self) -> str:
        """The count as text; up to four runs are listed one by one."""
        runs = f" ({'+'.join(f'{count:,}' for count in self.times)})"
        return f"{self.total:,}x{runs if 1 < len(self.times) <= _APART_MAX else ''}"

    @property
    def spent(self) -> str:
        """Time, tokens and money as text, without those that are zero."""
        return ", ".join(_spent(self))


@final
@dataclass(frozen=True, kw_only=True)
class Marks:
    """An overlay on the diagram of a graph; names that the graph lacks mark nothing.

    Args:
        title: words behind the graph's name.
        nodes: words under the names of nodes; they may have several lines.
        ways: words behind the names of outcomes.
        node_tones: how nodes are drawn that are not drawn as usual.
        way_tones: the same for outcomes; a line has the strongest tone of its outcomes, and is
            weak only if all of them are.
        shaded: nodes in a region with a fill of its own.
        visits: how often runs came to nodes, and what they spent there; stands before `nodes`.
        passages: how often runs took outcomes; stands before `ways`.
        children: the marks of each child graph, by the node that runs it and its name there.
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
        return loudest([self.way_tones.get((source, outcome)) for outcome in outcomes])

    def node_words(self, name: str) -> tuple[str, ...]:
        """Return the lines of text in a node, its name first."""
        tally = self.visits.get(name, Tally())
        counts = [tally.count] if tally.times else []
        counts += [tally.spent] if tally.spent else []
        words = self.nodes.get(name)
        return (name, *counts, *(words.split("\n") if words else ()))

    def outcome_words(self, way: Way) -> str:
        """Return the text behind an outcome's name."""
        tally = self.passages.get(way)
        count = "" if tally is None else tally.count
        return f"{count} {self.ways.get(way, '')}".strip()

    def titled(self, name: str) -> str:
        """Return the diagram's title."""
        return f"{name} ({self.title})" if self.title else name


def loudest(tones: Sequence[Tone | None]) -> Tone | None:
    """Return the tone that wins among several; weak wins only if all are weak."""
    for loud in _LOUD:
        if loud in tones:
            return loud
    return None if None in tones or not tones else "weak"


def _spent(tally: Tally) -> Iterator[str]:
    seconds = tally.seconds
    if 0.001 <= seconds < 1:
        yield f"{seconds * 1000:.0f} ms"
    elif seconds >= 1:
        yield f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    if tally.tokens:
        yield f"{tally.tokens:,} tokens"
    if tally.usd:
        yield f"${tally.usd:.4f}"
