"""The encoder of every wire: each message is encoded once.

A wire writes the head of a request (settings, tools) and each message. This module keeps the bytes
of both, so that while a run only appends, a request is a byte prefix of the next one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from operator import is_
from typing import final

from ..errors import ConfigError
from ..run import History
from ..values import Message, ModelRequest

__all__ = ["EncodedHistory", "PrefixEncoder"]


class EncodedHistory(ABC):
    """A growing history and its bytes; each wire has a subclass.

    Attributes:
        parts: the bytes of the encoded messages.
        instructions: the system messages that the wire sends in the head of the request.
    """

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.instructions: list[str] = []
        self._known: Sequence[Message] = ()

    @abstractmethod
    def add(self, position: int, message: Message) -> None:
        """Encode the message at this position, and `push` its bytes.

        Raises:
            ConfigError: this wire has no form for the message.
        """

    @abstractmethod
    def end(self, request: ModelRequest) -> bytes:
        """Return the end of the body: open messages and closing brackets."""

    @final
    def is_start_of(self, messages: Sequence[Message]) -> bool:
        """Whether `messages` begin with the encoded messages, object for object."""
        known = self._known
        if isinstance(messages, History) and isinstance(known, History):
            return messages.starts_with(known)
        return len(messages) >= len(known) and all(map(is_, messages, known))

    @final
    def grow(self, messages: Sequence[Message]) -> None:
        """Encode the messages behind the encoded ones."""
        start = len(self._known)
        for position, message in enumerate(messages[start:], start):
            self.add(position, message)
        # Anything but a History may be a list that its owner changes after the call.
        self._known = messages if isinstance(messages, History) else tuple(messages)

    @final
    def push(self, message: bytes) -> None:
        """Add an encoded message; small parts merge, so there are few."""
        parts = self.parts
        parts.append(b"," + message if parts else message)
        while len(parts) > 1 and len(parts[-2]) <= len(parts[-1]):
            last = parts.pop()
            parts[-1] += last


@final
class PrefixEncoder:
    """Encodes the requests of one run (see `Encoder`).

    Args:
        new_history: returns an empty history in the wire's form.
        write_head: returns the body up to and with the bracket that opens the messages, from the
            request and the instructions of its history.
    """

    def __init__(
        self,
        new_history: Callable[[], EncodedHistory],
        write_head: Callable[[ModelRequest, Sequence[str]], bytes],
    ) -> None:
        self._new_history = new_history
        self._write_head = write_head
        self._history = new_history()
        self._head = b""
        self._head_of: tuple[object, ...] | None = None

    def encode(self, request: ModelRequest) -> list[bytes]:
        """Return the request body in parts; their join is one JSON object.

        Raises:
            ConfigError: this wire has no form for a setting, tool, option or message.
        """
        if not self._history.is_start_of(request.messages):
            self._history = self._new_history()
        try:
            self._history.grow(request.messages)
        except ConfigError:
            self._history = self._new_history()  # Half of the new messages may be in the old one.
            raise
        instructions = tuple(self._history.instructions)
        asked = (request.tools, request.tool_choice, request.settings, request.output, instructions)
        if asked != self._head_of:
            self._head = self._write_head(request, instructions)
            self._head_of = asked
        return [self._head, *self._history.parts, self._history.end(request)]
