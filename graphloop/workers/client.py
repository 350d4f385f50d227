"""Client: answers, commands and follows stored runs, from a process without their agents.

    client = Client("postgresql://app@db.example:5432/runs")
    await client.approve("order-7", key, True)
    await client.cancel("order-7", "the customer has left")

The run's driver obeys, in whatever process it is. A worker hears of a command at once if its store
tells of it (`stores.Wakes`), and otherwise at its next look; another driver reads the mailbox when
it resumes the run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, final, overload
from uuid import uuid4

from msgspec import Struct

from ..agent import StoredRuns, StoreInput, approval_from
from ..errors import ConfigError
from ..events import ChildEnded, Event, ModelReplied, Resumed
from ..policy import Approval, decline
from ..stores import (
    OVER,
    Catalog,
    Closes,
    CommandKind,
    Mailbox,
    Posted,
    Relays,
    RunCommand,
    RunRecord,
    RunStatus,
    Store,
    check_text,
    open_store,
    paged,
)
from .deltas import FOLLOWED_S, Streamed, follow, streamed

__all__ = ["Client", "Ended", "Journaled"]


class Journaled(NamedTuple):
    """An event of a run, and its number in the run's journal, from 1."""

    seq: int
    event: Event


class Ended(Struct, frozen=True):
    """How a run ended, as far as a process without its agent can tell.

    Attributes:
        run_id: the run's id.
        status: how the run ended.
        text: the last text of the run's model, or of its last child run. It is the answer if the
            status is "done", and the run was not stopped by a limit.
    """

    run_id: str
    status: Literal["done", "failed", "cancelled"]
    text: str


