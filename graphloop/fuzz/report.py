"""FuzzReport: what fuzzing has found, and how far it has looked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from json import dumps
from typing import final

from .coverage import Coverage
from .violation import Violation

__all__ = ["Failing", "FuzzReport"]

HEAD, TAIL = 24, 4
"""How many lines of a story are printed: its beginning, and its end."""


@final
@dataclass(frozen=True)
class Failing:
    """A run that does what it must not, as simple as it could be made.

    Args:
        violations: what it does; the first is what it was found by.
        seed: the seed it was found with; None for a replayed token.
        token: brings exactly this run back: `graphloop fuzz TARGET --replay TOKEN`.
        story: the run, a line an event.
    """

    violations: tuple[Violation, ...]
    seed: int | None
    token: str
    story: tuple[str, ...]

    def lines(self, target: str = "TARGET") -> Iterator[str]:
        """Yield what is printed of it."""
        yield from map(str, self.violations)
        if self.seed is not None:
            yield f"  found with seed {self.seed}; at its simplest:"
        shown = list(self.story)
        end = max(one.event for one in self.violations[:1])
        if 0 < end < len(shown):
            shown = [*shown[:end], f"    … {len(shown) - end} more event(s) to the end"]
        if len(shown) > HEAD + TAIL:
            more = len(shown) - HEAD - TAIL
            shown = [*shown[:HEAD], f"    … {more} more …", *shown[-TAIL:]]
        yield from (f"  {line}" for line in shown)
        yield f"  again: graphloop fuzz {target} --replay {self.token}"


@final
@dataclass(frozen=True)
class FuzzReport:
    """What fuzzing a graph has found; print it to read it.

    Args:
        graph: the graph's name.
        seeds: how many seeds were tried, from `first_seed` on.
        failing: one run for each kind of thing that went wrong.
        failed: how many seeds failed.
        coverage: what the runs went through.
        notes: what else there is to say.
        interrupted: whether somebody ended the search early.
    """

    graph: str
    seeds: int
    first_seed: int
    failing: tuple[Failing, ...]
    failed: int
    coverage: Coverage
    notes: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def ok(self) -> bool:
        """Whether every run kept every promise."""
        return not self.failing

    def to_json(self) -> str:
        """Return the report as a JSON object."""
        failing = [
            {
                "violations": [
                    {"code": one.code, "what": one.what, "event": one.event}
                    for one in each.violations
                ],
                "seed": each.seed,
                "token": each.token,
                "story": each.story,
            }
            for each in self.failing
        ]
        content = {
            "ok": self.ok,
            "graph": self.graph,
            "first_seed": self.first_seed,
            "seeds": self.seeds,
            "failed": self.failed,
            "failing": failing,
            "coverage": self.coverage.to_builtins(),
            "notes": self.notes,
            "interrupted": self.interrupted,
        }
        return dumps(content, indent=2, ensure_ascii=False)

    def text(self, target: str = "TARGET") -> str:
        """Return the report for people; `target` stands in the commands to copy."""
        head = f"graph {self.graph!r}: {self._searched()}"
        lines = [line for one in self.failing for line in one.lines(target)]
        lines += [*str(self.coverage).splitlines(), *(f"note: {one}" for one in self.notes)]
        return "\n".join([head, *(f"  {line}" for line in lines)])

    def __str__(self) -> str:
        """Return the report for people."""
        return self.text()

    def _searched(self) -> str:
        verdict = "nothing found" if self.ok else f"{self.failed} of them failed"
        early = "interrupted after " if self.interrupted else ""
        return f"{early}{self.seeds} seed(s) from {self.first_seed} on, {verdict}"
