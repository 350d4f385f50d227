"""The fuzzer's report: the failures, and how often the runs reached each node and outcome."""

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
"""How many lines are printed from the beginning and from the end of a long trace."""

UNSEEN_MAX: Final = 12
"""The maximum number of unreached nodes and outcomes that are printed."""


@final
@dataclass
class Coverage:
    """Counts how often all fuzzed runs reached each node and transition; 0 if no run did.

    Attributes:
        nodes: maps the name of a node to the number of its visits.
        edges: maps the names of a node and an outcome to the number of such transitions.
        endings: maps the reason of an ending to its number of runs; parked runs count as `parked`.
        runs: the number of runs.
    """

    nodes: Counter[str] = field(default_factory=Counter[str])
    edges: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    endings: Counter[str] = field(default_factory=Counter[str])
    runs: int = 0

    @classmethod
    def of(cls, graph: NodeGraph[Any]) -> Coverage:
        """Return a coverage with a count of 0 for each node and transition of the graph."""
        edges = {(edge.source, edge.outcome): 0 for edge in graph.edges}
        return cls(Counter(dict.fromkeys((*graph.nodes, "END"), 0)), Counter(edges))

    def add(self, graph: NodeGraph[Any], trace: Trace[Any]) -> None:
        """Add the node visits, the transitions and the ending of a run to the counts."""
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
        """The counts as marks for the graph's diagram; unreached nodes and edges are pale."""
        weak: Tone = "weak"
        return Marks(
            title=f"{self.runs} runs",
            node_tones={name: weak for name, count in self.nodes.items() if not count},
            way_tones={way: weak for way, count in self.edges.items() if not count},
            visits={name: Tally((count,)) for name, count in self.nodes.items()},
            passages={way: Tally((count,)) for way, count in self.edges.items()},
        )

    def to_builtins(self) -> Mapping[str, object]:
        """Return the counts as JSON-compatible dictionaries."""
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
    """A run with violations, in the simplest form that the fuzzer found.

    Args:
        violations: the violations of the run; the first has the code that the run is reported for.
        seed: the seed of the original run before it was shrunk; None for a replayed token.
        token: the token that replays this run: `graphloop fuzz TARGET --replay TOKEN`.
        trace: the text of the run, one line for each event.
        repeats: whether replaying the token is expected to fail again.
    """

    violations: tuple[Violation, ...]
    seed: int | None
    token: str
    trace: tuple[str, ...]
    repeats: bool = True

    def lines(self, again: str) -> Iterator[str]:
        """Yield the printed lines of this failure; `again` is the command that replays the run."""
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
    """The result of a fuzzer search or of a replayed token; `print` shows it as text.

    Args:
        graph: the graph's name.
        seeds: the number of seeds that were tried.
        first_seed: the first seed that was tried.
        failing: a failing run for each violation code that was found.
        failed: the number of seeds that failed.
        coverage: how often the runs reached each node and outcome.
        notes: further remarks, such as why the search ended early.
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
        """Whether no run had a violation."""
        return not self.failing

    def to_json(self) -> str:
        """Return the report as a JSON object."""
        told = asdict(self)
        del told["other_rules"]
        told |= {"ok": self.ok, "coverage": self.coverage.to_builtins()}
        return dumps(told, indent=2, ensure_ascii=False)

    def text(self, target: str = "") -> str:
        """Return the report as readable text, with a command that replays each failure.

        Args:
            target: the target and options for the printed `graphloop fuzz` command. If empty, the
                text shows a Python call of `replay_token` instead.
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
        """Return the report as readable text."""
        return self.text()
