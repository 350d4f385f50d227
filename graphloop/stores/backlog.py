"""Backlog: the runs of a store that wait for a driver, in the lines of queues."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf
from typing import Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from ..errors import ConfigError, QueueFull, StoreError
from ..events import Started
from ..spending import whole_number
from .base import Ask, Refusal, Store
from .run_ids import check_text, has_run

__all__ = [
    "Backlog",
    "PlaceInLine",
    "QueueLimits",
    "Submission",
    "UnderWay",
    "enlist",
    "has_refused",
    "in_turn",
    "places_wanted",
    "refusals_after",
    "refuse_full",
    "wake_at",
]


PRIORITY_MAX: Final = 100


class Submission(Struct, frozen=True, gc=False):
    """How a run is submitted: for whom, how urgent, until when, and in which queue.

    Attributes:
        tenant: for whom the run is driven: workers take the runs of the tenants in turn.
        priority: how urgent the run is; of the runs that wait alike, the highest goes first.
        deadline_s: the seconds from now, by the store's clock, after which the run ends as
            `timeout`; None for no deadline.
        queue: the queue in which the run waits.
    """

    tenant: str = ""
    priority: int = 0
    deadline_s: float | None = None
    queue: str = "default"

    def check(self) -> None:
        """Refuse a place that no store has.

        Raises:
            ConfigError: the tenant, the priority, the queue or the deadline is invalid.
        """
        check_text("tenant", self.tenant)
        check_text("queue", self.queue)
        whole_number("priority", self.priority, least=-PRIORITY_MAX)
        if self.priority > PRIORITY_MAX:
            raise ConfigError(
                f"`priority`: expected at most {PRIORITY_MAX}, found {self.priority}."
            )
        if not self.queue:
            raise ConfigError("`queue`: expected a name, found ''. Fix: leave it out.")
        deadline_s = self.deadline_s
        if deadline_s is not None and not 0 < deadline_s < inf:
            raise ConfigError(f"`deadline_s`: expected a positive number, found {deadline_s!r}.")


class QueueLimits(Struct, frozen=True, kw_only=True):
    """How many runs of a queue go on at once, and how tenants share them.

    Attributes:
        slots: the most that a worker drives at once; None for as many as it drives in all.
        running: the most that all processes of the store drive at once; None for no limit.
        weights: the shares of tenants; 1.0 for a tenant without one. If runs of both wait, a tenant
            with 3.0 has three times as many under way as a tenant with 1.0.
    """

    slots: int | None = None
    running: int | None = None
    weights: Mapping[str, float] = {}

    def check(self, name: str) -> None:
        """Refuse numbers with which the runs of the queue would wait for ever.

        Raises:
            ConfigError: a number is not positive; the message tells the queue's name.
        """
        weights = {f"weights[{tenant!r}]": weight for tenant, weight in self.weights.items()}
        for what, number in {"slots": self.slots, "running": self.running, **weights}.items():
            if number is not None and not 0 < number < inf:
                raise ConfigError(
                    f"queue {name!r}: {what}: expected a positive number, found {number!r}."
                )


@runtime_checkable
class Backlog(Protocol):
    """Finds what drivers are to do: the runs that wait for one, and the commands to runs."""

    async def ready(
        self,
        agents: Collection[str],
        limit: int,
        *,
        revisions: Collection[str] = (),
        queue: str | None = None,
        pinned: bool = False,
    ) -> Sequence[str]:
        """Return ids of runs that a driver could take further now, at most `limit`.

        These runs are ready or interrupted, or their time to wake or their deadline has come; or
        they are blocked, and no refusal has one of the caller's revisions. Of child runs, only
        placed ones (`place`) are among them. The caller claims a run before it drives it: two
        callers do no harm.

        Args:
            agents: the names of the agents whose runs and placed children the caller can drive.
            limit: the maximum number of ids.
            revisions: the revisions of the caller's code; without any, no blocked run waits.
            queue: the queue of the wanted runs; None for any. Of a queue that has all the runs
                under way that it may have, none is wanted.
            pinned: whether runs that code of another revision began are not wanted.

        Returns:
            Interrupted and blocked runs first, then those with an answer or whose time has come,
            then new ones. Of each, those of the highest priority first; of these, the runs of the
            tenants in turn, so that a tenant with fewer runs of the queue under way for its weight
            comes sooner; of a tenant, the oldest first.
        """
        ...

    async def enlist(self, started: Started, place: Submission) -> None:
        """Save the first event of a new run together with the run's place: both or neither.

        Raises:
            StoreError: the run id is taken, or the event cannot be written.
        """
        ...

    async def set_queues(self, queues: Mapping[str, QueueLimits]) -> None:
        """Keep the limits and weights of these queues for all processes; the last call counts.

        `Leases.claim` then raises `QueueFull` for a run whose queue is full.
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
    queue: str
    tenant: str


UnderWay: TypeAlias = tuple[str, str]
"""The queue and the tenant of a run under way."""


