"""Answer: what a run says, as the one artifact of its task.

The SDK copies a whole task for each piece of its artifact, and queues the copies for each client.
So text goes out in groups: what the model says while a piece is under way is the next piece. A
piece has arrived once the task is saved, and each client that streams it has it: a client that does
not read fills no memory. No clock decides, and the run never waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Set
from typing import Any, Final, final

from a2a.helpers import new_text_part
from a2a.server.tasks import TaskUpdater
from a2a.types import Artifact, Part, Task
from msgspec import Struct

from ..a2a import media_part
from ..agent import RunResult, RunStream
from ..conversation import ended_answer, ended_media
from ..parts import StepRetry, StepStart
from ..providers import TextDelta

__all__ = ["AnswerSender", "ended_artifact", "join_texts"]

ANSWER: Final = "answer"
"""The id and name of the artifact."""


class _Piece(Struct, frozen=True):
    """Texts that go out as one; they follow the artifact so far, or begin it anew."""

    append: bool
    texts: list[str]


@final
class AnswerSender:
    """Sends the text of a run's turn as the artifact of its task; the next turn replaces it.

    Args:
        updater: tells the task.
        streams: the streams of the task that clients read; the caller changes it.
    """

    def __init__(self, updater: TaskUpdater, streams: Set[object]) -> None:
        self._updater, self._streams = updater, streams
        self._behind: set[object] = set()
        self._said: list[str] = []
        self._held: list[_Piece] = []
        self._over = False
        self._wanted, self._arrived = asyncio.Event(), asyncio.Event()
        self._arrived.set()

    def arrive(self, stream: object = None) -> None:
        """Note that a stream has the last piece, or will have none; without one, the task."""
        self._behind.discard(stream)
        if not self._behind:
            self._arrived.set()

    async def send(self, stream: RunStream[Any]) -> RunResult[Any]:
        """Drive a run, and send what it says; the media of the whole run follow at its end."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send_pieces())
            async for part in stream.full_stream:
                match part:
                    case TextDelta(text=text) if text:
                        self._say(text)
                    case StepStart() | StepRetry():
                        self._said.clear()
                    case _:
                        pass
            self._over = True
            self._wanted.set()
            self._arrived.set()
        result = await stream.result()
        text, media = ended_answer(result.run), _media_in(result)
        if text and text != "".join(self._said):
            await self._add(new_text_part(text), append=False)
        if media:
            await self._add(*media, append=bool(text))
        return result

    def _say(self, text: str) -> None:
        """Say a text of the turn: in the piece that is held, or in a new one."""
        if not self._held or not self._said:
            self._held.append(_Piece(bool(self._said), []))
        self._held[-1].texts.append(text)
        self._said.append(text)
        self._wanted.set()

    async def _send_pieces(self) -> None:
        """Send what is held, each time that the last piece has arrived, until the run rests."""
        while not self._over or self._held:
            await self._wanted.wait()
            if not self._over:
                await self._arrived.wait()
            self._wanted.clear()
            pieces, self._held = self._held, []
            for piece in pieces:
                self._arrived.clear()
                self._behind = set(self._streams)
                await self._add(new_text_part("".join(piece.texts)), append=piece.append)

    async def _add(self, *parts: Part, append: bool) -> None:
        await self._updater.add_artifact(list(parts), ANSWER, ANSWER, append=append)


def ended_artifact(result: RunResult[Any]) -> Artifact | None:
    """Return the answer of a run that is over, with its media; None without any."""
    text = ended_answer(result.run)
    parts = [*([new_text_part(text)] if text else []), *_media_in(result)]
    return Artifact(artifact_id=ANSWER, name=ANSWER, parts=parts) if parts else None


def join_texts(task: Task, parts_max: int = 1) -> None:
    """Make the texts of an artifact one part: readers put a line break between parts.

    Args:
        task: the task, which keeps the memory of all its former parts.
        parts_max: the most parts of an artifact that is left as it is.
    """
    for artifact in task.artifacts:
        if len(artifact.parts) > parts_max:
            text = "".join([part.text for part in artifact.parts])
            media = [part for part in artifact.parts if not part.HasField("text")]
            parts = [*([new_text_part(text)] if text else []), *media]
            artifact.CopyFrom(Artifact(artifact_id=ANSWER, name=ANSWER, parts=parts))


def _media_in(result: RunResult[Any]) -> list[Part]:
    """Return the media of a run that is over; none of a run that waits."""
    return [media_part(part) for part in ended_media(result.run)] if result.run.ended else []
