"""Stored runs: find and read the runs of a store, and name the commands that continue a run.

With each run, a store keeps command line words for resuming it: the target, and the options that
are not in the journal. An example is `/desk/support.yaml --with /desk/tools.py`.
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
from ..stores import (
    LOCK,
    SUFFIX,
    Catalog,
    Closes,
    Mailbox,
    Operated,
    Store,
    has_scheme,
    open_store,
    shown_address,
)
from ..workers import Client
from .modules import register
from .target import absolute_target, load_graph
from .text import one_line

__all__ = [
    "Journal",
    "Origin",
    "Start",
    "answers_text",
    "child_journals",
    "close",
    "find_run",
    "named",
    "opened",
    "origin_of",
    "reached",
    "read",
    "refuse_unreachable",
]

LISTED_MAX: Final = 5
EDIT_MAX: Final = 120


@asynccontextmanager
async def opened(where: str | None) -> AsyncGenerator[Store]:
    """Open an existing store, and close it at the end of the `async with` block."""
    place = where if where is not None and has_scheme(where) else _existing_path(where)
    store = open_store(place)
    try:
        if isinstance(store, Operated) and not await store.is_made():
            raise ConfigError(
                f"--store {shown_address(place)}: expected a store, found a database without its "
                "tables. Fix: check the name. graphloop run, submit and worker create a new store."
            )
        yield store
    finally:
        await close(store)


@asynccontextmanager
async def reached(run: str, where: str | None) -> AsyncGenerator[tuple[Client, str]]:
    """Open the store of a run; yield a client of it, and the whole id that begins with `run`."""
    async with opened(where) as store:
        yield Client(store), await find_run(store, run, str(where))


def named(where: str | None) -> str:
    """Return the value of `--store`; raise an error if there is none."""
    if where is None:
        raise ConfigError(
            "--store: expected a store to look into, found none. Fix: name it (--store runs.db), "
            "or set GRAPHLOOP_STORE."
        )
    return where


def _existing_path(where: str | None) -> Path:
    """Return the path of a store; raise an error if there is no store at the path."""
    where = named(where)
    path = Path(where)
    try:
        is_there = path.exists()
        folder = path if is_there else path.parent
        names = [file.name for file in folder.iterdir()] if folder.is_dir() else []
    except OSError as error:
        raise ConfigError(
            f"--store {where}: expected a path that can be read, found: {error.strerror}. "
            "Fix: give another path, or the rights to its folders."
        ) from error
    if not is_there:
        if path.is_symlink():
            raise ConfigError(
                f"{where}: expected a store, found a link to nothing. Fix: mend or remove the link."
            )
        raise ConfigError(
            f"{where}: expected a store, found nothing of that name.{nearest(path.name, names)} "
            "Fix: name the store that the runs were started with."
        )
    suffixes = {Path(name).suffix for name in names}
    if suffixes and not suffixes & {SUFFIX, LOCK}:
        raise ConfigError(
            f"{where}: expected a store, found a folder with other files in it. Fix: name a "
            f"database (runs.db), or a folder of journals (*{SUFFIX})."
        )
    return path


def refuse_unreachable(where: str) -> None:
    """Raise an error if a new SQLite store would be in a folder that does not exist."""
    store, folder = open_store(where), Path(where).parent
    if isinstance(store, Closes) and not has_scheme(where) and not folder.is_dir():
        raise ConfigError(
            f"--store {where}: expected a folder at {str(folder)!r}, found none. Fix: create it."
        )


async def close(store: Store) -> None:
    """Close a store that keeps files or connections open."""
    if isinstance(store, Closes):
        await store.aclose()


async def find_run(store: Store, text: str, where: str) -> str:
    """Return the id of the only run whose id begins with `text`."""
    known = await store.runs()
    if text in known:
        return text
    root, slash, path = text.partition("/")
    roots = [run_id for run_id in known if "/" not in run_id and run_id.startswith(root)]
    if len(roots) > 1:
        more = f" and {len(roots) - LISTED_MAX} more" if len(roots) > LISTED_MAX else ""
        raise ConfigError(
            f"{text}: expected a run, found {len(roots)} whose ids begin so: "
            f"{', '.join(roots[:LISTED_MAX])}{more}. Fix: give more of the id."
        )
    run_id = f"{roots[0]}{slash}{path}" if roots else ""
    if run_id not in known:
        raise ConfigError(
            f"{text}: expected a run's id, or its beginning, found no run that has it."
            f"{nearest(text, known)} See all runs with: "
            f"{_command_line('runs', '--all', '--store', shown_address(where))}"
        )
    return run_id


class Start(NamedTuple):
    """The target of a run, and the options that the run's journal does not contain."""

    target: str
    base_url: str | None = None
    max_steps: int | None = None
    unbounded: str | None = None
    registers: Sequence[str] = ()

    @classmethod
    def noted(cls, note: str) -> Start | None:
        """Parse the words that a store keeps for a run; None if there are no words."""
        try:
            words = shlex.split(note)
        except ValueError:  # Another program may have written it.
            words = [note]
        if not words:
            return None
        options = list(pairwise(words))
        values = dict(reversed(options))
        return cls(
            words[0],
            values.get("--base-url"),
            int(values["--max-steps"]) if "--max-steps" in values else None,
            values.get("--unbounded"),
            tuple([value for name, value in options if name == "--with"]),
        )

    def over(self, earlier: Start) -> Start:
        """Return this start, with its missing values taken from an earlier start."""
        values = {name: now for name, now in self._asdict().items() if now not in (None, "", ())}
        return earlier._replace(**values)

    def words(self) -> Sequence[str]:
        """Return the words for a store to keep, with absolute paths, valid in every directory."""
        values = {
            "--base-url": self.base_url,
            "--max-steps": None if self.max_steps is None else str(self.max_steps),
            "--unbounded": self.unbounded,
        }
        words = [absolute_target(self.target)]
        words += [word for name, value in values.items() if value for word in (name, value)]
        for file in self.registers:
            words += ["--with", str(Path(file).absolute()) if file.endswith(".py") else file]
        return words


