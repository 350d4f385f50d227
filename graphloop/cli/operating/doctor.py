"""Tell what a store needs, in words, with what to do about it.

  graphloop doctor --store runs.db
  graphloop doctor --store postgresql://app@db.example/runs
  graphloop doctor --store runs.db --metrics > /var/lib/node_exporter/graphloop.prom

It counts the runs by status and by queue, and the live workers of each agent, with their pins. It
finds runs that no worker takes, blocked runs, runs that code began to which no worker is pinned,
child runs without their root run, dead drivers, a wrong clock, and what the database lacks. It
reads no journal.
--metrics prints the numbers in the text format of Prometheus.

Exit status: 0 all is well, 1 something needs a person, 2 wrong usage.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Final, TypeAlias

import typer

from ...errors import ConfigError
from ...stores import REVISION_SHOWN, Operated, Survey, age_text, diagnosed, metrics_text
from ..errors import Status
from ..options import StorePath
from ..stored import opened
from ..text import clean, wrapped

__all__ = ["doctor_command"]

AGED: Final = ("ready", "interrupted", "running", "parked", "blocked")
"""The statuses of runs that are not over: the age of the oldest says something."""
UNITS: Final = ("B", "kB", "MB", "GB", "TB")

Metrics: TypeAlias = Annotated[
    bool, typer.Option("--metrics", help="Print numbers for Prometheus, and nothing else.")
]


def doctor_command(*, store: StorePath = None, metrics: Metrics = False) -> Status:
    """Print the state of a store, and what needs a person."""
    survey = asyncio.run(_take_survey(store))
    findings = diagnosed(survey, time.time())
    if metrics:
        sys.stdout.write(metrics_text(survey))
    else:
        lines = [*_fact_lines(survey), *[f"! {each.text} Fix: {each.fix}" for each in findings]]
        for line in lines if findings else [*lines, "all is well"]:
            sys.stdout.write(f"{wrapped(clean(line), sys.stdout)}\n")
    return Status.FAILED if findings else Status.OK


async def _take_survey(where: str | None) -> Survey:
    async with opened(where) as store:
        if not isinstance(store, Operated):
            raise ConfigError(
                f"{where}: expected a database (a file such as runs.db, or postgresql://…), found "
                "a directory of JSON lines, which has no status of runs."
            )
        return await store.survey()


def _fact_lines(survey: Survey) -> Iterator[str]:
    for status, count in sorted(survey.runs.items()):
        oldest = survey.now - survey.oldest[status]
        aged = f", the oldest unchanged for {age_text(oldest)}" if status in AGED else ""
        yield f"{status}: {count}{aged}"
    for queue in survey.queues:
        told = [f"{queue.waiting} waiting", f"{queue.running} running"]
        if queue.since is not None:
            told[0] += f" (the oldest for {age_text(survey.now - queue.since)})"
        if queue.late:
            told.append(f"{queue.late} past the deadline")
        yield f"queue {queue.queue}: {', '.join(told)}"
    yield f"drivers: {survey.drivers} live, {survey.lapsed} dead whose runs the next look frees"
    for agent, pins in sorted(survey.served.items()):
        pinned = [
            f"{count} pinned to {pin[:REVISION_SHOWN]}"
            for pin, count in sorted(Counter(pins).items())
            if pin
        ]
        yield f"workers of {agent}: {', '.join([str(len(pins)), *pinned])}"
    yield ", ".join(
        f"{word}: {_size_text(number) if 'bytes' in word else number}"
        for word, number in survey.sizes.items()
    )


def _size_text(number: float) -> str:
    for unit in UNITS[:-1]:
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} {UNITS[-1]}"
