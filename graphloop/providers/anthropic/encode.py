"""Encode the messages of Anthropic requests, each message only once.

The API has the roles user and assistant only. Consecutive tool results, user messages and later
system messages become one user message, results first. That message stays open until the next
assistant message. The encoder makes call ids unique in the history, and replaces ids that the API
would refuse. It matches results to the calls of the turn before them by position, not by id.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import assert_never, final

from ...errors import ConfigError
from ...values import (
    AssistantMessage,
    Message,
    ModelRequest,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ..encoder import EncodedHistory, PrefixEncoder
from .blocks import ANTHROPIC_WIRE, assistant_blocks, result_blocks, system_block, user_blocks
from .container import container_member, kept_id
from .head import HeadFields, head_bytes

__all__ = ["anthropic_encoder"]

_is_wire_id = re.compile(r"[a-zA-Z0-9_-]{1,64}").fullmatch


def anthropic_encoder(model: str, max_tokens_default: int, *, stream: bool = True) -> PrefixEncoder:
    """Return a new encoder for the requests of one run to `model`."""
    fixed = HeadFields(model, max_tokens_default, stream)
    head = partial(head_bytes, fixed=fixed)
    return PrefixEncoder(_AnthropicHistory, head)


@final
class _AnthropicHistory(EncodedHistory):
    def __init__(self) -> None:
        super().__init__()
        self._container = ""
        self._used_ids: set[str] = set()
        self._call_ids: Sequence[str] = ()
        self._answered = 0
        # The blocks of the open user message: tool results, then all other blocks.
        self._results: list[str] = []
        self._texts: list[str] = []

    def add(self, position: int, message: Message) -> None:
        match message:
            case SystemMessage():
                if position == len(self.instructions):  # Only system messages precede this one.
                    self.instructions.append(message.content)
                elif block := system_block(message):
                    self._texts.append(block)
            case UserMessage():
                self._texts.extend(user_blocks(message))
            case ToolResult():
                self._add_result(message, position)
            case AssistantMessage():
                self._add_turn(message, position)
            case _:
                assert_never(message)

    def end(self, request: ModelRequest) -> bytes:
        # The container follows the messages, so that a new id leaves the bytes before unchanged.
        closed = f"]{container_member(request, self._container)}}}".encode()
        message = self._open_message()
        return (b"," + message if self.parts and message else message) + closed

    def _open_message(self) -> bytes:
        blocks = (*self._results, *self._texts)
        return _message("user", blocks) if blocks else b""

    def _add_result(self, result: ToolResult, position: int) -> None:
        if self._answered == len(self._call_ids):
            raise ConfigError(
                f"messages[{position}]: expected a tool result to answer a call of the turn before "
                f"it, found {result.name!r} ({result.call_id!r}) after all "
                f"{len(self._call_ids)} call(s) were answered. Keep turns and results together."
            )
        block, apart = result_blocks(result, self._call_ids[self._answered])
        self._results.append(block)
        self._texts.extend(apart)
        self._answered += 1

    def _add_turn(self, message: AssistantMessage, position: int) -> None:
        if message.wire == ANTHROPIC_WIRE:
            place = f"messages[{position}]: extra"
            self._container = kept_id(message, place=place) or self._container
        call_ids = [self._wire_id(call, position, at) for at, call in enumerate(message.calls)]
        blocks = assistant_blocks(message, call_ids)
        if not blocks:
            return
        if closed := self._open_message():
            self.push(closed)
        self._results, self._texts = [], []
        self.push(_message("assistant", blocks))
        self._call_ids, self._answered = call_ids, 0

    def _wire_id(self, call: ToolCall, position: int, index: int) -> str:
        wire_id = call.id
        if wire_id in self._used_ids or not _is_wire_id(wire_id):
            wire_id = f"call_{position}_{index}"
            while wire_id in self._used_ids:
                wire_id += "_"
        self._used_ids.add(wire_id)
        return wire_id


def _message(role: str, blocks: Sequence[str]) -> bytes:
    return f'{{"role":"{role}","content":[{",".join(blocks)}]}}'.encode()
