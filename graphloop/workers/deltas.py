"""Deltas: the text that a model streams, on its way from a run's worker to those that follow it.

    follower --wanted: run id--> each worker      every FOLLOWED_S / 3 seconds
    worker of the run --deltas--> follower        while a follower asks, joined within WINDOW_S

A store that relays texts (`stores.Relays`) carries both. A delta may be lost on the way; the event
with the whole reply comes from the journal, and never is.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, final

from msgspec import Struct
from msgspec.json import decode, encode

from ..agent import RunStream
from ..parts import StepRetry, StepStart, SubAgent
from ..providers import TextDelta
from ..stores import Relays

__all__ = ["FOLLOWED_S", "Streamed", "StreamedTexts", "follow", "streamed"]

LOG: Final = logging.getLogger("graphloop")

WANTED: Final = "followers"
FOLLOWED_S: Final = 6.0
"""For how many seconds a worker tells deltas after a follower has asked for them."""
WINDOW_S: Final = 0.02
"""The deltas of so many seconds are told together."""
CHARACTERS_MAX: Final = 1200
"""The most characters of a message: each has up to 6 bytes, and a store carries 7,500."""


class Streamed(Struct, frozen=True, gc=False):
    """Text of a reply that the model of a run has not ended yet.

    Attributes:
        seq: the number of the run's last event before the reply.
        at: how many characters of the reply come before this text. A follower that has fewer has
            lost some; one that has more begins again, since the model was asked again.
        text: the text.
    """

    seq: int
    at: int
    text: str


@dataclass(slots=True)
class _Reply:
    """How far a reply has come, and its deltas that wait to be told together."""

    at: int = 0
    waiting: list[Streamed] = field(default_factory=list[Streamed])
    flush: asyncio.Task[None] | None = None


async def follow(store: Relays, run_id: str) -> None:
    """Ask the worker of a run for deltas, for `FOLLOWED_S` seconds."""
    await store.say(WANTED, run_id)


async def streamed(store: Relays, run_id: str) -> AsyncGenerator[Streamed]:
    """Yield the deltas of a run that its worker tells from now on."""
    async with aclosing(store.heard(_topic_of(run_id))) as heard:
        async for text in heard:
            yield decode(text, type=Streamed)


@final
class StreamedTexts:
    """Tells the deltas of a worker's runs to those that follow them.

    Args:
        store: carries the deltas.
        streams: the streams of the runs under way, by run id.
    """

    def __init__(
        self, store: Relays, streams: Mapping[str, tuple[RunStream[Any, Any], object]]
    ) -> None:
        self._store = store
        self._streams = streams
        self._until: dict[str, float] = {}
        self._has_warned = False

    async def serve(self) -> None:
        """Hear of followers, and tell them deltas, until the task is cancelled."""
        told: dict[RunStream[Any, Any], asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            async for run_id in self._followed_runs():
                told = {stream: task for stream, task in told.items() if not task.done()}
                now = time.monotonic()
                self._until = {one: at for one, at in self._until.items() if at > now}
                root = run_id  # A child run may be driven beside a run above it.
                while root and root not in self._streams:
                    root = root.rpartition("/")[0]
                if not root:
                    continue
                self._until[run_id] = now + FOLLOWED_S
                stream, _ = self._streams[root]
                if stream not in told:
                    told[stream] = group.create_task(self._tell(root, stream))

    async def _followed_runs(self) -> AsyncGenerator[str]:
        """Yield the runs that are followed; without them, no run has deltas, and each goes on."""
        try:
            async with aclosing(self._store.heard(WANTED)) as wanted:
                async for run_id in wanted:
                    yield run_id
        except Exception as error:  # noqa: BLE001 - of a store, and no reason to end a run
            self._warn(error)

    def _warn(self, error: Exception) -> None:
        if not self._has_warned:
            self._has_warned = True
            LOG.warning("a worker cannot tell deltas, and its runs go on: %r", error)

    async def _tell(self, root: str, stream: RunStream[Any, Any]) -> None:
        """Tell the deltas of a run and of the child runs beside it, to the end of its stream.

        A reader that stops would end the run's drive.
        """
        replies: defaultdict[str, _Reply] = defaultdict(_Reply)
        live = list[None]()
        # The parts that are there already come without a pause, and are not told.
        asyncio.get_running_loop().call_soon(live.append, None)
        async with asyncio.TaskGroup() as group:
            async for part in stream.full_stream:
                run_id = root
                if isinstance(part, SubAgent):
                    run_id, part = "/".join((root, *part.path)), part.part  # noqa: PLW2901
                if isinstance(part, StepStart | StepRetry):
                    replies[run_id].at = 0
                elif isinstance(part, TextDelta) and part.text:
                    reply = replies[run_id]
                    begin, reply.at = reply.at, reply.at + len(part.text)
                    if not live or run_id not in self._until:
                        continue
                    run = stream.run if run_id == root else stream.children().get(run_id)
                    # Half of a surrogate pair has no bytes in UTF-8.
                    text = part.text.encode(errors="replace").decode()
                    reply.waiting.append(Streamed(0 if run is None else run.seq, begin, text))
                    if reply.flush is None or reply.flush.done():
                        reply.flush = group.create_task(self._flush(run_id, reply.waiting))

    async def _flush(self, run_id: str, waiting: list[Streamed]) -> None:
        await asyncio.sleep(WINDOW_S)
        ready, waiting[:] = [*waiting], []
        if self._until.get(run_id, 0.0) > time.monotonic():
            try:
                for delta in _join_deltas(ready):
                    await self._store.say(_topic_of(run_id), encode(delta).decode())
            except Exception as error:  # noqa: BLE001 - of a store; a reader that ends ends the run
                self._warn(error)


def _join_deltas(deltas: list[Streamed]) -> Iterator[Streamed]:
    """Join deltas that follow each other, up to the size of a message."""
    while deltas:
        first, text = deltas[0], ""
        while deltas and (deltas[0].seq, deltas[0].at) == (first.seq, first.at + len(text)):
            text += deltas.pop(0).text
        for begin in range(0, len(text), CHARACTERS_MAX):
            yield Streamed(first.seq, first.at + begin, text[begin : begin + CHARACTERS_MAX])


def _topic_of(run_id: str) -> str:
    return f"deltas of {run_id}"
