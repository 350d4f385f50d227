"""Coverage: how often each node was visited and left by each outcome, over many runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from ..graph import Graph
from ..views.marks import Marks, Tally, Tone
from .story import Story

__all__ = ["Coverage"]

UNSEEN_MAX: Final = 12
"""How many of the things never seen are printed."""


@final
@dataclass
class Coverage:
    """Counts over all runs so far; what the table has and no run has done counts 0.

    Attributes:
        nodes: visits, by name.
        edges: passages, by the names of a node and an outcome.
        endings: how many runs ended for each reason; `parked` for those that wait.
        runs: how many runs were counted.
    """

    nodes: Counter[str] = field(default_factory=Counter[str])
    edges: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    endings: Counter[str] = field(default_factory=Counter[str])
    runs: int = 0

    @classmethod
    def of(cls, graph: Graph[Any]) -> Coverage:
        """Return the coverage of no run at all."""
        return cls(
            Counter(dict.fromkeys((*graph.nodes, "END"), 0)),
            Counter({(one.source, one.outcome): 0 for one in graph.edges}),
        )

    def add(self, graph: Graph[Any], story: Story[Any]) -> None:
        """Count what a run did."""
        self.runs += 1
        self.nodes[graph.start] += 1
        for chapter in story.chapters:
            for way in chapter.passages:
                self.edges[way.node, way.outcome] += 1
                self.nodes[way.target] += 1
        run = story.run
        if run is not None and story.broken is None:
            self.endings[run.ending.reason if run.ended and run.ending else "parked"] += 1

    @property
    def unseen(self) -> tuple[str, ...]:
        """What no run has done: nodes, and outcomes as `node.outcome`."""
        nodes = [name for name, count in self.nodes.items() if not count]
        ways = [f"{node}.{way}" for (node, way), count in self.edges.items() if not count]
        return (*nodes, *ways)

    @property
    def marks(self) -> Marks:
        """The counts, laid over the graph's diagram: what no run has done is pale."""
        weak: Tone = "weak"
        return Marks(
            title=f"{self.runs} runs",
            node_tones={name: weak for name, count in self.nodes.items() if not count},
            way_tones={way: weak for way, count in self.edges.items() if not count},
            visits={name: Tally((count,)) for name, count in self.nodes.items()},
            passages={way: Tally((count,)) for way, count in self.edges.items()},
        )

    def to_builtins(self) -> Mapping[str, object]:
        """Return the counts as JSON has them."""
        return {
            "nodes": dict(self.nodes),
            "outcomes": {f"{node}.{way}": count for (node, way), count in self.edges.items()},
            "endings": dict(sorted(self.endings.items())),
        }

    def __str__(self) -> str:
        nodes, ways = self.nodes.values(), self.edges.values()
        lines = [
            f"nodes {sum(map(bool, nodes))}/{len(nodes)}, "
            f"outcomes {sum(map(bool, ways))}/{len(ways)}"
        ]
        if self.unseen:
            more = len(self.unseen) - UNSEEN_MAX
            shown = [*self.unseen[:UNSEEN_MAX], *([f"and {more} more"] if more > 0 else [])]
            lines.append(f"never seen: {', '.join(shown)}")
        endings = ", ".join(f"{name} {count}" for name, count in self.endings.most_common())
        return "\n".join([*lines, f"ended by: {endings or 'nothing'}"])
