"""Marks: the overlay of a diagram, as words, counts and tones for its nodes and lines.

The table says where outcomes lead. Marks add facts about runs and proofs, for example how often
runs took a line. Every notation draws the same marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final, Literal, TypeAlias, final

__all__ = ["Marks", "Tally", "Tone", "Way", "loudest", "total"]

Tone: TypeAlias = Literal["weak", "strong", "lit", "added", "removed", "alarm"]
"""How a node or line is emphasised.

- `weak`: pale; it never happened, or cannot happen
- `strong`: thick; it is part of a path to follow
- `lit`: a run stands here
- `added`, `removed`: green, or dashed red
- `alarm`: red; a finding is here
"""

_LOUD: Final[tuple[Tone, ...]] = ("alarm", "removed", "added", "lit", "strong")

Way: TypeAlias = tuple[str, str]
"""The name of a node, and the name of one of its outcomes."""

_LISTED_MAX: Final = 4
"""How many runs are listed behind their sum: `3x (2+1)`."""


@final
@dataclass(frozen=True, slots=True)
class Tally:
    """A count for each run, and the time, tokens and money that the runs spent.

    Attributes:
        times: the count of each run.
        seconds: how long the runs waited.
        tokens: how many tokens models used.
        usd: the cost of these tokens.
    """

    times: tuple[int, ...] = ()
    seconds: float = 0.0
    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            tuple(map(sum, zip_longest(self.times, other.times, fillvalue=0))),
            self.seconds + other.seconds,
            self.tokens + other.tokens,
            self.usd + other.usd,
        )

    def __neg__(self) -> Tally:
        return Tally(
            tuple([-count for count in self.times]), -self.seconds, -self.tokens, -self.usd
        )

    @property
    def total(self) -> int:
        """The sum of the counts of all runs."""
        return sum(self.times)

    @property
    def count(self) -> str:
        """The count as text: `3x (2+1)` for two runs, `30x` for more than four."""
        runs = f" ({'+'.join(f'{count:,}' for count in self.times)})"
        return f"{self.total:,}x{runs if 1 < len(self.times) <= _LISTED_MAX else ''}"

    @property
    def spent(self) -> str:
        """Time, tokens and money as text; zeros are left out."""
        return ", ".join(_spent(self))


@final
@dataclass(frozen=True, kw_only=True)
class Marks:
    """An overlay on the diagram of a graph; a name that the graph lacks has no effect.

    Args:
        title: words behind the graph's name.
        nodes: words under the names of nodes; they may have several lines.
        ways: words behind the names of outcomes.
        node_tones: the tones of nodes.
        way_tones: the tones of outcomes. A line has the loudest tone of its outcomes, and is weak
            only if all of them are weak.
        shaded: nodes in a region with its own fill.
        visits: how often runs entered nodes, and what they spent there; above `nodes`.
        passages: how often runs took outcomes; before `ways`.
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
    children: Mapping[Way, Marks] = field(default_factory=dict[Way, "Marks"])

    def tone(self, ways: Iterable[Way]) -> Tone | None:
        """Return the tone of a line that has these outcomes."""
        return loudest(map(self.way_tones.get, ways))

    def node_words(self, name: str) -> tuple[str, ...]:
        """Return the lines of text in a node, its name first."""
        tally, words = self.visits.get(name, Tally()), self.nodes.get(name, "")
        counts = tally.count if tally.times else ""
        return (name, *filter(None, [counts, tally.spent, *words.split("\n")]))

    def outcome_words(self, way: Way) -> str:
        """Return the text behind an outcome's name."""
        count = self.passages[way].count if way in self.passages else ""
        return f"{count} {self.ways.get(way, '')}".strip()

    def titled(self, name: str) -> str:
        """Return the diagram's title."""
        return f"{name} ({self.title})" if self.title else name


def loudest(tones: Iterable[Tone | None]) -> Tone | None:
    """Return the strongest of several tones; weak only if all are weak."""
    different = set(tones)
    for loud in _LOUD:
        if loud in different:
            return loud
    return "weak" if different == {"weak"} else None


def total(tallies: Iterable[Tally]) -> Tally:
    """Return the sum of tallies, run by run."""
    return sum(tallies, Tally())


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
