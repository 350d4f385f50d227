"""Beginnings: the messages that a run begins with, which a store keeps once for many runs.

Each question of a chat is a run, whose `Started` event has the whole conversation before it. A
journal on disk does not repeat that conversation. The messages are cut into parts of about 4 KiB,
from the first on, and each part is a blob that names the part before it. The line of the event
names the last part, and holds the messages after it:

    {…,"beginning":{"last":"sha256:…","at":1},…,"event":{"type":"Started","messages":[…],…}}

The same beginning gives the same parts. So a further question writes only its own messages, a fork
writes none, and each run can be read without the journals of earlier runs.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from typing import Final, TypeVar, final

from msgspec import DecodeError, Struct, convert, to_builtins
from msgspec.json import Decoder, Encoder

from ..errors import StoreError
from ..events import Started
from ..media import Inline
from ..run import History
from ..values import Message, SystemMessage, evolve
from .blobs import ReadBlob, attached, detached

__all__ = ["PART", "PART_BYTES", "Beginning", "Beginnings", "before", "decoded", "whole"]

T = TypeVar("T")

PART: Final = b'{"before":'
"""The first bytes of a part."""

PART_BYTES: Final = 4096
"""A part ends with the message that brings it to this size."""

CONVERSATIONS_MAX: Final = 64
"""The most conversations whose parts a store object remembers; it then forgets them all."""


class Beginning(Struct, frozen=True, gc=False):
    """The place of messages that are not in the line of their event.

    Args:
        last: the reference of the last part.
        at: the number of messages of the line that come before the parts: the instructions, which
            may be others in each run.
    """

    last: str
    at: int


class _Head(Struct, frozen=True):
    blobs: tuple[str, ...]


class _Part(Struct, frozen=True):
    before: str
    messages: tuple[Message, ...]


class _Known(Struct, frozen=True):
    """The parts of a conversation: so many messages after `at`, a part with this reference ends."""

    given: History[Message]
    at: int
    ends: tuple[tuple[int, str], ...]


@final
class Beginnings:
    """Cuts beginnings into parts for one store object, and joins them again.

    It remembers the latest conversations, so that a further question encodes only new messages.
    """

    def __init__(self) -> None:
        # By the identity of the first message, which the value keeps alive. Several threads may
        # use this; each change is one operation of a dict or a set.
        self._known: dict[int, _Known] = {}
        self._unsaved: set[str] = set()
        self._heads, self._parts = Decoder(_Head), Decoder(_Part)

    def cut(
        self, event: Started, blobs: MutableMapping[str, bytes]
    ) -> tuple[Started, Beginning | None]:
        """Return the event without the messages of its parts, and the place of these messages.

        The last message stays in the event, so the run of a single question has no parts.

        Args:
            event: the first event of a run.
            blobs: takes the bytes of each part that the store may not have.
        """
        messages, at = History(event.messages), 0
        while at < len(messages) and isinstance(messages[at], SystemMessage):
            at += 1
        ends = self._saved_parts(messages, at)
        texts: list[bytes] = []
        start, before = ends[-1] if ends else (0, "")
        for number, message in enumerate(messages[at + start : -1], start + 1):
            texts.append(_encode(message))
            if sum(map(len, texts)) >= PART_BYTES:
                before = self._add_part(texts, before, blobs)
                ends.append((number, before))
                texts = []
        if not ends:
            return event, None
        self._remember(_Known(messages, at, tuple(ends)))
        rest = (*messages[:at], *messages[at + ends[-1][0] :])
        return evolve(event, messages=rest), Beginning(before, at)

    def joined(self, event: Started, beginning: Beginning, read_blob: ReadBlob) -> Started:
        """Return the event with all its messages.

        Raises:
            StoreError: a part is missing or damaged.
        """
        parts: list[tuple[str, _Part]] = []
        last = beginning.last
        try:
            while last:
                parts.append((last, self._read_part(last, read_blob)))
                last = parts[-1][1].before
        except StoreError as error:
            raise StoreError(f"the conversation that the run begins with: {error}") from error
        said: list[Message] = []
        ends: list[tuple[int, str]] = []
        for digest, part in reversed(parts):
            said += part.messages
            ends.append((len(said), digest))
        own, at = event.messages, beginning.at
        messages = History((*own[:at], *said, *own[at:]))
        self._remember(_Known(messages, at, tuple(ends)))
        return evolve(event, messages=messages)

    def saved(self, blobs: Collection[str]) -> None:
        """Note that the store has these blobs; until then, `cut` returns their bytes again."""
        self._unsaved.difference_update(blobs)

    def _saved_parts(self, messages: History[Message], at: int) -> list[tuple[int, str]]:
        """Return the ends of the saved parts that the messages from `at` on surely begin with."""
        known = self._known.get(id(messages[at])) if at < len(messages) else None
        if known is None:
            return []
        same = len(messages) - at
        if known.at != at or not messages.starts_with(known.given):
            pairs = enumerate(zip(known.given[known.at :], messages[at:-1], strict=False))
            ours = len(known.given) - known.at
            same = next((n for n, (old, new) in pairs if old is not new), min(ours, same - 1))
        ends: list[tuple[int, str]] = []
        for number, digest in known.ends:
            if number > same or digest in self._unsaved:
                break
            ends.append((number, digest))
        return ends

    def _add_part(
        self, texts: Sequence[bytes], before: str, blobs: MutableMapping[str, bytes]
    ) -> str:
        """Add a part to `blobs`, after the media in it, and return its reference."""
        taken: dict[str, bytes] = {}
        text = detached(b'"messages":[%s]}' % b",".join(texts), taken)
        head = ENCODER.encode({"before": before, "blobs": [*taken]})
        data = head[:-1] + b"," + text
        digest = Inline(data).digest
        self._unsaved.add(digest)
        blobs.update(taken)
        blobs[digest] = data
        return digest

    def _read_part(self, digest: str, read_blob: ReadBlob) -> _Part:
        data = read_blob(digest)
        media = decoded(self._heads, data).blobs
        return decoded(self._parts, attached(data, media, read_blob) if media else data)

    def _remember(self, known: _Known) -> None:
        first = id(known.given[known.at])
        self._known.pop(first, None)
        if len(self._known) >= CONVERSATIONS_MAX:
            self._known.clear()
        self._known[first] = known


def before(part: bytes) -> str:
    """Return the reference of the part before a part; empty for the first one."""
    start = len(PART) + 1
    return part[start : part.index(b'"', start)].decode()


def whole(event: Started) -> Mapping[str, bytes]:
    """Return all parts of the conversation that a run begins with, and the media in them."""
    blobs: dict[str, bytes] = {}
    Beginnings().cut(event, blobs)
    return blobs


ENCODER: Final = Encoder()


def _encode(message: Message) -> bytes:
    try:
        return ENCODER.encode(message)
    except UnicodeEncodeError:
        # Servers may send half of a surrogate pair; the `json` module escapes it.
        return json.dumps(to_builtins(message), separators=(",", ":")).encode()


def decoded(decoder: Decoder[T], text: bytes) -> T:
    """Decode JSON, also such as the `json` module wrote for half of a surrogate pair.

    Raises:
        DecodeError: the text is not JSON, or not of this type.
        ValueError: the same, found by the `json` module.
    """
    try:
        return decoder.decode(text)
    except DecodeError:
        if b"\\ud" not in text:
            raise
        read: T = convert(json.loads(text), decoder.type)  # Stubs differ by msgspec's version.
        return read
