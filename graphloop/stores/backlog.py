"""Backlog: the runs of a store that wait for a driver, in line, each with a place of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from ..events import Started

__all__ = ["Backlog", "Place", "PlaceInLine", "in_turn"]


class Place(Struct, frozen=True, gc=False):
    """The place of a run in line, given when the run is submitted.

    Attributes:
        tenant: for whom the run is driven: workers take the runs of the tenants in turn.
        priority: how urgent the run is; of the runs that wait alike, the highest goes first.
        deadline_s: the seconds from now, by the store's clock, after which the run ends as
            `timeout`; None for no deadline.
    """

    tenant: str = ""
    priority: int = 0
    deadline_s: float | None = None


@runtime_checkable
class Backlog(Protocol):
    """Finds what drivers are to do: the runs that wait for one, and the commands to runs."""

    async def ready(
        self, graphs: Collection[str], limit: int, *, revisions: Collection[str] = ()
    ) -> Sequence[str]:
        """Return ids of runs that a driver could take further now, at most `limit`.

        These runs are ready or interrupted, or their time to wake or their deadline has come; or
        they are blocked, and no refusal has one of the caller's revisions. Of child runs, only
        placed ones (`place`) are among them. The caller claims a run before it drives it: two
        callers do no harm.

        Args:
            graphs: the names of the graphs whose runs and placed children the caller can drive.
            limit: the maximum number of ids.
            revisions: the revisions of the caller's code; without any, no blocked run waits.

        Returns:
            Interrupted and blocked runs first, then those with an answer or whose time has come,
            then new ones. Of each,
            those of the highest priority first; of these, the runs of the tenants in turn, so that
            a tenant with fewer runs under way comes sooner; of a tenant, the oldest first.
        """
        ...

    async def enlist(self, started: Started, place: Place) -> None:
        """Save the first event of a new run together with the run's place: both or neither.

        Raises:
            StoreError: the run id is taken, or the event cannot be written.
        """
        ...

    async def place(self, run_id: str) -> None:
        """Let drivers take a child run without its parent, in its root's place in line.

        Its end and each change of its questions then wake the next run above that drivers take:
        the transaction puts news into that run's mailbox.

        Raises:
            UnknownRun: the store has no run with this id.
        """
        ...

    async def retry(self, revisions: Collection[str]) -> None:
        """Forget the refusals of blocked runs that have one of these revisions.

        A worker that starts calls it: code within functions changes without another revision.
        """
        ...

    async def commands(self, run_ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """Map the id of each of these runs with commands to these, as `Mailbox.posted` does."""
        ...


class PlaceInLine(NamedTuple):
    """A run that waits for a driver, ordered by its band and priority, and then by its time.

    `urgency` is the priority, negated: the least comes first.
    """

    band: int
    urgency: int
    updated: float
    run_id: str
    tenant: str


def in_turn(line: Iterable[PlaceInLine], busy: Mapping[str, int]) -> list[str]:
    """Return the ids of waiting runs, those of the tenants in turn.

    Args:
        line: the runs that wait.
        busy: the number of runs under way by tenant: so many turns it has had.
    """
    turns = Counter(busy)
    ranked: list[tuple[int, int, int, float, str]] = []
    for place in sorted(line):
        turns[place.tenant] += 1
        ranked.append((*place[:2], turns[place.tenant], *place[2:4]))
    return [run_id for *_, run_id in sorted(ranked)]
