"""Diagnosis: the survey of a store for its operator, the needs in it, and numbers for graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

__all__ = [
    "REVISION_SHOWN",
    "Need",
    "Operated",
    "QueueState",
    "Survey",
    "UnfinishedRuns",
    "WaitingRuns",
    "age_text",
    "diagnosed",
    "metrics_text",
]

WAIT_S_MAX: Final = 60.0
"""A run that no driver takes for longer needs a person."""
SKEW_S_MAX: Final = 5.0
DRIVERS_OF_A_FILE_MAX: Final = 3
"""With more, the slowest appends to a SQLite file pass those to a server (measured)."""
DEAD_ROWS_MAX: Final = 100_000
CONNECTIONS_SHARE_MAX: Final = 0.8
REVISION_SHOWN: Final = 12
UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


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


class QueueState(Struct, frozen=True):
    """The runs of a queue that are not over, but for those that wait for people.

    Attributes:
        queue: the name of the queue.
        waiting: how many wait for a driver.
        running: how many have a live driver.
        since: the time from which the first of those that wait does; None if none waits.
        late: how many runs are past their deadline, whatever they wait for.
    """

    queue: str
    waiting: int
    running: int
    since: float | None
    late: int


class UnfinishedRuns(Struct, frozen=True):
    """The runs of an agent that are not over, and that code of one revision began."""

    agent: str
    revision: str
    runs: int


class Survey(Struct, frozen=True):
    """The state of a store as an operator sees it, without one journal read.

    Attributes:
        now: the time by the store's clock, in Unix seconds.
        runs: maps each status to the number of its runs.
        oldest: maps each status to the time of the last change of its oldest run.
        waiting: the root runs that wait for a driver, by graph.
        blocked: maps the ids of some blocked runs, the oldest first, to the last reason.
        orphans: the ids of some child runs whose root run is missing.
        drivers: the number of live store objects that drive, or may drive, runs.
        lapsed: the number of drivers that are dead, and whose runs no look has freed yet.
        sizes: maps a word for a size or a count ("bytes", "dead rows") to its number.
        queues: the queues with runs that are not over.
        unfinished: the runs that are not over, by agent and revision; without those of no revision.
        served: maps the agents of live workers to the revisions to which these are pinned; ""
            is that of a worker without pins.
    """

    now: float
    runs: Mapping[str, int]
    oldest: Mapping[str, float]
    waiting: tuple[WaitingRuns, ...]
    blocked: Mapping[str, str]
    orphans: tuple[str, ...]
    drivers: int
    lapsed: int
    sizes: Mapping[str, int]
    queues: tuple[QueueState, ...] = ()
    unfinished: tuple[UnfinishedRuns, ...] = ()
    served: Mapping[str, Sequence[str]] = {}


@runtime_checkable
class Operated(Protocol):
    """Surveys all runs and those that serve them, and deletes old runs."""

    async def attend(self, attendant: str, agents: Mapping[str, str]) -> None:
        """Note for surveys which agents' runs a worker of this store object takes, till its close.

        Args:
            attendant: the id of the worker, whose last call counts.
            agents: maps an agent's name to the revision to which the worker is pinned, "" for none;
                empty once the worker has ended.
        """
        ...

    async def is_made(self) -> bool:
        """Return whether there is a store at its address; its first write creates it."""
        ...

    async def survey(self) -> Survey:
        """Return the state of the store.

        Raises:
            StoreError: there is no store.
        """
        ...

    async def prune(self, older_s: float, limit: int) -> int:
        """Delete runs that are over, and return how many were deleted.

        A family is deleted as a whole: a root run with its descendants, and all questions of a
        chat. It goes if each of its runs is over, and has not changed for this time. The media that
        no other run shows go with it. The caller calls again until the result is 0.

        Args:
            older_s: the seconds since the last change, by the store's clock.
            limit: the number of families of one transaction.
        """
        ...


class Need(NamedTuple):
    """A fact about a store that needs a person.

    Attributes:
        text: the finding, as a sentence.
        fix: what to do about it.
    """

    text: str
    fix: str


def age_text(seconds: float) -> str:
    """Return a duration in its largest unit, such as "3 h"."""
    size, unit = next((one for one in UNITS if seconds >= one[0]), (1, "s"))
    return f"{max(0.0, seconds) // size:.0f} {unit}"


def diagnosed(survey: Survey, clock: float) -> Sequence[Need]:
    """Return what needs a person; empty if all is well.

    Args:
        survey: the survey of a store.
        clock: the time by this machine's clock, in Unix seconds.
    """
    return [
        *[
            _untaken_need(each, survey)
            for each in survey.waiting
            if survey.now - each.since > WAIT_S_MAX
        ],
        *_run_needs(survey),
        *[_unserved_need(each) for each in survey.unfinished if _is_unserved(each, survey)],
        *_machine_needs(survey, clock),
    ]


def _untaken_need(waiting: WaitingRuns, survey: Survey) -> Need:
    why = f"no live worker has an agent called {waiting.graph!r}"
    fix = f"start a worker with the agent {waiting.graph!r}"
    if waiting.graph in survey.served:
        why, fix = "its live workers have no free slot, or are pinned to other code", f"{fix}, too"
    elif not survey.served and not survey.drivers:
        why = "no worker is live"
    runs = "1 run waits" if waiting.runs == 1 else f"{waiting.runs} runs wait"
    return Need(
        f"{runs} for a driver of {waiting.graph!r}, the first for "
        f"{age_text(survey.now - waiting.since)}: {why}.",
        f"{fix}.",
    )


def _is_unserved(runs: UnfinishedRuns, survey: Survey) -> bool:
    """Whether workers of the agent are there, and each is pinned to other code."""
    pins = survey.served.get(runs.agent, ())
    return bool(pins) and not {"", runs.revision} & {*pins}


def _unserved_need(runs: UnfinishedRuns) -> Need:
    count = "1 run" if runs.runs == 1 else f"{runs.runs} runs"
    return Need(
        f"{count} of {runs.agent!r} began with code of revision {runs.revision[:REVISION_SHOWN]}, "
        "and each live worker of it is pinned to other code.",
        "start a worker with that code, or one without --pin.",
    )


def _run_needs(survey: Survey) -> Iterator[Need]:
    if survey.blocked:
        # The fix of each reason is for a person who resumes that run by hand.
        whys = [f"{run} ({why.partition(' Fix: ')[0]})" for run, why in survey.blocked.items()]
        count = survey.runs["blocked"]
        yield Need(
            f"{count} {'run is' if count == 1 else 'runs are'} blocked, since the code of each "
            f"worker that tried does not fit: {' '.join(whys)}.",
            "start a worker with the code that drove them, or copy a run up to an event that fits: "
            "graphloop fork RUN --at N.",
        )
    if survey.orphans:
        yield Need(
            f"child runs without their root run: {_join_ids(survey.orphans)}.",
            "restore the root run from a backup; no driver reaches them without it.",
        )


def _machine_needs(survey: Survey, clock: float) -> Iterator[Need]:
    if abs(skew_s := clock - survey.now) > SKEW_S_MAX:
        word = "ahead of" if skew_s > 0 else "behind"
        yield Need(
            f"the clock of this machine is {age_text(abs(skew_s))} {word} the store's: questions "
            "expire too early or too late.",
            "set the clock (NTP), on this machine or on the server.",
        )
    sizes = survey.sizes
    if "free bytes" in sizes and survey.drivers > DRIVERS_OF_A_FILE_MAX:
        yield Need(
            f"{survey.drivers} processes write one SQLite file: each waits for the others.",
            "keep the runs in PostgreSQL (docs/how-to/many-machines.md).",
        )
    if sizes.get("dead rows", 0) > DEAD_ROWS_MAX:
        yield Need(
            f"{sizes['dead rows']} dead rows wait for a vacuum.",
            "VACUUM the schema graphloop, and see why autovacuum does not.",
        )
    if sizes.get("connections", 0) > CONNECTIONS_SHARE_MAX * sizes.get("connections at most", 1):
        yield Need(
            f"{sizes['connections']} of {sizes['connections at most']} connections are open.",
            "raise max_connections, or run fewer processes.",
        )


def _join_ids(run_ids: Sequence[str]) -> str:
    return ", ".join(run_ids)


def metrics_text(survey: Survey) -> str:
    """Return the survey in the text format of Prometheus, with ages by the store's clock."""
    lines = [
        *_metric_lines("runs", "status", survey.runs),
        *_metric_lines(
            "oldest_run_seconds",
            "status",
            {status: survey.now - at for status, at in survey.oldest.items()},
        ),
        *_metric_lines("waiting_runs", "graph", {each.graph: each.runs for each in survey.waiting}),
        *_metric_lines(
            "waiting_seconds",
            "graph",
            {each.graph: survey.now - each.since for each in survey.waiting},
        ),
        *_metric_lines(
            "queue_waiting", "queue", {each.queue: each.waiting for each in survey.queues}
        ),
        *_metric_lines(
            "queue_running", "queue", {each.queue: each.running for each in survey.queues}
        ),
        *_metric_lines("queue_late", "queue", {each.queue: each.late for each in survey.queues}),
        *_metric_lines(
            "queue_waiting_seconds",
            "queue",
            {one.queue: survey.now - one.since for one in survey.queues if one.since is not None},
        ),
        *_metric_lines("drivers", "state", {"live": survey.drivers, "lapsed": survey.lapsed}),
        *_metric_lines("size", "of", survey.sizes),
    ]
    return "".join(f"{line}\n" for line in lines)


def _metric_lines(name: str, label: str, values: Mapping[str, float]) -> Iterator[str]:
    yield f"# TYPE graphloop_{name} gauge"
    for key, number in values.items():
        text = key.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        yield f'graphloop_{name}{{{label}="{text}"}} {max(0, number):.10g}'
