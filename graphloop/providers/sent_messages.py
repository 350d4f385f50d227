"""SentMessages: the encoded bytes of a history that only grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import is_
from typing import final

from ..run import History
from ..values import Message

__all__ = ["SentMessages"]


@final
class SentMessages:
    """The messages that a session has encoded, and their bytes in few parts."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._known: Sequence[Message] = ()

    def begin(self, messages: Sequence[Message]) -> bool:
        """Whether `messages` begin with the encoded messages, object for object."""
        known = self._known
        if isinstance(messages, History) and isinstance(known, History):
            return messages.starts_with(known)
        return len(messages) >= len(known) and all(map(is_, messages, known))

    def missing_in(self, messages: Sequence[Message]) -> Iterator[tuple[int, Message]]:
        """Yield the messages behind the encoded ones, with their places."""
        start = len(self._known)
        yield from enumerate(messages[start:], start)

    def keep(self, messages: Sequence[Message]) -> None:
        """Note that all of `messages` are encoded."""
        # Anything but a History may be a list that its owner changes after the call.
        self._known = messages if isinstance(messages, History) else tuple(messages)

    def push(self, part: bytes) -> None:
        """Add bytes; parts merge like a binary counter, so there are few."""
        parts = self.parts
        parts.append(part)
        while len(parts) > 1 and len(parts[-2]) <= len(parts[-1]):
            last = parts.pop()
            parts[-1] += last
