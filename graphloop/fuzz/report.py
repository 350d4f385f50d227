"""FuzzReport: what fuzzing has found, and how far it has looked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from json import dumps
from typing import final

from .coverage import Coverage
from .violation import Violation

__all__ = ["Failing", "FuzzReport", "Unfinished"]

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
        repeats: whether the same choices fail again, as far as anybody can tell.
    """

    violations: tuple[Violation, ...]
    seed: int | None
    token: str
    story: tuple[str, ...]
    repeats: bool = True

    def lines(self, again: str) -> Iterator[str]:
        """Yield what is printed of it; `again` brings it back."""
        yield from map(str, self.violations)
        if self.seed is not None:
            yield f"  found with seed {self.seed}{'; at its simplest' if self.repeats else ''}:"
        shown = list(self.story)
        end = self.violations[0].event
        if 0 < end < len(shown):
            shown = [*shown[:end], f"    … {len(shown) - end} more event(s) to the end"]
        if len(shown) > HEAD + TAIL:
            more = len(shown) - HEAD - TAIL
            shown = [*shown[:HEAD], f"    … {more} more …", *shown[-TAIL:]]
        yield from (f"  {line}" for line in shown)
        yield f"  again{'' if self.repeats else ' (it may not fail again)'}: {again}"


@final
@dataclass(frozen=True, slots=True)
class Unfinished:
    """The run that was under way when somebody ended the search.

    Args:
        seed: its seed; None if it was replayed, or shrunk.
        events: how many events it had had.
        node: the node that was deciding, and had not returned; empty if none was.
        token: brings it there again.
    """

    seed: int | None
    events: int
    node: str
    token: str

    def lines(self, again: str) -> Iterator[str]:
        """Yield what is printed of it; `again` brings it back."""
        seed = "" if self.seed is None else f" in seed {self.seed}"
        node = f": node {self.node!r} had not returned" if self.node else ""
        yield f"interrupted{seed} after {self.events} event(s){node}"
        yield f"  again: {again}"


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
        unfinished: the run that was under way then.
        given: the arguments that make the same world together with a token.
        other_rules: whether a token was replayed that was made with other rules.
    """

    graph: str
    seeds: int
    first_seed: int
    failing: tuple[Failing, ...]
    failed: int
    coverage: Coverage
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    unfinished: Unfinished | None = None
    given: tuple[str, ...] = ()
    other_rules: bool = False

    @property
    def ok(self) -> bool:
        """Whether every run kept every promise."""
        return not self.failing

    def to_json(self) -> str:
        """Return the report as a JSON object."""
        content = {
            "ok": self.ok,
            "graph": self.graph,
            "first_seed": self.first_seed,
            "seeds": self.seeds,
            "failed": self.failed,
            "failing": [asdict(one) for one in self.failing],
            "coverage": self.coverage.to_builtins(),
            "notes": self.notes,
            "interrupted": self.interrupted,
            "unfinished": None if self.unfinished is None else asdict(self.unfinished),
        }
        return dumps(content, indent=2, ensure_ascii=False)

    def text(self, target: str = "") -> str:
        """Return the report for people; how to see a run again, is told as a command.

        Args:
            target: what stands in the commands to copy; without one, Python is told.
        """
        head = f"graph {self.graph!r}: {self._searched()}"
        told: list[Failing | Unfinished] = [*self.failing]
        told += [] if self.unfinished is None else [self.unfinished]
        lines = [line for one in told for line in one.lines(self._again(target, one.token))]
        lines += [*str(self.coverage).splitlines(), *(f"note: {one}" for one in self.notes)]
        return "\n".join([head, *(f"  {line}" for line in lines)])

    def __str__(self) -> str:
        """Return the report for people."""
        return self.text()

    def _again(self, target: str, token: str) -> str:
        if target:
            return f"graphloop fuzz {target} --replay {token}"
        return f"replay_token({', '.join(['graph', f'{chr(34)}{token}{chr(34)}', *self.given])})"

    def _searched(self) -> str:
        verdict = "nothing found" if self.ok else f"{self.failed} of them failed"
        early = "interrupted after " if self.interrupted else ""
        return f"{early}{self.seeds} seed(s) from {self.first_seed} on, {verdict}"
