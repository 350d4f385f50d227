"""Report: the failures that the fuzzer has found, and what its runs have reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from json import dumps
from typing import Any, Final, final

from ..graph import NodeGraph
from ..views import Marks, Tally, Tone
from .trace import Trace
from .violation import Violation

__all__ = ["Coverage", "Failing", "FuzzReport"]

HEAD, TAIL = 24, 4
"""The number of lines that are printed of a trace: at its beginning, and at its end."""

UNSEEN_MAX: Final = 12
"""The most unreached nodes and outcomes that are printed."""


@final
@dataclass
class Coverage:
    """Counts over all runs so far, with 0 for each row that no run has taken.

    Attributes:
        nodes: visits, by name.
        edges: transitions, by the names of a node and an outcome.
        endings: the number of runs that ended for each reason; `parked` for runs that wait.
        runs: the number of runs.
    """

    nodes: Counter[str] = field(default_factory=Counter[str])
    edges: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    endings: Counter[str] = field(default_factory=Counter[str])
    runs: int = 0

    @classmethod
    def of(cls, graph: NodeGraph[Any]) -> Coverage:
        """Return the coverage of a graph before its first run."""
        edges = {(edge.source, edge.outcome): 0 for edge in graph.edges}
        return cls(Counter(dict.fromkeys((*graph.nodes, "END"), 0)), Counter(edges))

    def add(self, graph: NodeGraph[Any], trace: Trace[Any]) -> None:
        """Count the transitions and the ending of a run."""
        self.runs += 1
        self.nodes[graph.start] += 1
        for step in trace.steps:
            self.edges.update(move.way for move in step.transitions)
            self.nodes.update(move.target for move in step.transitions)
        run = trace.run
        if run is not None and trace.broken is None:
            self.endings[run.ending.reason if run.ended and run.ending else "parked"] += 1

    @property
    def unseen(self) -> tuple[str, ...]:
        """The nodes, and the outcomes as `node.outcome`, that no run has reached."""
        nodes = [name for name, count in self.nodes.items() if not count]
        return (
            *nodes,
            *(f"{node}.{way}" for (node, way), count in self.edges.items() if not count),
        )

    @property
    def marks(self) -> Marks:
        """The counts as marks of the graph's diagram: pale where no run has been."""
        weak: Tone = "weak"
        return Marks(
            title=f"{self.runs} runs",
            node_tones={name: weak for name, count in self.nodes.items() if not count},
            way_tones={way: weak for way, count in self.edges.items() if not count},
            visits={name: Tally((count,)) for name, count in self.nodes.items()},
            passages={way: Tally((count,)) for way, count in self.edges.items()},
        )

    def to_builtins(self) -> Mapping[str, object]:
        """Return the counts as values of JSON."""
        return {
            "nodes": dict(self.nodes),
            "outcomes": {f"{node}.{way}": count for (node, way), count in self.edges.items()},
            "endings": dict(sorted(self.endings.items())),
        }

    def __str__(self) -> str:
        counts = [
            f"{name} {sum(map(bool, every))}/{len(every)}"
            for name, every in (("nodes", self.nodes.values()), ("outcomes", self.edges.values()))
        ]
        lines, more = [", ".join(counts)], len(self.unseen) - UNSEEN_MAX
        if self.unseen:
            shown = [*self.unseen[:UNSEEN_MAX], *([f"and {more} more"] if more > 0 else [])]
            lines.append(f"never seen: {', '.join(shown)}")
        endings = ", ".join(f"{name} {count}" for name, count in self.endings.most_common())
        return "\n".join([*lines, f"ended by: {endings or 'nothing'}"])


@final
@dataclass(frozen=True)
class Failing:
    """A run with violations, shrunk.

    Args:
        violations: the first is the violation that the search has found.
        seed: the seed that made the run before it was shrunk; None for a replayed token.
        token: makes exactly this run again: `graphloop fuzz TARGET --replay TOKEN`.
        trace: the run, a line for each event.
        repeats: whether the same choices fail again, as far as the fuzzer can tell.
    """

    violations: tuple[Violation, ...]
    seed: int | None
    token: str
    trace: tuple[str, ...]
    repeats: bool = True

    def lines(self, again: str) -> Iterator[str]:
        """Yield the printed lines; `again` is the command that makes the run again."""
        yield from map(str, self.violations)
        if self.seed is not None:
            yield f"  found with seed {self.seed}{'; at its simplest' if self.repeats else ''}:"
        shown = list(self.trace)
        end = self.violations[0].event
        if 0 < end < len(shown):
            shown = [*shown[:end], f"    … {len(shown) - end} more event(s) to the end"]
        if len(shown) > HEAD + TAIL:
            more = len(shown) - HEAD - TAIL
            shown = [*shown[:HEAD], f"    … {more} more …", *shown[-TAIL:]]
        yield from (f"  {line}" for line in shown)
        yield f"  again{'' if self.repeats else ' (it may not fail again)'}: {again}"


@final
@dataclass(frozen=True)
class FuzzReport:
    """The failures that the fuzzer has found; print the report to read it.

    Args:
        graph: the graph's name.
        seeds: the number of tried seeds.
        first_seed: the first of them.
        failing: a run for each code of violations.
        failed: the number of seeds that failed.
        coverage: the nodes and outcomes that the runs reached.
        notes: further remarks.
        interrupted: whether Ctrl-C ended the search early.
        other_rules: whether the replayed token was made with other rules.
    """

    graph: str
    seeds: int
    first_seed: int
    failing: tuple[Failing, ...]
    failed: int
    coverage: Coverage
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    other_rules: bool = False

    @property
    def ok(self) -> bool:
        """Whether every run kept every promise."""
        return not self.failing

    def to_json(self) -> str:
        """Return the report as a JSON object."""
        told = asdict(self)
        del told["other_rules"]
        told |= {"ok": self.ok, "coverage": self.coverage.to_builtins()}
        return dumps(told, indent=2, ensure_ascii=False)

    def text(self, target: str = "") -> str:
        """Return the report for people, with a command that replays each failure.

        Args:
            target: the target and options of the command; without them, a call in Python is told.
        """
        command = f"graphloop fuzz {target} --replay ", ""
        start, end = command if target else ('replay_token(graph, "', '", …)')
        verdict = "nothing found" if self.ok else f"{self.failed} of them failed"
        early = "interrupted after " if self.interrupted else ""
        searched = f"{early}{self.seeds} seed(s) from {self.first_seed} on, {verdict}"
        lines = [line for run in self.failing for line in run.lines(f"{start}{run.token}{end}")]
        lines += [*str(self.coverage).splitlines(), *(f"note: {note}" for note in self.notes)]
        return "\n".join([f"graph {self.graph!r}: {searched}", *(f"  {line}" for line in lines)])

    def __str__(self) -> str:
        """Return the report for people."""
        return self.text()
