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

from ...values import (
    AssistantMessage,
    Message,
    ModelRequest,
    SystemMessage,
    ToolResult,
    UserMessage,
)
from ..encoder import CallIds, EncodedHistory, PrefixEncoder
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
        self._call_ids = CallIds(_is_wire_id)
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
                wire_id = self._call_ids.of_result(message, position)
                block, apart = result_blocks(message, wire_id)
                self._results.append(block)
                self._texts.extend(apart)
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

    def _add_turn(self, message: AssistantMessage, position: int) -> None:
        if message.wire == ANTHROPIC_WIRE:
            place = f"messages[{position}]: extra"
            self._container = kept_id(message, place=place) or self._container
        blocks = assistant_blocks(message, self._call_ids.of_turn(message))
        if not blocks:
            return
        if closed := self._open_message():
            self.push(closed)
        self._results, self._texts = [], []
        self.push(_message("assistant", blocks))


def _message(role: str, blocks: Sequence[str]) -> bytes:
    return f'{{"role":"{role}","content":[{",".join(blocks)}]}}'.encode()
