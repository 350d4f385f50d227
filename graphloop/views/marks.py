"""Marks: extra words, counts and tones for the nodes and edges of a graph's diagram.

A diagram alone shows the graph. Marks add facts about its runs and proofs, for example how often
runs took an edge. Every notation draws the same marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final, Literal, TypeAlias, final

__all__ = ["Marks", "Tally", "Tone", "Way", "loudest", "total"]

Tone: TypeAlias = Literal["weak", "strong", "lit", "added", "removed", "alarm"]
"""The emphasis of a node or an edge.

- `weak`: pale; no run has reached it, or no run can
- `strong`: thick; it is part of a numbered path
- `lit`: highlighted; a run is at this node now
- `added`: green; new or changed in the later of two versions of a graph
- `removed`: dashed red; missing from the later of two versions of a graph
- `alarm`: red; a proof has a finding here
"""

_LOUD: Final[tuple[Tone, ...]] = ("alarm", "removed", "added", "lit", "strong")

Way: TypeAlias = tuple[str, str]
"""A transition, as the name of a node and the name of one of its outcomes."""

_LISTED_MAX: Final = 4
"""The maximum number of runs whose counts are listed after their sum, as in `3x (2+1)`."""


@final
@dataclass(frozen=True, slots=True)
class Tally:
    """How often each of several runs was at a place, and the time, tokens and money spent there.

    Attributes:
        times: one count for each run.
        seconds: the time for which the runs waited there, in sum.
        tokens: the number of tokens that models used.
        usd: the cost in US dollars.
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
        """The counts as text: `3x (2+1)` for two runs; only the sum for one or more than four."""
        runs = f" ({'+'.join(f'{count:,}' for count in self.times)})"
        return f"{self.total:,}x{runs if 1 < len(self.times) <= _LISTED_MAX else ''}"

    @property
    def spent(self) -> str:
        """The time, tokens and money as text; zeros are left out."""
        return ", ".join(_spent_words(self))


@final
@dataclass(frozen=True, kw_only=True)
class Marks:
    """Extra words, counts and tones to show on a graph's diagram; unknown names have no effect.

    Args:
        title: the text after the graph's name in the title.
        nodes: maps the name of a node to the text below its name; the text may have several lines.
        ways: maps a transition to the text after its outcome's name.
        node_tones: maps the name of a node to its tone.
        way_tones: maps a transition to its tone. An edge with several outcomes has the strongest of
            their tones; it is weak only if all of them are weak.
        shaded: the names of the nodes that are drawn with a different fill.
        visits: how often runs entered each node, and their costs there; shown above `nodes`.
        passages: how often runs took each transition; shown before `ways`.
        children: maps a node, and the name of a child graph that it runs, to the child's marks.
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
        """Return the tone of the edge that stands for these transitions."""
        return loudest(map(self.way_tones.get, ways))

    def node_words(self, name: str) -> tuple[str, ...]:
        """Return the text lines of a node: its name, its visits and costs, and its marks."""
        tally, words = self.visits.get(name, Tally()), self.nodes.get(name, "")
        counts = tally.count if tally.times else ""
        return (name, *filter(None, [counts, tally.spent, *words.split("\n")]))

    def outcome_words(self, way: Way) -> str:
        """Return the text after an outcome's name: how often runs took it, and its marks."""
        count = self.passages[way].count if way in self.passages else ""
        return f"{count} {self.ways.get(way, '')}".strip()

    def titled(self, name: str) -> str:
        """Return the diagram's title: the graph's name, then the title of the marks, if any."""
        return f"{name} ({self.title})" if self.title else name


def loudest(tones: Iterable[Tone | None]) -> Tone | None:
    """Return the strongest tone other than `weak`; else `weak` if all tones are weak; else None."""
    different = set(tones)
    for loud in _LOUD:
        if loud in different:
            return loud
    return "weak" if different == {"weak"} else None


def total(tallies: Iterable[Tally]) -> Tally:
    """Return the sum of several tallies; the counts are added separately for each run."""
    return sum(tallies, Tally())


def _spent_words(tally: Tally) -> Iterator[str]:
    seconds = tally.seconds
    if 0.001 <= seconds < 1:
        yield f"{seconds * 1000:.0f} ms"
    elif seconds >= 1:
        yield f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    if tally.tokens:
        yield f"{tally.tokens:,} tokens"
    if tally.usd:
        yield f"${tally.usd:.4f}"
