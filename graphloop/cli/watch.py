"""Follow a run that another process drives, until it ends or Ctrl-C.

  graphloop watch 1f3a2b4c --store runs.db
  graphloop watch 1f3a2b4c --store runs.db --json

It prints the events of the run so far, and then each new one. It only reads the store: no code of
the run is loaded, and the run does not notice. While the run is parked, it waits, too; graphloop
replay shows more about each event. Only a database records when a run ends. --json prints the
events as lines of a JSON journal.

Exit status: 0 the run is done, 1 it failed or was cancelled, 2 wrong usage, 130 Ctrl-C.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Final

from ..errors import ConfigError
from ..stores import Catalog, RunRecord, Store
from .display import ask_text
from .errors import Status, tell_error
from .options import Json, RunId, StorePath
from .replay import event_lines
from .stored import find_run, opened

__all__ = ["watch_command"]

POLL_S: Final = 0.25
OVER: Final[Mapping[str, Status]] = {
    "done": Status.OK,
    "failed": Status.FAILED,
    "cancelled": Status.FAILED,
}


def watch_command(run: RunId, *, store: StorePath = None, as_json: Json = False) -> Status:
    """Print the events of a run as its driver journals them; return when the run is over."""
    try:
        return asyncio.run(_follow(run, store, as_json=as_json))
    except KeyboardInterrupt:
        tell_error("no longer watched; the run goes on")
        return Status.INTERRUPTED


async def _follow(run: str, where: str | None, *, as_json: bool) -> Status:
    async with opened(where) as store:
        run_id = await find_run(store, run, str(where))
        if not isinstance(store, Catalog):
            raise ConfigError(
                f"{where}: expected a database (a file such as runs.db), found a directory of JSON "
                "lines, which does not record when a run ends. Fix: graphloop replay shows its "
                "events so far."
            )
        seen, status = 0, ""
        while True:
            record = await _record(store, run_id)
            # Events may come after the record was read; the record of the next round counts them.
            if record.events > seen:
                seen = await _print_new(store, run_id, seen, as_json=as_json)
            if record.status != status:
                status = record.status
                _print_status(record)
            end = OVER.get(record.status)
            if end is not None:
                return end
            await asyncio.sleep(POLL_S)


async def _record(store: Catalog, run_id: str) -> RunRecord:
    records = await store.overview(run_id.partition("/")[0])
    return next(record for record in records if record.run_id == run_id)


async def _print_new(store: Store, run_id: str, seen: int, *, as_json: bool) -> int:
    """Print the events after number `seen`, and return the number of the last one."""
    events = await store.load(run_id)
    sys.stdout.writelines(f"{line}\n" for line in event_lines(events, seen, as_json=as_json))
    sys.stdout.flush()
    return len(events)


def _print_status(record: RunRecord) -> None:
    """Print the status of the run to stderr, and the questions of a parked run."""
    tell_error(f"{record.run_id[:8]}: {record.status}")
    for ask in record.asks if record.status == "parked" else ():
        tell_error(f"  waits for {ask.key}: {ask_text(ask)}")
