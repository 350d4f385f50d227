"""Base classes for the request encoders of all wire formats, which encode each message once.

A wire format encodes the head of a request (settings, tools) and each message. This module caches
both. So if a run only appends messages, each request starts with the previous request's messages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from math import inf
from operator import is_
from time import time
from typing import assert_never, final

from ..errors import ConfigError
from ..run import History
from ..values import (
    AssistantMessage,
    AssistantPart,
    MediaPart,
    Message,
    ModelRequest,
    OpaquePart,
    ReasoningPart,
    Reply,
    TextPart,
    ToolCall,
    ToolResult,
    evolve,
)

__all__ = ["CallIds", "EncodedHistory", "PrefixEncoder", "of_service"]


class EncodedHistory(ABC):
    """A run's history in encoded form, extended with each request; each wire has a subclass.

    Attributes:
        parts: the bytes of the encoded messages, in order.
        instructions: the system messages that the wire sends in the head of the request.
        now: the time of the request, in seconds since the epoch.
        valid_until: the time at which the messages must be encoded again, since the server then
            forgets an id that they name.
    """

    def __init__(self) -> None:
        self.now, self.valid_until = 0.0, inf
        self.parts: list[bytes] = []
        self.instructions: list[str] = []
        self._known: Sequence[Message] = ()

    @abstractmethod
    def add(self, position: int, message: Message) -> None:
        """Encode the message at index `position` of the history, and `push` its bytes.

        Raises:
            ConfigError: this wire format cannot express the message.
        """

    @abstractmethod
    def end(self, request: ModelRequest) -> bytes:
        """Return the end of the request body: messages not yet pushed, and closing brackets."""

    @final
    def is_start_of(self, messages: Sequence[Message]) -> bool:
        """Whether `messages` begin with the same message objects that are already encoded."""
        known = self._known
        if isinstance(messages, History) and isinstance(known, History):
            return messages.starts_with(known)
        return len(messages) >= len(known) and all(map(is_, messages, known))

    @final
    def grow(self, messages: Sequence[Message], service: str = "") -> None:
        """Encode those of `messages` that follow the already encoded messages.

        Another service cannot read what a service has encrypted, and refuses it. So a reply of
        another service is encoded like a reply on another wire.

        Args:
            messages: all messages of the request.
            service: the service and account that get the request (`AssistantMessage.service`).
        """
        start = len(self._known)
        for position, message in enumerate(messages[start:], start):
            if isinstance(message, AssistantMessage) and message.service not in ("", service):
                self.add(position, evolve(message, wire=""))
            else:
                self.add(position, message)
        # Another sequence is copied, because it may be a list that its owner changes later.
        self._known = messages if isinstance(messages, History) else tuple(messages)

    @final
    def push(self, message: bytes, joint: bytes = b",") -> None:
        """Append an encoded message to `parts`; merge small parts to keep the list short.

        Args:
            message: the bytes of the message.
            joint: the bytes that follow the messages before it.
        """
        parts = self.parts
        parts.append(joint + message if parts else message)
        while len(parts) > 1 and len(parts[-2]) <= len(parts[-1]):
            last = parts.pop()
            parts[-1] += last


@final
class CallIds:
    """The ids of a conversation's calls, as sent to one server; each id is sent for one call only.

    Servers repeat ids, in later turns and within a turn, and refuse the ids of other services. So a
    call gets an id of its own where it must. Results belong to the calls of the turn before them by
    position, never by id.

    Args:
        is_legal: whether the server accepts an id.
    """

    def __init__(self, is_legal: Callable[[str], object]) -> None:
        self._is_legal = is_legal
        self._used: set[str] = set()
        self._turn: Sequence[str] = ()
        self._answered = 0

    def of_turn(self, message: AssistantMessage) -> Sequence[str]:
        """Return the ids of the calls of a message, in order."""
        self._turn = [self._sent_id(call) for call in message.calls]
        self._answered = 0
        return self._turn

    def of_result(self, result: ToolResult, position: int) -> str:
        """Return the id of the call that the message at index `position` answers.

        Raises:
            ConfigError: all calls of the turn before it have their results.
        """
        if self._answered == len(self._turn):
            raise ConfigError(
                f"messages[{position}]: expected a tool result to answer a call of the turn before "
                f"it, found {result.name!r} ({result.call_id!r}) after all "
                f"{len(self._turn)} call(s) were answered. Keep turns and results together."
            )
        self._answered += 1
        return self._turn[self._answered - 1]

    def _sent_id(self, call: ToolCall) -> str:
        call_id = call.id
        if call_id in self._used or not self._is_legal(call_id):
            number = len(self._used)
            # Nine letters and digits, as Mistral's server demands; the other servers take them.
            while (call_id := f"call{number:05}") in self._used:
                number += 1
        if call_id:  # A server that accepts an empty id finds the result by its position.
            self._used.add(call_id)
        return call_id


@final
class PrefixEncoder:
    """Encodes the requests of one run with cached head and messages (see `Encoder`).

    Args:
        new_history: returns an empty `EncodedHistory` of the wire format.
        write_head: returns the request body up to and including the bracket that opens the
            messages; its arguments are the request and the history's `instructions`.

    Attributes:
        service: the service and account that get the requests (`AssistantMessage.service`).
    """

    service = ""

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
        """Return the request body as parts that concatenate to one JSON object.

        Raises:
            ConfigError: this wire format cannot express a setting, tool, option or message.
        """
        history, now = self._history, time()
        if now >= history.valid_until or not history.is_start_of(request.messages):
            self._history = self._new_history()
        self._history.now = now
        try:
            self._history.grow(request.messages, self.service)
        except ConfigError:
            self._history = self._new_history()  # The failed history holds some new messages.
            raise
        instructions = tuple(self._history.instructions)
        asked = (request.tools, request.tool_choice, request.settings, request.output, instructions)
        if asked != self._head_of:
            self._head = self._write_head(request, instructions)
            self._head_of = asked
        return [self._head, *self._history.parts, self._history.end(request)]


def of_service(reply: Reply, service: str) -> Reply:
    """Return a reply whose message names its service, if only that service can read its data."""
    message = reply.message
    if message.extra or any(map(_is_bound, message.parts)):
        return evolve(reply, message=evolve(message, service=service))
    return reply


def _is_bound(part: AssistantPart) -> bool:
    """Whether a part has data that its own service wrote for itself."""
    match part:
        case TextPart() | ToolCall() | MediaPart():
            return bool(part.extra)
        case ReasoningPart() | OpaquePart():
            return True
        case _:
            assert_never(part)
