"""Follow a run that another process drives, until it ends or Ctrl-C.

  graphloop watch 1f3a2b4c --store runs.db
  graphloop watch 1f3a2b4c --store runs.db --json
  graphloop watch 1f3a2b4c --store runs --target examples/weather

It prints the events of the run so far, and then each new one. It only reads the store, and the run
does not notice. While the run is parked, it waits, too; graphloop replay shows more about each
event. --json prints the events as lines of a JSON journal.

If the run's target is known (from a database or --target; it is executed), calls have names. A
database records when a run ends. A directory of JSON lines records events alone: give it the run's
--target, whose graph tells the end.

Exit status: 0 the run is done, 1 it failed or was cancelled, 2 wrong usage, 130 Ctrl-C.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ..agent import Graph
from ..errors import ConfigError, GraphloopError
from ..questions import Pending, pending_of
from ..replay import replay
from ..stores import RELEASED_AS, Ask, Catalog, Store, typed
from .display import ask_text
from .errors import Status, tell_error
from .modules import register
from .options import Json, Registers, RunId, StorePath, TargetOption
from .replay import event_lines
from .stored import Journal, opened, read
from .target import load_graph

__all__ = ["watch_command"]

POLL_S: Final = 0.25
OVER: Final[Mapping[str, Status]] = {
    "done": Status.OK,
    "failed": Status.FAILED,
    "cancelled": Status.FAILED,
}


def watch_command(
    run: RunId,
    *,
    store: StorePath = None,
    target: TargetOption = None,
    registers: Registers = None,
    as_json: Json = False,
) -> Status:
    """Print the events of a run as its driver journals them; return when the run is over."""
    try:
        return asyncio.run(_follow_run(run, store, target, registers, as_json=as_json))
    except KeyboardInterrupt:
        tell_error("no longer watched; the run goes on")
        return Status.INTERRUPTED


async def _follow_run(
    run: str,
    where: str | None,
    target: str | None,
    registers: Sequence[str] | None,
    *,
    as_json: bool,
) -> Status:
    journal = await read(where, run)
    run_id = journal.run_id
    async with opened(where) as store:
        register(registers)
        if isinstance(store, Catalog):
            graph = None if as_json else _known_graph(journal, target)
        else:
            graph = _needed_graph(run_id, where, target)
        seen, before = 0, None
        while True:
            now = await _progress_of(store, run_id, graph)
            # Events may come after the status was read; the status of the next round counts them.
            if now.events > seen:
                seen = await _print_new(store, run_id, seen, graph, as_json=as_json)
            if before is None or (now.status, now.asks) != (before.status, before.asks):
                before = now
                _print_status(run_id, now)
            end = OVER.get(now.status)
            if end is not None:
                return end
            await asyncio.sleep(POLL_S)


def _known_graph(journal: Journal, target: str | None) -> Graph[None] | None:
    """Return the graph that names the effects of a run; None if it is not known, or of a child.

    If a target from the store cannot be loaded, print a message. An error of `--target` is raised.
    """
    if "/" in journal.run_id or not (target or journal.start):
        return None
    try:
        return journal.graph(target)
    except GraphloopError as error:
        if target:
            raise
        tell_error(f"the calls have no names: {error}")
        return None


def _needed_graph(run_id: str, where: str | None, target: str | None) -> Graph[None]:
    """Return the graph whose table tells the end of a run in a directory of JSON lines."""
    root, slash, _ = run_id.partition("/")
    if slash:
        raise ConfigError(
            f"run {run_id!r} is a part of run {root!r}, and its graph is not known. Fix: "
            f"graphloop watch {root}"
        )
    if target is None:
        raise ConfigError(
            f"--target: expected the target of run {run_id!r}, found none, and {where} is a "
            "directory of JSON lines, which does not record when a run ends. Fix: name it as for "
            "graphloop run."
        )
    return load_graph(target)


class _Progress(NamedTuple):
    """How far a run is: its status, the number of its events, and what it waits for."""

    status: str
    events: int
    asks: Sequence[Ask | Pending] = ()


async def _progress_of(store: Store, run_id: str, graph: Graph[None] | None) -> _Progress:
    """Return how far a run is; with a `graph`, by a replay of its journal."""
    if isinstance(store, Catalog):
        records = await store.overview(run_id.partition("/")[0])
        record = next(record for record in records if record.run_id == run_id)
        return _Progress(record.status, record.events, record.asks)
    assert graph is not None, "only a database records when a run ends"
    events = await store.load(run_id)
    run = replay(graph, typed(graph, events))
    if run.ended and run.ending is not None:
        return _Progress(RELEASED_AS.get(run.ending.reason, "done"), len(events))
    return _Progress("not over", len(events), tuple(pending_of(run, {}, None)))


async def _print_new(
    store: Store, run_id: str, seen: int, graph: Graph[None] | None, *, as_json: bool
) -> int:
    """Print the events after number `seen`, and return the number of the last one."""
    events = await store.load(run_id)
    lines = event_lines(events, seen, graph, as_json=as_json)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()
    return len(events)


def _print_status(run_id: str, now: _Progress) -> None:
    """Print the status of the run to stderr, and the questions that it waits for."""
    tell_error(f"{run_id[:8]}: {now.status}")
    for ask in now.asks:
        tell_error(f"  waits for {ask.key}: {ask_text(ask)}")
