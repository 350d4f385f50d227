"""The work of batches of jobs: the appends that wait in one statement, other jobs together.

A `GraphloopError` fails its own job only. Any other error undoes the batch, and the writing thread
does each half of it apart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from psycopg.errors import DeadlockDetected, UniqueViolation

from ...errors import GraphloopError
from ..database.claims import HeldRun
from ..database.jobs import Job, Statement
from ..rows import Addition
from . import journal
from .schema import PostgresLink

__all__ = [
    "Queued",
    "QueuedAppend",
    "append_batch",
    "ask_all",
    "do",
    "singles_first",
    "take_appends",
    "take_queued",
    "with_retry",
]

T = TypeVar("T")

Queued: TypeAlias = Job[PostgresLink, Any]

JOBS_MAX: Final = 1000
APPEND_BYTES_MAX: Final = 64 << 20
"""The most bytes of events that one batch appends: PostgreSQL takes no statement above 1 GB."""
ATTEMPTS_MAX: Final = 50
"""How often a transaction is done again that met another writer of the same row."""


class QueuedAppend(NamedTuple):
    """Queued events for a claimed run, and the job of their commit, which all share."""

    addition: Addition
    held: HeldRun
    job: Queued


def take_queued(line: deque[T]) -> list[T]:
    """Remove and return what waits in a line, at most `JOBS_MAX`."""
    return [line.popleft() for _ in range(min(len(line), JOBS_MAX))]


def take_appends(line: deque[QueuedAppend]) -> list[QueuedAppend]:
    """Remove and return appends that wait, at most `APPEND_BYTES_MAX`; a larger one goes alone."""
    found, size = list[QueuedAppend](), 0
    while line and len(found) < JOBS_MAX:
        size += line[0].addition.size
        if found and size > APPEND_BYTES_MAX:
            break
        found.append(line.popleft())
    return found


def append_batch(link: PostgresLink, batch: Sequence[QueuedAppend]) -> None:
    """Append events, each to another run, and end their jobs."""
    pairs = [(one.addition, one.held) for one in batch]
    is_single = all(addition.is_only_entries for addition, _ in pairs)
    in_one = nullcontext if is_single else link.transaction
    written = with_retry(lambda: journal.append_claimed(link, pairs), in_one)
    for addition, held, job in batch:
        error = None
        if job.run_id not in written:
            error = journal.why_refused(link, addition, held)
        if error is None:
            job.keep(None)
        else:
            job.fail(error)
        job.end()


def do(job: Queued, link: PostgresLink) -> None:
    """Do a job in a transaction, or in a savepoint of one; keep the result or refusal."""
    try:
        with link.transaction():
            job.do(link)
    except GraphloopError as error:
        job.fail(error)


def singles_first(todo: Sequence[Queued]) -> list[tuple[Queued, Statement[PostgresLink, Any]]]:
    """Return the jobs of one statement that follow no other kind of job of the same run."""
    others = set[str]()
    found: list[tuple[Queued, Statement[PostgresLink, Any]]] = []
    for job in todo:
        if job.statement is None:
            others.add(job.run_id)
        elif not job.run_id or job.run_id not in others:
            found.append((job, job.statement))
    return found


def ask_all(
    singles: Sequence[tuple[Queued, Statement[PostgresLink, Any]]], link: PostgresLink
) -> Sequence[Queued]:
    """Send the statements of all jobs, then read the answers: one wait for the database.

    A refused job has changed nothing, so it needs no savepoint.
    """
    sent: list[tuple[Queued, Statement[PostgresLink, Any]]] = []
    with link.pipeline() if len(singles) > 1 else nullcontext():
        for job, statement in singles:
            try:
                statement.send(link)
                sent.append((job, statement))
            except GraphloopError as error:
                job.fail(error)
    for job, statement in sent:
        try:
            job.keep(statement.receive())
        except GraphloopError as error:
            job.fail(error)
    return [job for job, _ in singles]


def with_retry(work: Callable[[], T], in_one: Callable[[], AbstractContextManager[object]]) -> T:
    """Do work within a context, and again if another writer came first to a row."""
    for _ in range(ATTEMPTS_MAX):
        with suppress(UniqueViolation, DeadlockDetected), in_one():
            return work()
    with in_one():
        return work()
