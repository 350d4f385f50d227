"""How things are measured, and how a finding is written down.

What is compared alternates within one process, so a busy machine slows both sides alike and the
*ratios* hold where times do not. Processor time decides where work is measured, wall time where
waiting is. Nothing here judges beyond "met" and "missed": the harness reports.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time
from typing import Literal, TypeAlias

__all__ = ["Cost", "Prepare", "Row", "Spread", "Work", "at_most", "interleaved", "ratios"]

Work: TypeAlias = Callable[[], Awaitable[object]]
Prepare: TypeAlias = Callable[[], Work]
"""Makes ready, unmeasured, what is then measured once."""

Clock: TypeAlias = Literal["cpu_s", "wall_s"]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one measurement took: processor time of this process, and time on the wall."""

    cpu_s: float
    wall_s: float


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of several measurements, and the extremes."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of at least one value."""
        return cls(median(values), min(values), max(values))

    def __str__(self) -> str:
        """Write `median (least to most)`, in no more digits than a measurement has."""
        return f"{_short(self.median)} ({_short(self.least)} to {_short(self.most)})"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the report; `met` is None where nothing was aimed at."""

    bench: str
    what: str
    measured: str
    aim: str = ""
    met: bool | None = None

    @property
    def verdict(self) -> str:
        """What the figure says about the aim."""
        return {None: "", True: "met", False: "missed"}[self.met]


def at_most(bench: str, what: str, found: Spread, limit: float, unit: str, note: str = "") -> Row:
    """Return a row whose aim is a median of at most `limit`."""
    measured = f"{found} {unit}{'; ' + note if note else ''}"
    return Row(bench, what, measured, f"≤ {_short(limit)} {unit}", found.median <= limit)


async def interleaved(
    contenders: Mapping[str, Prepare], rounds: int
) -> dict[str, tuple[Cost, ...]]:
    """Measure all contenders `rounds` times in turns, every other round backwards.

    Each has an unmeasured turn first: imports, connections and caches are paid there.
    """
    for prepare in contenders.values():
        await _measured(prepare)
    costs: dict[str, list[Cost]] = {name: [] for name in contenders}
    for number in range(rounds):
        names = list(contenders)
        for name in reversed(names) if number % 2 else names:
            costs[name].append(await _measured(contenders[name]))
    return {name: tuple(found) for name, found in costs.items()}


def ratios(engine: Sequence[Cost], floor: Sequence[Cost], clock: Clock = "cpu_s") -> Spread:
    """Return how many times the floor the engine took, round by round."""
    pairs = zip(engine, floor, strict=True)
    return Spread.of([getattr(mine, clock) / getattr(raw, clock) for mine, raw in pairs])


async def _measured(prepare: Prepare) -> Cost:
    work = prepare()
    # Garbage of whoever ran before is not this one's to sweep; its own is, so the collector runs.
    gc.collect()
    wall, cpu = perf_counter(), process_time()
    await work()
    return Cost(process_time() - cpu, perf_counter() - wall)


def _short(value: float) -> str:
    """Write a number with three significant digits, and no exponent."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
