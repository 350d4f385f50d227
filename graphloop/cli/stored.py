"""Runs in a store: opened, found by the beginning of an id, read, and the commands to go on.

A store notes a run's start as it would be typed: the target, then the options that no journal
knows: `/desk/support.yaml --with /desk/tools.py`.
"""

from __future__ import annotations

import shlex
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple, final

from ..agent import Answers, Graph, approval_from
from ..errors import ConfigError, nearest
from ..events import Event
from ..stores import LOCK, SUFFIX, Catalog, Mailbox, SqliteStore, Store, open_store
from .target import absolute_target, load_graph, register
from .text import one_line

__all__ = [
    "Journal",
    "Origin",
    "Start",
    "answers_text",
    "close",
    "find_run",
    "opened",
    "origin_of",
    "read",
    "refuse_unreachable",
]

LISTED_MAX: Final = 5
EDIT_MAX: Final = 120


@asynccontextmanager
async def opened(where: str | None) -> AsyncGenerator[Store]:
    """Open a store that is there already."""
    store = open_store(_existing(where))
    try:
        yield store
    finally:
        await close(store)


def _existing(where: str | None) -> Path:
    if where is None:
        raise ConfigError(
            "--store: expected a store to look into, found none. Fix: name it (--store runs.db), "
            "or set GRAPHLOOP_STORE."
        )
    path = Path(where)
    if not path.exists():
        folder = path.parent
        names = [file.name for file in folder.iterdir()] if folder.is_dir() else []
        raise ConfigError(
            f"{where}: expected a store, found nothing of that name.{nearest(path.name, names)}"
        )
    kept = [file.suffix in {SUFFIX, LOCK} for file in path.iterdir()] if path.is_dir() else []
    if kept and not any(kept):
        raise ConfigError(
            f"{where}: expected a store, found a folder with other files in it. Fix: name a "
            f"database (runs.db), or a folder of journals (*{SUFFIX})."
        )
    return path


def refuse_unreachable(where: str) -> None:
    """Refuse a new database in a folder that does not exist."""
    folder = Path(where).parent
    if isinstance(open_store(where), SqliteStore) and not folder.is_dir():
        raise ConfigError(
            f"--store {where}: expected a folder at {str(folder)!r}, found none. Fix: create it."
        )


async def close(store: Store) -> None:
    """Close a store that holds a file open."""
    if isinstance(store, SqliteStore):
        await store.aclose()


async def find_run(store: Store, text: str, where: str) -> str:
    """Return the run's id of which `text` is a beginning."""
    known = await store.runs()
    if text in known:
        return text
    root, slash, path = text.partition("/")
    meant = [run_id for run_id in known if "/" not in run_id and run_id.startswith(root)]
    if len(meant) > 1:
        more = f" and {len(meant) - LISTED_MAX} more" if len(meant) > LISTED_MAX else ""
        raise ConfigError(
            f"{text}: expected a run, found {len(meant)} whose ids begin so: "
            f"{', '.join(meant[:LISTED_MAX])}{more}. Fix: give more of the id."
        )
    found = f"{meant[0]}{slash}{path}" if meant else ""
    if found not in known:
        raise ConfigError(
            f"{text}: expected a run's id, or its beginning, found no run that has it."
            f"{nearest(text, known)} See all runs with: "
            f"{_command('runs', '--all', '--store', where)}"
        )
    return found


