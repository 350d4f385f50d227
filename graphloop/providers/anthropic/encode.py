"""The encoder of the Anthropic Messages wire: a run's requests, each message encoded once.

The API knows two roles. Every maximal stretch of tool results, user and later system messages is
one user message, results first; it stays open until the next turn of the model
closes it. Closed messages are bytes for good. Ids are made strict here: unique in the whole history
and of the API's alphabet; results follow the calls of the turn before them by position, not by id.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias, assert_never, final

from ...errors import ConfigError
from ...values import (
    AssistantMessage,
    Message,
    ModelRequest,
    OutputSpec,
    Settings,
    SystemMessage,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from ..sent_messages import SentMessages
from ..text import utf8
from ..wire_json import JsonObject
from .blocks import WIRE, assistant_blocks, result_block, system_block, user_blocks
from .container import container_field, container_in, container_of
from .head import head_fields

__all__ = ["AnthropicEncoder"]

_HeadOf: TypeAlias = tuple[
    tuple[ToolSpec, ...], ToolChoice, Settings, OutputSpec | None, tuple[str, ...]
]

_is_wire_id = re.compile(r"[a-zA-Z0-9_-]{1,64}").fullmatch


@final
class AnthropicEncoder:
    """Encodes the requests of one run, and keeps the encoded messages."""

    def __init__(self, model: str, *, max_tokens_default: int) -> None:
        self._model = model
        self._max_tokens_default = max_tokens_default
        self._head = b""
        self._head_of: _HeadOf | None = None
        self._container: JsonObject | None = None
        self._messages = _EncodedMessages()

    def encode(self, request: ModelRequest) -> list[bytes]:
        """Return the request body in parts.

        Raises:
            ConfigError: this wire has no form for a setting, tool or message.
        """
        if not self._messages.sent.begin(request.messages):
            self._messages = _EncodedMessages()
        try:
            self._messages.grow(request.messages)
        except ConfigError:
            self._messages = _EncodedMessages()
            raise
        head = self._head_bytes(request)
        # Behind the messages: the start of the request stays the same when the id is known.
        container = container_field(self._container, self._messages.container)
        end = self._messages.tail() + utf8(f"]{container}}}")
        return [head, *self._messages.sent.parts, end]

    def _head_bytes(self, request: ModelRequest) -> bytes:
        system = tuple(self._messages.instructions)
        asked = (request.tools, request.tool_choice, request.settings, request.output)
        head_of = (*asked, system)
        if head_of != self._head_of:
            fields = head_fields(
                request,
                model=self._model,
                system="\n\n".join(filter(None, system)),
                max_tokens_default=self._max_tokens_default,
            )
            self._head = utf8("{" + fields + ',"messages":[')
            self._container = container_of(request)
            self._head_of = head_of
        return self._head


@final
class _EncodedMessages:
    """The encoded form of a history that only grows."""

    def __init__(self) -> None:
        self.instructions: list[str] = []
        self.sent = SentMessages()
        self.container = ""
        self._used_ids: set[str] = set()
        self._call_ids: list[str] = []
        self._answered = 0
        self._results: list[str] = []
        self._said: list[str] = []

    def grow(self, messages: Sequence[Message]) -> None:
        """Encode the new messages; `messages` starts with the encoded ones."""
        for position, message in self.sent.missing_in(messages):
            self._add(message, position)
        self.sent.keep(messages)

    def tail(self) -> bytes:
        """Return the open user message, or nothing."""
        blocks = ",".join((*self._results, *self._said))
        return self._framed("user", blocks) if blocks else b""

    def _add(self, message: Message, position: int) -> None:
        match message:
            case SystemMessage():
                if position == len(self.instructions):  # Only system messages came before it.
                    self.instructions.append(message.content)
                elif block := system_block(message):
                    self._said.append(block)
            case UserMessage():
                self._said.extend(user_blocks(message))
            case ToolResult():
                self._add_result(message, position)
            case AssistantMessage():
                self._add_turn(message, position)
            case _:
                assert_never(message)

    def _add_result(self, result: ToolResult, position: int) -> None:
        if self._answered == len(self._call_ids):
            raise ConfigError(
                f"messages[{position}]: expected a tool result to answer a call of the turn before "
                f"it, found {result.name!r} ({result.call_id!r}) after all "
                f"{len(self._call_ids)} call(s) were answered. Keep turns and results together."
            )
        self._results.append(result_block(result, self._call_ids[self._answered]))
        self._answered += 1

    def _add_turn(self, message: AssistantMessage, position: int) -> None:
        if message.wire == WIRE:
            place = f"messages[{position}]: extra"
            self.container = container_in(message, place=place) or self.container
        call_ids = [self._wire_id(call, position, at) for at, call in enumerate(message.calls)]
        blocks = assistant_blocks(message, call_ids)
        if not blocks:
            return
        if closed := self.tail():
            self.sent.push(closed)
        self._results, self._said = [], []
        self.sent.push(self._framed("assistant", ",".join(blocks)))
        self._call_ids, self._answered = call_ids, 0

    def _wire_id(self, call: ToolCall, position: int, index: int) -> str:
        wire_id = call.id
        if wire_id in self._used_ids or not _is_wire_id(wire_id):
            wire_id = f"call_{position}_{index}"
            while wire_id in self._used_ids:
                wire_id += "_"
        self._used_ids.add(wire_id)
        return wire_id

    def _framed(self, role: str, blocks: str) -> bytes:
        comma = "," if self.sent.parts else ""
        return utf8(f'{comma}{{"role":"{role}","content":[{blocks}]}}')