@final
@dataclass(frozen=True)
class Journal:
    """The events of a run, its start as the store keeps it, and whether it has child runs."""

    run_id: str
    events: Sequence[Event]
    start: Start | None
    has_children: bool

    def target(self, target: str | None) -> str:
        """Return `target`, or the stored target of the run if `target` is empty.

        With the stored target, also execute the stored `--with` files.
        """
        if target:
            return target
        if self.start is not None:
            register(self.start.registers)
            return self.start.target
        raise ConfigError(
            f"--target: expected the target of run {self.run_id!r}, found no note of it. "
            "Fix: name it as for graphloop run (a directory, a .py file, or module:name)."
        )

    def graph(self, target: str | None) -> Graph[None]:
        """Load the graph of `target`; if `target` is empty, the graph of the stored target."""
        return load_graph(self.target(target))

    def refuse_part(self, command: str) -> None:
        """Raise an error if the run is a child run, which `command` reaches through its root."""
        root, slash, _ = self.run_id.partition("/")
        if slash:
            raise ConfigError(
                f"run {self.run_id!r} is a part of run {root!r}, and goes on with it. Fix: "
                f"graphloop {command} {root}"
            )

    def check_number(self, option: str, number: int) -> None:
        """Raise an error if the run does not have an event with this number."""
        if not 1 <= number <= len(self.events):
            raise ConfigError(
                f"{option}: run {self.run_id!r} has events 1 to {len(self.events)}, found {number}."
            )


async def read(where: str | None, text: str) -> Journal:
    """Read the journal of the run whose id begins with `text`."""
    async with opened(where) as store:
        run_id = await find_run(store, text, str(where))
        note = await _note_of(store, run_id)
        has_children = any(known.startswith(f"{run_id}/") for known in await store.runs())
        return Journal(run_id, await store.load(run_id), Start.noted(note), has_children)


async def _note_of(store: Store, run_id: str) -> str:
    """Return the words that a store keeps for a run; empty for a run started from Python."""
    records = await store.overview(run_id) if isinstance(store, Catalog) else ()
    return "".join([record.target for record in records if record.run_id == run_id])


async def child_journals(store: Store, run_id: str) -> Mapping[str, Sequence[Event]]:
    """Return the journals of a run's descendants, by their ids without the run's own."""
    start = f"{run_id}/"
    below = [known for known in await store.runs() if known.startswith(start)]
    return {known.removeprefix(start): await store.load(known) for known in below}


async def answers_text(store: Store, run_id: str) -> Mapping[str, str]:
    """Return a text for each stored answer that the root run has not read yet, by call key."""
    if not isinstance(store, Mailbox):
        return {}
    answers = Answers.of_posts(await store.posted(run_id))
    texts = dict.fromkeys(answers.tool_results, "answered")
    for key, answer in answers.approvals.items():
        approval = approval_from(answer)
        edit = f", edited: {one_line(approval.edit, EDIT_MAX)}" if approval.edit else ""
        texts[key] = f"approved{edit}" if approval.approved else "denied"
    return texts


@final
@dataclass(frozen=True)
class Origin:
    """The open store of a run, the store's path, and the command line words that start the run.

    `path` is for people: an address of a server has no password. It is empty if only the Python
    code of the target can open the store.
    """

    store: Store
    path: str
    words: Sequence[str]

    @property
    def takes_answers(self) -> bool:
        """Whether another process can store an answer for the run."""
        return isinstance(self.store, Mailbox) and bool(self.path)

    async def note(self, run_id: str) -> None:
        """Store the words that start the run, so that later commands need no `--target`."""
        if isinstance(self.store, Catalog):
            await self.store.set_target(run_id, shlex.join(self.words))

    def approve_command(self, run_id: str, key: str) -> str:
        """Return the shell command that approves a call of the run."""
        return _command_line("approve", run_id, key, "--store", self.path)

    def fork_command(self, run_id: str) -> str:
        """Return the shell command that copies the run up to event N."""
        return _command_line("fork", run_id, "--at", "N", "--store", self.path)

    async def resume_command(self, run_id: str) -> str:
        """Return the shell command that resumes the run, without words that the store keeps."""
        repeated = () if await _note_of(self.store, run_id) else ("--target", *self.words)
        return _command_line("resume", run_id, *repeated, "--store", self.path)


def origin_of(store: Store | str | Path, start: Start) -> Origin:
    """Return the `Origin` of a run; if `store` is a path, open the store at the path."""
    if isinstance(store, str | Path):
        return Origin(open_store(store), shown_address(store), start.words())
    return Origin(store, "", start.words())


def _command_line(*words: str) -> str:
    return shlex.join(("graphloop", *words))
