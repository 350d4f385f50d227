"""Survey: the state of a store as its operator sees it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

__all__ = ["Survey", "WaitingRuns"]


class WaitingRuns(Struct, frozen=True):
    """The root runs of one graph that wait for a driver.

    Attributes:
        graph: the name of the graph, which is the name of the agent that drives it.
        runs: how many there are.
        since: the time from which the first of them waits, in Unix seconds.
    """

    graph: str
    runs: int
    since: float


class Survey(Struct, frozen=True):
    """The state of a store as an operator sees it, without one journal read.

    Attributes:
        now: the time by the store's clock, in Unix seconds.
        runs: maps each status to the number of its runs.
        oldest: maps each status to the time of the last change of its oldest run.
        waiting: the root runs that wait for a driver, by graph.
        blocked: the ids of some blocked runs, the oldest first.
        orphans: the ids of some child runs whose root run is missing.
        drivers: the number of live store objects that drive, or may drive, runs.
        lapsed: the number of drivers that are dead, and whose runs no look has freed yet.
        sizes: maps a word for a size or a count ("bytes", "dead rows") to its number.
    """

    now: float
    runs: Mapping[str, int]
    oldest: Mapping[str, float]
    waiting: tuple[WaitingRuns, ...]
    blocked: tuple[str, ...]
    orphans: tuple[str, ...]
    drivers: int
    lapsed: int
    sizes: Mapping[str, int]
