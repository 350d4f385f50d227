"""One run's journal as a command reads it, its graph, and what was answered since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from ..errors import ConfigError
from ..events import Event
from ..front.graph import Graph
from ..front.journals import root_of
from ..stores.base import Mailbox
from .noted import Noted
from .parked import answered
from .stored import find_run, opened, record_of
from .target import load_graph, register_once

__all__ = ["Journal", "read", "read_answers", "read_below"]


@final
@dataclass(frozen=True)
class Journal:
    """The events of a run, what it was started from if that is noted, whether it has children."""

    run_id: str
    events: Sequence[Event]
    noted: Noted
    has_children: bool

    @property
    def target(self) -> str:
        """What it was started from; empty if that is not noted."""
        return self.noted.target

    def target_or(self, given: str | None) -> str:
        """Return what to load: what was given, else what was noted, with what registers its names.

        Raises:
            ConfigError: neither says, or what registers cannot be loaded.
        """
        if given:
            return given
        if self.target:
            register_once(self.noted.values("--with"))
            return self.target
        raise ConfigError(
            f"run {self.run_id!r} does not say what it was started from: name it with --target, as "
            "for graphloop run (a directory, a .py file, or module:name)."
        )

    def first(self, number: int | None) -> Journal:
        """Return the journal as it was after so many events; all if None.

        Raises:
            ConfigError: it has not so many.
        """
        if number is None:
            return self
        self.check_number("--upto", number)
        return replace(self, events=self.events[:number])

    def check_number(self, option: str, number: int) -> None:
        """Refuse the number of an event that the run has not.

        Raises:
            ConfigError: naming the option, and the events that there are.
        """
        if not 1 <= number <= len(self.events):
            raise ConfigError(
                f"run {self.run_id!r} has events 1 to {len(self.events)}, found {option} {number}"
            )

    def graph(self, given: str | None) -> Graph[None]:
        """Return the graph of the run.

        Raises:
            ConfigError: nobody says what it is, or it cannot be loaded.
        """
        return load_graph(self.target_or(given))


async def read(where: str | None, text: str) -> Journal:
    """Read the journal of the run that `text` names.

    Raises:
        ConfigError: there is no such store or run.
        StoreError: the journal cannot be read.
    """
    async with opened(where) as store:
        run_id = await find_run(store, text, where)
        record = await record_of(store, run_id)
        children = any(one.startswith(f"{run_id}/") for one in await store.runs())
        noted = Noted() if record is None else Noted.read(record.target)
        return Journal(run_id, await store.load(run_id), noted, children)


async def read_answers(where: str | None, run_id: str) -> Mapping[str, str]:
    """Return how calls of a run were answered since it was last driven, by their keys.

    Keys are those of its root run's caller.

    Raises:
        ConfigError: there is no such store.
        StoreError: an answer cannot be read.
    """
    root, _ = root_of(run_id, "")
    async with opened(where) as store:
        return answered(await store.posted(root)) if isinstance(store, Mailbox) else {}


async def read_below(where: str | None, run_id: str) -> Mapping[str, Sequence[Event]]:
    """Read the journals of the runs below a run, by their ids without its own.

    Raises:
        ConfigError: there is no such store.
        StoreError: a journal cannot be read.
    """
    above = f"{run_id}/"
    async with opened(where) as store:
        known = [one for one in await store.runs() if one.startswith(above)]
        return {one.removeprefix(above): await store.load(one) for one in known}