class Start(NamedTuple):
    """The target of a run, and the options that no journal knows."""

    target: str
    base_url: str | None = None
    max_steps: int | None = None
    unbounded: str | None = None
    registers: Sequence[str] = ()

    @classmethod
    def noted(cls, note: str) -> Start | None:
        """Return the start that a store notes; None without a note."""
        try:
            words = shlex.split(note)
        except ValueError:  # The store's other callers note what they like.
            words = [note]
        if not words:
            return None
        options = list(pairwise(words))
        given = dict(reversed(options))
        steps = given.get("--max-steps")
        registers = tuple([value for name, value in options if name == "--with"])
        urls, reasons = given.get("--base-url"), given.get("--unbounded")
        return cls(words[0], urls, int(steps) if steps else None, reasons, registers)

    def over(self, earlier: Start) -> Start:
        """Return this start, with earlier values in place of the lacking ones."""
        given = {name: now for name, now in self._asdict().items() if now not in (None, "", ())}
        return earlier._replace(**given)

    def words(self) -> Sequence[str]:
        """Return the words of a note, which mean the same in any directory."""
        words = [absolute_target(self.target)]
        steps = None if self.max_steps is None else str(self.max_steps)
        given = ("--base-url", self.base_url), ("--max-steps", steps)
        for name, value in (*given, ("--unbounded", self.unbounded)):
            words += [name, value] if value else []
        for file in self.registers:
            # A module is found by its name, a file only by its whole path.
            words += ["--with", str(Path(file).absolute()) if file.endswith(".py") else file]
        return words


@final
@dataclass(frozen=True)
class Journal:
    """The events of a run, its noted start, and whether it has children."""

    run_id: str
    events: Sequence[Event]
    start: Start | None
    has_children: bool

    def target(self, given: str | None) -> str:
        """Return the given target, else the noted one.

        The names of a noted one are registered.
        """
        if given:
            return given
        if self.start is not None:
            register(self.start.registers)
            return self.start.target
        raise ConfigError(
            f"--target: expected what run {self.run_id!r} was started from, found no note of it. "
            "Fix: name it as for graphloop run (a directory, a .py file, or module:name)."
        )

    def graph(self, given: str | None) -> Graph[None]:
        """Return the graph of the given or noted target."""
        return load_graph(self.target(given))

    def check_number(self, option: str, number: int) -> None:
        """Refuse the number of an event that the run has not."""
        if not 1 <= number <= len(self.events):
            raise ConfigError(
                f"{option}: run {self.run_id!r} has events 1 to {len(self.events)}, found {number}."
            )


async def read(where: str | None, text: str) -> Journal:
    """Read the journal of the run that `text` names."""
    async with opened(where) as store:
        run_id = await find_run(store, text, str(where))
        records = await store.overview(run_id) if isinstance(store, Catalog) else ()
        note = "".join([record.target for record in records if record.run_id == run_id])
        children = any(known.startswith(f"{run_id}/") for known in await store.runs())
        return Journal(run_id, await store.load(run_id), Start.noted(note), children)


async def answers_text(store: Store, run_id: str) -> Mapping[str, str]:
    """Return the answers that a root run has not seen, by key."""
    if not isinstance(store, Mailbox):
        return {}
    answers = Answers.of_posts(await store.posted(run_id))
    told = dict.fromkeys(answers.tool_results, "answered")
    for key, given in answers.approvals.items():
        approval = approval_from(given)
        edit = f", edited: {one_line(approval.edit, EDIT_MAX)}" if approval.edit else ""
        told[key] = f"approved{edit}" if approval.approved else "denied"
    return told


@final
@dataclass(frozen=True)
class Origin:
    """The open store of a run, and its target and options.

    A store that only the target's code can open has no `path`.
    """

    store: Store
    path: str
    words: Sequence[str]

    @property
    def takes_answers(self) -> bool:
        """Whether another process can leave an answer here."""
        return isinstance(self.store, Mailbox) and bool(self.path)

    async def note(self, run_id: str) -> None:
        """Note the run's start, so that later commands need no target."""
        if isinstance(self.store, Catalog):
            await self.store.set_target(run_id, shlex.join(self.words))

    def approve_command(self, run_id: str, key: str) -> str:
        """Return the command that approves a call."""
        return _command("approve", run_id, key, "--store", self.path)

    def resume_command(self, run_id: str) -> str:
        """Return the command that resumes the run."""
        repeated = () if isinstance(self.store, Catalog) else ("--target", *self.words)
        return _command("resume", run_id, *repeated, "--store", self.path)


def origin_of(store: Store | str | Path, start: Start) -> Origin:
    """Return the origin of a run in a store."""
    if isinstance(store, str | Path):
        return Origin(open_store(store), str(store), start.words())
    return Origin(store, "", start.words())


def _command(*words: str) -> str:
    return shlex.join(("graphloop", *words))
