"""`graphloop runs`: what runs a store has, how they stand, and what they wait for."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final, get_args

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..errors import ConfigError, nearest
from ..stores.base import Ask, Catalog, Mailbox, ReleaseStatus, RunRecord, Store
from ..stores.journals import graph_of, parent_of
from .lines import clean, counted, safe_json, short_ask_text, time_text
from .noted import Noted
from .parked import answered
from .standing import seems
from .status import Status, tell
from .stored import opened, short_ids

__all__ = ["runs"]

STATUSES: Final[tuple[str, ...]] = ("ready", "running", "interrupted", *get_args(ReleaseStatus))
OVER: Final = ("done", "failed", "cancelled")
STYLES: Final = {
    "suspended": "yellow",
    "running": "cyan",
    "interrupted": "red",
    "failed": "red",
    "done": "green",
}
PIPE_WIDTH: Final = 200
WAITS: Final = "WAITS FOR"
HIDDEN: Final = ((), (WAITS,), (WAITS, "EVENTS"), (WAITS, "EVENTS", "UPDATED"))
"""Which columns a narrow terminal has no room for; what is waited for is told below the table."""


@final
@dataclass(frozen=True)
class _Row:
    """A run as it is listed; where the store knows no `status`, its events say what it `seems`."""

    record: RunRecord
    status: str
    answers: Mapping[str, str]
    seems: str = ""

    @property
    def shown(self) -> str:
        """The status, or what it seems to be."""
        return self.status or (f"seems {self.seems}" if self.seems else "-")


def runs(*, store: str | None, status: str | None, everything: bool, as_json: bool) -> Status:
    """List the runs of a store: those that are not over, all, or those that stand as asked.

    Raises:
        ConfigError: there is no such store, or no such status.
    """
    if status is not None and status not in STATUSES:
        raise ConfigError(
            f"expected --status {', '.join(STATUSES)}; found {status!r}.{nearest(status, STATUSES)}"
        )
    rows = asyncio.run(_rows(store))
    shown = [
        row
        for row in rows
        if (
            status in (row.status, row.seems)
            if status is not None
            else everything or row.status not in OVER
        )
    ]
    if as_json:
        for row in shown:
            sys.stdout.write(f"{safe_json(json.dumps(_json(row), ensure_ascii=False))}\n")
        return Status.OK
    if shown:
        _print([*_tree(shown)])
    hidden = len(rows) - len(shown)
    if hidden and status is None:
        tell(f"{counted(hidden, 'run')} that {'is' if hidden == 1 else 'are'} over: --all")
    elif not shown:
        tell("no such run" if rows else "no runs")
    return Status.OK


async def _rows(where: str | None) -> Sequence[_Row]:
    async with opened(where) as store:
        if not isinstance(store, Catalog):
            return await _journaled(store)
        every = await store.overview()
        return [_Row(one, _status(one), await _answers(store, one)) for one in every]


def _status(record: RunRecord) -> str:
    """Return how a run stands; one that was left, and waits for nobody, was interrupted."""
    was_left = record.status == "suspended" and not record.asks
    return "interrupted" if was_left else record.status


async def _answers(store: Catalog, record: RunRecord) -> Mapping[str, str]:
    if not record.asks or not isinstance(store, Mailbox):
        return {}
    return answered(await store.posted(record.run_id))


async def _journaled(store: Store) -> Sequence[_Row]:
    """Return what journals alone tell; none is left out as over, for that is only how it seems."""
    known = await store.runs()
    found: list[_Row] = []
    waiting: set[str | None] = set()
    # Children first: who runs one that waits, waits with it.
    for run_id in sorted(known, key=lambda one: -one.count("/")):
        events = await store.load(run_id)
        graph, parent = graph_of(events[0]), parent_of(run_id, known)
        first, last = events[0].at, events[-1].at
        record = RunRecord(run_id, graph, "ready", len(events), first, last, parent)
        standing = seems(events, child_waits=run_id in waiting) or ""
        if standing == "suspended":
            waiting.add(parent)
        found.append(_Row(record, "", {}, standing))
    return sorted(found, key=lambda one: one.record.created_at)


def _table(rows: Sequence[tuple[str, _Row, bool]], hidden: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    cells: dict[str, list[Text | str]] = {
        "RUN": [name for name, _, _ in rows],
        "GRAPH": [clean(row.record.graph) for _, row, _ in rows],
        "STATUS": [Text(row.shown, STYLES.get(row.status or row.seems, "")) for _, row, _ in rows],
        "EVENTS": [Text(str(row.record.events), justify="right") for _, row, _ in rows],
        "UPDATED": [time_text(row.record.updated_at) for _, row, _ in rows],
        # A parent has told already what its children wait for.
        WAITS: [Text("" if nested else "\n".join(_waits(row))) for _, row, nested in rows],
    }
    shown = {name: column for name, column in cells.items() if name not in hidden}
    for name in shown:
        table.add_column(name, no_wrap=name != WAITS, overflow="fold")
    for row in zip(*shown.values(), strict=True):
        table.add_row(*row)
    return table


def _tree(rows: Sequence[_Row]) -> Iterator[tuple[str, _Row, bool]]:
    """Yield each run under its parent, with its name there, and whether it is under one."""
    listed = {row.record.run_id for row in rows}
    below: dict[str, list[_Row]] = {}
    for row in rows:
        parent = row.record.parent
        below.setdefault(parent if parent in listed else "", []).append(row)
    short = short_ids(sorted({row.record.run_id.partition("/")[0] for row in rows}))

    def branch(parent: str, depth: int) -> Iterator[tuple[str, _Row, bool]]:
        for row in below.get(parent, []):
            root, slash, path = row.record.run_id.partition("/")
            name = f"{'  ' * (depth - 1)}{'└ ' if depth else ''}{short[root]}{slash}{path}"
            yield name, row, depth > 0
            yield from branch(row.record.run_id, depth + 1)

    return branch("", 0)


def _waits(row: _Row) -> Iterator[str]:
    for ask in row.record.asks:
        answer = row.answers.get(ask.key)
        yield f"{ask.key} {short_ask_text(ask)}{f': {answer}' if answer else ''}"


def _json(row: _Row) -> Mapping[str, object]:
    record = row.record
    return {
        "run_id": record.run_id,
        "graph": record.graph,
        "status": row.status or None,
        "seems": row.seems or None,
        "events": record.events,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "parent": record.parent or None,
        "target": Noted.read(record.target).target or None,
        "asks": [_json_ask(one, row.answers.get(one.key)) for one in record.asks],
    }


def _json_ask(ask: Ask, answer: str | None) -> Mapping[str, object]:
    return {
        "key": ask.key,
        "kind": ask.kind,
        "name": ask.name,
        "arguments": ask.arguments,
        "agents": list(ask.agents),
        "expires_at": ask.expires_at,
        "unknown": ask.unknown,
        "answer": answer,
    }


def _print(rows: Sequence[tuple[str, _Row, bool]]) -> None:
    """Print as wide as the terminal; a pipe has room."""
    is_terminal = sys.stdout.isatty()
    console = Console(width=None if is_terminal else PIPE_WIDTH, highlight=False, markup=False)
    room = console.options.update(max_width=PIPE_WIDTH * 10)
    fits = [
        hidden
        for hidden in HIDDEN
        if not is_terminal
        or console.measure(_table(rows, hidden), options=room).maximum <= console.width
    ]
    hidden = [*fits, HIDDEN[-1]][0]
    console.print(_table(rows, hidden))
    for name, row, nested in rows if hidden else ():
        for waits in () if nested else _waits(row):
            console.print(Text(f"{name} waits for {waits}"), overflow="fold")
