"""CallItem: a tool call of a streamed Responses reply.

Models make up a tool that calls several tools at once; its call becomes the calls inside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, final

from ...values import AssistantPart, ToolCall
from ..base import Delta, ToolCallDelta
from ..text import TextJoiner, whole_text
from ..wire_json import (
    JsonObject,
    is_list,
    is_object,
    is_object_text,
    json_text,
    object_in,
    string_at,
)
from .item import Item, piece_of, rest_of

__all__ = ["CallItem"]

PARALLEL: Final = frozenset({"parallel", "multi_tool_use.parallel"})
"""The names of a tool that models make up to call several tools at once."""

_in_functions = re.compile(r"functions\.(.+)", re.DOTALL).fullmatch


@final
class CallItem(Item):
    """A call of a tool; its arguments stay the JSON text that the model wrote."""

    is_shown = True

    def __init__(self, start: JsonObject, index: int) -> None:
        super().__init__(start, index)
        self._arguments = TextJoiner()
        self._opened = False

    @property
    def _name(self) -> str:
        return string_at(self.fields, "name")

    def opened(self) -> Sequence[Delta]:
        """Return the first delta of the call, if its name is known."""
        return self._show(self._arguments.push(string_at(self.fields, "arguments")))

    def push(self, kind: str, event: JsonObject) -> Sequence[Delta]:
        """Add a piece of the arguments, or all of them."""
        if kind == "function_call_arguments.delta":
            piece = piece_of(event)
            return self._show(self._arguments.push(piece) if piece else "")
        if kind == "function_call_arguments.done":
            return self._show_rest(string_at(event, "arguments"))
        return ()

    def done(self, item: JsonObject) -> Sequence[Delta]:
        """Take the whole call, with its arguments."""
        super().done(item)
        return self._show_rest(string_at(item, "arguments"))

    def _show_rest(self, arguments: str) -> Sequence[Delta]:
        seen = self._arguments.text
        # A gateway may write the same arguments in another way.
        more = "" if _is_same_object(arguments, seen) else rest_of(arguments, seen)
        return self._show(self._arguments.push(more) if more else "")

    def flush(self) -> Sequence[Delta]:
        """End the arguments."""
        return self._show(self._arguments.flush())

    def _show(self, piece: str) -> Sequence[Delta]:
        # The calls inside a made-up call of several tools come with the reply.
        if not self._name or self._name in PARALLEL or (self._opened and not piece):
            return ()
        if self._opened:
            return (ToolCallDelta(self.index, "", "", piece),)
        self._opened = True
        call_id = string_at(self.fields, "call_id")
        return (ToolCallDelta(self.index, call_id, self._name, self._arguments.text),)

    @property
    def is_cut(self) -> bool:
        """Whether the server stopped in the middle of the call."""
        # OpenAI writes {} for a tool without parameters. llama.cpp says "completed" of a call that
        # the token limit cut before its arguments.
        incomplete = self.fields.get("status") == "incomplete"
        return incomplete or not self._arguments.text

    def parts(self) -> Iterable[AssistantPart]:
        """Return the call, or the calls inside a made-up call of several tools."""
        call_id, arguments = string_at(self.fields, "call_id"), self._arguments.text
        inner = _unpack_calls(arguments) if self._name in PARALLEL else []
        if inner:
            return [
                ToolCall(f"{call_id}_{at}", name, text) for at, (name, text) in enumerate(inner)
            ]
        extra = self.fields_without("type", "call_id", "name", "arguments")
        if extra.get("status") == "completed":
            del extra["status"]
        return (ToolCall(call_id, self._name, arguments, json_text(extra) if extra else ""),)


def _is_same_object(text: str, other: str) -> bool:
    if text == other or not (is_object_text(text) and is_object_text(other)):
        return text == other
    place = "arguments"
    return object_in(text, place=place) == object_in(other, place=place)


def _unpack_calls(arguments: str) -> list[tuple[str, str]]:
    """Return the names and arguments of the calls inside a made-up call of several tools."""
    if not is_object_text(arguments):
        return []
    uses: object = object_in(arguments, place="arguments").get("tool_uses")
    calls: list[tuple[str, str]] = []
    for use in uses if is_list(uses) else ():
        name = use.get("recipient_name") if is_object(use) else None
        named = _in_functions(name) if isinstance(name, str) else None
        if named is None:
            return []
        calls.append((whole_text(named[1]), json_text(use.get("parameters") or {})))
    return calls
