"""Where a run is kept, and the commands that take it up again from there."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import final

from ..stores.base import Catalog, Mailbox, Store
from .noted import Noted
from .target import MODULE_FORM, STANDARD

__all__ = ["Place", "repeated", "target_text"]


@final
@dataclass(frozen=True)
class Place:
    """A store by its path, and what is run.

    Attributes:
        store: the store, open.
        path: what `--store` says; empty for a store that only the target's code can open.
        target: what a later command has to load; noted in the store if it keeps notes.
        options: options of the run that a later command has to repeat; noted with the target.
    """

    store: Store
    path: str
    target: str
    options: tuple[str, ...] = ()

    @property
    def takes_answers(self) -> bool:
        """Whether another process can leave an answer here."""
        return isinstance(self.store, Mailbox) and bool(self.path)

    async def note(self, run_id: str) -> None:
        """Note what the run was started from, so that later commands need no target."""
        if isinstance(self.store, Catalog) and self.target:
            await self.store.set_target(run_id, str(Noted(self.target, self.options)))

    def approve_command(self, run_id: str, key: str) -> str:
        """Return the command that approves a call."""
        return _command("approve", run_id, key, "--store", self.path)

    def resume_command(self, run_id: str, *options: str) -> str:
        """Return the command that takes the run up."""
        noted = isinstance(self.store, Catalog)
        target = () if noted or not self.target else ("--target", self.target)
        own = () if noted else self.options
        given = (*target, *own, *options, "--store", self.path)
        return _command("resume", run_id, *given)


def target_text(text: str) -> str:
    """Return what names the same target from any directory; a module's name does as it is."""
    if text == STANDARD or MODULE_FORM.fullmatch(text):
        return text
    return str(Path(text).absolute())


def repeated(
    base_url: str | None,
    max_steps: int | None,
    unbounded: str | None = None,
    *,
    registers: Iterable[str] = (),
) -> tuple[str, ...]:
    """Return the options of a run that taking it up has to repeat: no journal knows them."""
    steps = None if max_steps is None else str(max_steps)
    given = {"--base-url": base_url, "--max-steps": steps, "--unbounded": unbounded}
    words = [word for name, value in given.items() if value for word in (name, value)]
    # A module is found by its name, a file only by its whole path.
    files = [str(Path(one).absolute()) if one.endswith(".py") else one for one in registers]
    return (*words, *[word for one in files for word in ("--with", one)])


def _command(*words: str) -> str:
    return shlex.join(("graphloop", *words))