def in_turn(
    line: Iterable[PlaceInLine], busy: Iterable[UnderWay], queues: Mapping[str, QueueLimits]
) -> list[str]:
    """Return the ids of waiting runs that may go on now, those of the tenants in turn.

    Args:
        line: the runs that wait; a run that waits for two reasons has two places.
        busy: the runs under way: so many turns its tenant has had.
        queues: the queues with limits or weights.
    """
    turns = Counter(busy)
    under_way = Counter([queue for queue, _ in turns.elements()])
    first = {place.run_id: place for place in sorted(line, reverse=True)}
    ranked: list[tuple[int, int, float, float, str, str]] = []
    for place in sorted(first.values()):
        queue = queues.get(place.queue, QueueLimits())
        turns[place.queue, place.tenant] += 1
        turn = turns[place.queue, place.tenant] / queue.weights.get(place.tenant, 1.0)
        ranked.append((*place[:2], turn, *place[2:5]))
    found: list[str] = []
    for *_, run_id, name in sorted(ranked):
        running = queues.get(name, QueueLimits()).running
        if running is None or under_way[name] < running:
            under_way[name] += 1
            found.append(run_id)
    return found


def places_wanted(
    heads: Iterable[PlaceInLine],
    busy: Iterable[UnderWay],
    queues: Mapping[str, QueueLimits],
    limit: int,
) -> Mapping[UnderWay, int]:
    """Return how many places of each tenant's lines in a queue could be among the first `limit`.

    Of these, all are in the lines of the first `limit` tenants of each queue: any other run has the
    heads of those before it. And the second of a line has one head more before it than the first.

    Args:
        heads: the first of each line; a tenant may have several lines, with a head each.
        busy: the runs under way.
        queues: the queues with limits or weights.
        limit: the number of wanted runs.
    """
    turns = Counter(busy)
    first = {(head.queue, head.tenant): head for head in sorted(heads, reverse=True)}
    ranked: defaultdict[str, list[tuple[int, int, float, float, str, str]]] = defaultdict(list)
    for (name, tenant), head in first.items():
        turn = (turns[name, tenant] + 1) / queues.get(name, QueueLimits()).weights.get(tenant, 1.0)
        ranked[name].append((*head[:2], turn, *head[2:4], tenant))
    return {
        (name, tenant): limit - before
        for name, tenants in ranked.items()
        for before, (*_, tenant) in enumerate(sorted(tenants)[:limit])
    }


def refuse_full(run_id: str, queue: str, running: int | None, under_way: int) -> None:
    """Refuse a claim of a run whose queue has all the runs under way that it may have.

    Raises:
        QueueFull: the queue is full.
    """
    if running is not None and under_way >= running:
        raise QueueFull(
            f"run {run_id!r} waits: queue {queue!r} has {under_way} run(s) under way, of at most "
            f"{running}. Fix: drive it later, or raise `running` of the queue."
        )


def refusals_after(kept: Iterable[Refusal], refusal: Refusal) -> tuple[Refusal, ...]:
    """Return the refusals of a run with this one as the last; each code has one."""
    return (*[one for one in kept if one.revision != refusal.revision], refusal)


def has_refused(refusals: Iterable[Refusal], revisions: Collection[str]) -> bool:
    """Whether code of one of these revisions has refused a run."""
    return any(one.revision in revisions for one in refusals)


def wake_at(asks: Iterable[Ask], now: float, wake_s: float | None) -> float | None:
    """Return the time at which a driver has to look at a parked run; None for never.

    It is the time at which the first question expires, or `wake_s` seconds from `now`.
    """
    times = [ask.expires_at for ask in asks if ask.expires_at is not None]
    return min([*times, *(() if wake_s is None else (now + wake_s,))], default=None)


async def enlist(store: Store, started: Started, place: Submission) -> None:
    """Save the first event of a submitted run with its place, unless the store has both.

    Raises:
        ConfigError: the place is invalid, the store has no line of runs for it, or the run id has
            another question.
    """
    place.check()
    try:
        if isinstance(store, Backlog):
            await store.enlist(started, place)
        elif place == Submission():
            await store.append(started.run_id, 1, started)
        else:
            raise ConfigError(
                "`tenant`, `priority`, `deadline_s` and `queue`: expected a store that workers "
                f"share, found {store!r}. Fix: keep the runs in a database, store='runs.db'."
            )
    except StoreError:
        if not await _is_submitted(store, started):
            raise


async def _is_submitted(store: Store, started: Started) -> bool:
    """Whether a store has a run with this id and this question already.

    Raises:
        ConfigError: the run with this id has another question.
    """
    if not await has_run(store, started.run_id):
        return False
    first = (await store.load(started.run_id))[0]
    same = isinstance(first, Started) and (first.graph, [*first.messages]) == (
        started.graph,
        [*started.messages],
    )
    if not same:
        raise ConfigError(
            f"`run_id`: expected an id that no other question has, found {started.run_id!r}, "
            "whose run was asked something else. Fix: give another id."
        )
    return True