@final
class Client:
    """The runs of a store, for a program that knows no agent: a web server, a chat tool, a script.

    Each answer and command may be repeated after a failure: of the same ones, one counts.

    Args:
        store: the store of the runs, or its path. A store that a path names is closed by `aclose`.
        poll_s: the seconds between two looks of `result` and `stream` at a run.

    Raises:
        ConfigError: the store keeps no mailbox and no catalog, or `poll_s` is not positive.
    """

    def __init__(self, store: StoreInput, *, poll_s: float = 0.1) -> None:
        if not poll_s > 0:
            raise ConfigError(f"poll_s: expected a positive number, found {poll_s!r}.")
        self._is_own = isinstance(store, str | Path)
        opened = open_store(store) if isinstance(store, str | Path) else store
        self._store, self._mailbox, self._catalog = opened, *_check_abilities(opened)
        self._runs: StoredRuns[Any] = StoredRuns(opened)
        self._poll_s = poll_s

    def __repr__(self) -> str:
        return f"<Client of {self._store!r}>"

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the store, if this client opened it."""
        if self._is_own and isinstance(self._store, Closes):
            await self._store.aclose()

    async def approve(
        self,
        run_id: str,
        key: str,
        answer: bool | Approval = True,  # noqa: FBT001, FBT002 - as `Runs.approve`
        *,
        signal_id: str = "",
    ) -> Posted:
        """Answer a question of a run; its driver goes on with the answer.

        The question may be one that the run had before a driver claimed it. A question that arose
        since takes an answer as soon as the run parks.

        Args:
            run_id: the run's id.
            key: the key of the question.
            answer: the decision; False denies the call.
            signal_id: the id of this answer; by default the answer itself is its id.

        Returns:
            "accepted" for the first answer, "duplicate" if it was given before, or "answered" if
            another answer was.

        Raises:
            ConfigError: the run does not ask this, or the answer does not fit; see `Runs.approve`.
            UnknownRun: there is no such run.
        """
        if signal_id:
            answer = replace(approval_from(answer), signal_id=signal_id)
        return await self._runs.approve(run_id, key, answer)

    async def decline(
        self, run_id: str, key: str, reason: str = "", *, signal_id: str = ""
    ) -> Posted:
        """Deny a call that a run asks about; the model reads the reason. See `approve`."""
        return await self.approve(run_id, key, decline(reason), signal_id=signal_id)

    async def cancel(self, run_id: str, reason: str = "") -> Posted:
        """End a run with its child runs as `aborted`; its history has a result for each call.

        Returns:
            "accepted", or "duplicate" if the run was cancelled before.

        Raises:
            ConfigError: the run is over, or a part of another run.
            UnknownRun: there is no such run.
        """
        return await self._command(run_id, "cancel", reason, "cancel")

    async def steer(self, run_id: str, message: str, *, signal_id: str = "") -> Posted:
        """Add a message that the model reads in its next turn.

        Args:
            run_id: the run's id.
            message: the text.
            signal_id: the id of this message; by default a random one, so that a text may come
                twice. A caller who repeats a failed call gives the same id.

        Raises:
            ConfigError: the message is blank or has half a surrogate pair, or the run is over or a
                part of another run.
            UnknownRun: there is no such run.
        """
        return await self._command(run_id, "steer", _check_text(message), signal_id)

    async def follow_up(self, run_id: str, message: str, *, signal_id: str = "") -> Posted:
        """Add a message that the model reads after its final answer; see `steer`."""
        return await self._command(run_id, "follow_up", _check_text(message), signal_id)

    async def result(self, run_id: str, *, timeout_s: float | None = None) -> Ended:
        """Wait until a run is over, and return how it ended.

        Raises:
            TimeoutError: the run is not over in time; it goes on.
            UnknownRun: there is no such run.
        """
        async with asyncio.timeout(timeout_s):
            while True:
                status = (await self._catalog.record(run_id)).status
                if status in ("done", "failed", "cancelled"):
                    return Ended(run_id, status, _last_text(await self._store.load(run_id)))
                await asyncio.sleep(self._poll_s)

    @overload
    def stream(
        self, run_id: str, *, after: int = 0, deltas: Literal[False] = False
    ) -> AsyncGenerator[Journaled]: ...

    @overload
    def stream(
        self, run_id: str, *, after: int = 0, deltas: bool
    ) -> AsyncGenerator[Journaled | Streamed]: ...

    def stream(
        self, run_id: str, *, after: int = 0, deltas: bool = False
    ) -> AsyncGenerator[Journaled] | AsyncGenerator[Journaled | Streamed]:
        """Yield the events of a run from the journal, each with its number, until the run is over.

        A reader that was cut off goes on after the last number that it has: no event is lost, and
        none comes twice. With `deltas`, the text of a reply comes as its model streams it, and then
        the event with the whole reply. A delta may be lost, an event is not.

        Args:
            run_id: the run's id.
            after: the number of the last event that the reader has.
            deltas: whether `Streamed` texts come between the events. A worker tells them over a
                PostgreSQL store; they are those of this run: a child run is followed by its id.

        Raises:
            ConfigError: the store does not pass on deltas.
            UnknownRun: there is no such run.
        """
        if not deltas:
            return self._events(run_id, after)
        if not isinstance(self._store, Relays):
            raise ConfigError(
                f"`deltas`: expected a store that tells other processes at once, found "
                f"{self._store!r}. Fix: keep the runs in PostgreSQL, or leave it out."
            )
        return self._parts(self._store, run_id, after)

    async def _events(self, run_id: str, after: int) -> AsyncGenerator[Journaled]:
        while True:
            found, is_over = await self._events_since(run_id, after)
            for one in found:
                after = one.seq
                yield one
            if is_over:
                return
            if not found:
                await asyncio.sleep(self._poll_s)

    async def _parts(
        self, store: Relays, run_id: str, after: int
    ) -> AsyncGenerator[Journaled | Streamed]:
        follow_at, texts = 0.0, streamed(store, run_id)
        heard = asyncio.ensure_future(anext(texts))
        try:
            while True:
                found, is_over = await self._events_since(run_id, after)
                for one in found:
                    after = one.seq
                    if isinstance(one.event, Resumed):  # In a worker that may not know of us.
                        follow_at = 0.0
                    yield one
                if is_over:
                    return
                look_at = time.monotonic() + self._poll_s
                if time.monotonic() >= follow_at:
                    await follow(store, run_id)
                    follow_at = time.monotonic() + FOLLOWED_S / 3
                while (rest_s := look_at - time.monotonic()) > 0:
                    await asyncio.wait((heard,), timeout=rest_s)
                    if heard.done():
                        delta = heard.result()
                        heard = asyncio.ensure_future(anext(texts))
                        if delta.seq >= after:  # Else the event with the reply has come.
                            yield delta
        finally:
            heard.cancel()
            await asyncio.wait((heard,))
            await texts.aclose()

    async def _events_since(self, run_id: str, after: int) -> tuple[Sequence[Journaled], bool]:
        """Return the events after this number, and whether these are the last."""
        # Read before the events: all events of a run that is over are in its journal.
        record = await self._catalog.record(run_id)
        if record.events <= after:
            return (), record.status in OVER
        events = (await self._store.load(run_id))[after:]
        return [Journaled(at, event) for at, event in enumerate(events, after + 1)], False

    async def runs(
        self,
        *,
        status: RunStatus | None = None,
        agent: str | None = None,
        after: str = "",
        limit: int | None = None,
    ) -> AsyncIterator[RunRecord]:
        """Yield the records of runs in the order of their creation, read page by page.

        Args:
            status: the status of the wanted runs; by default, any.
            agent: the name of their agent; by default, any.
            after: the id of a run: those that follow it are wanted.
            limit: the most runs to yield; by default, all.

        Raises:
            UnknownRun: the store has no run `after`.
        """
        statuses = () if status is None else (status,)
        async for record in paged(self._catalog, statuses, agent, after=after, limit=limit):
            yield record

    async def _command(self, run_id: str, kind: CommandKind, text: str, signal_id: str) -> Posted:
        root, slash, _ = run_id.partition("/")
        if slash:
            raise ConfigError(
                f"run {run_id!r}: expected a run of its own, found a part of run {root!r}. Fix: "
                f"command run {root!r}, whose driver drives it."
            )
        check_text("reason" if kind == "cancel" else "message", text)
        check_text("signal_id", signal_id)
        command = RunCommand(kind, text, signal_id or uuid4().hex)
        record = await self._catalog.record(run_id)
        if record.status in OVER and command.key not in await self._mailbox.posted(run_id):
            raise ConfigError(f"run {run_id!r} takes no commands: it is over ({record.status}).")
        return await self._mailbox.post(run_id, command.key, command.signal_id, text)


def _check_abilities(store: Store) -> tuple[Mailbox, Catalog]:
    if not (isinstance(store, Mailbox) and isinstance(store, Catalog)):
        raise ConfigError(
            f"a client: expected a store that takes answers from other processes, found {store!r}. "
            "Fix: keep the runs in a database, 'runs.db'."
        )
    return store, store


def _check_text(message: str) -> str:
    if not message.strip():
        raise ConfigError("`message`: expected text, found none.")
    return message


def _last_text(events: Sequence[Event]) -> str:
    for event in reversed(events):
        if isinstance(event, ModelReplied):
            return event.reply.message.text
        if isinstance(event, ChildEnded):
            return event.content
    return ""
