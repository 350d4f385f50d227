"""Runs in a store: opened, found by the beginning of an id, read, and the commands to go on.

A store notes what a run was started from, as it would be typed: the target, then the options that
no journal knows: `/desk/support.yaml --with /desk/tools.py`.
"""

from __future__ import annotations

import shlex
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, final

from ..agent import Answers, Graph, approval_from
from ..errors import ConfigError, nearest
from ..events import Event
from ..stores import LOCK, SUFFIX, Catalog, Mailbox, SqliteStore, Store, open_store
from .target import MODULE_FORM, STANDARD, load_graph, register
from .text import one_line

__all__ = [
    "Journal",
    "Origin",
    "answers_text",
    "close",
    "find_run",
    "noted_words",
    "opened",
    "origin_of",
    "read",
    "refuse_unreachable",
]

LISTED_MAX: Final = 5
EDIT_MAX: Final = 120


@asynccontextmanager
async def opened(where: str | None) -> AsyncGenerator[Store]:
    """Open a store that is there already.

    Raises:
        ConfigError: none was named, or there is none of that name.
    """
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
    """Refuse a database for a new run in a folder that does not exist.

    Raises:
        ConfigError: there is none.
    """
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
    """Return the id of the run that `text` names: the whole id, or a beginning that only it has.

    Raises:
        ConfigError: there is no such run in the store at `where`, or there are several.
    """
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


@final
@dataclass(frozen=True)
class Journal:
    """The events of a run, what the store notes of its start, and whether it has children."""

    run_id: str
    events: Sequence[Event]
    noted: Sequence[str]
    has_children: bool

    def options(self, name: str) -> list[str]:
        """Return the values of an option that the run was started with."""
        return [value for option, value in pairwise(self.noted) if option == name]

    def target(self, given: str | None) -> str:
        """Return what to load: what was given, else what was noted, with what registers its names.

        Raises:
            ConfigError: neither says, or what registers cannot be loaded.
        """
        if given:
            return given
        if self.noted:
            register(self.options("--with"))
            return self.noted[0]
        raise ConfigError(
            f"--target: expected what run {self.run_id!r} was started from, found no note of it. "
            "Fix: name it as for graphloop run (a directory, a .py file, or module:name)."
        )

    def graph(self, given: str | None) -> Graph[None]:
        """Return the graph of the run.

        Raises:
            ConfigError: it is not known what the run was started from, or it cannot be loaded.
        """
        return load_graph(self.target(given))

    def check_number(self, option: str, number: int) -> None:
        """Refuse the number of an event that the run has not.

        Raises:
            ConfigError: naming the option, and the events that there are.
        """
        if not 1 <= number <= len(self.events):
            raise ConfigError(
                f"{option}: run {self.run_id!r} has events 1 to {len(self.events)}, found {number}."
            )


async def read(where: str | None, text: str) -> Journal:
    """Read the journal of the run that `text` names.

    Raises:
        ConfigError: there is no such store or run.
        StoreError: the journal cannot be read.
    """
    async with opened(where) as store:
        run_id = await find_run(store, text, str(where))
        records = await store.overview(run_id) if isinstance(store, Catalog) else ()
        notes = [one.target for one in records if one.run_id == run_id]
        noted = noted_words("".join(notes))
        children = any(known.startswith(f"{run_id}/") for known in await store.runs())
        return Journal(run_id, await store.load(run_id), noted, children)


def noted_words(note: str) -> Sequence[str]:
    """Return the words of what a store notes of a run's start: a target, then options."""
    try:
        return shlex.split(note)
    except ValueError:  # The store's other callers note what they like.
        return [note]


async def answers_text(store: Store, run_id: str) -> Mapping[str, str]:
    """Return how the calls of a root run were answered since it was last driven, by their keys.

    Raises:
        StoreError: an answer cannot be read.
    """
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
    """Where a run is kept, and what it is started from.

    Attributes:
        store: the store, open.
        path: what `--store` says; empty for a store that only the target's code can open.
        words: the target and its options, which a later command has to repeat; the store notes
            them if it keeps notes.
    """

    store: Store
    path: str
    words: Sequence[str]

    @property
    def takes_answers(self) -> bool:
        """Whether another process can leave an answer here."""
        return isinstance(self.store, Mailbox) and bool(self.path)

    async def note(self, run_id: str) -> None:
        """Note what the run was started from, so that later commands need no target."""
        if isinstance(self.store, Catalog):
            await self.store.set_target(run_id, shlex.join(self.words))

    def approve_command(self, run_id: str, key: str) -> str:
        """Return the command that approves a call."""
        return _command("approve", run_id, key, "--store", self.path)

    def resume_command(self, run_id: str) -> str:
        """Return the command that resumes the run."""
        repeated = () if isinstance(self.store, Catalog) else ("--target", *self.words)
        return _command("resume", run_id, *repeated, "--store", self.path)


def origin_of(
    store: Store | str | Path,
    target: str,
    *,
    base_url: str | None = None,
    max_steps: int | None = None,
    unbounded: str | None = None,
    registers: Iterable[str] | None = None,
) -> Origin:
    """Return where a run is kept, with its target named so that it is found from any directory."""
    if target != STANDARD and not MODULE_FORM.fullmatch(target):
        target = str(Path(target).absolute())
    words = [target]
    steps = None if max_steps is None else str(max_steps)
    given = {"--base-url": base_url, "--max-steps": steps, "--unbounded": unbounded}
    for name, value in given.items():
        words += [name, value] if value else []
    for file in registers or ():
        # A module is found by its name, a file only by its whole path.
        words += ["--with", str(Path(file).absolute()) if file.endswith(".py") else file]
    if isinstance(store, str | Path):
        return Origin(open_store(store), str(store), words)
    return Origin(store, "", words)


def _command(*words: str) -> str:
    return shlex.join(("graphloop", *words))
