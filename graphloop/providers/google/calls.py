"""StreamedCall: a tool call of a streamed Gemini reply.

A call comes whole, or piece by piece: each piece has the value at one JSON path of the arguments,
or the next characters of a text there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias, final

from ...values import ToolCall
from ..base import Delta, ToolCallDelta
from ..text import whole_text
from ..wire_json import JsonObject, as_list, as_object, is_list, is_object, json_text, string_at
from .contents import CALL
from .part import StreamedPart, fields_without

__all__ = ["StreamedCall"]

STEPS_MAX: Final = 100
"""The maximum depth of streamed arguments; deeper values could not be encoded again."""

_Step: TypeAlias = str | int
_Holder: TypeAlias = dict[str, Any] | list[Any]

_VALUES: Final = ("stringValue", "numberValue", "boolValue", "nullValue")

# A name, an index, or a quoted name, after RFC 9535.
_match_step = re.compile(
    r"""\.([^.\[\]'"]+)|\[(\d{1,9})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]"""
).match
_escapes = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL).sub
_CONTROLS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


@final
class StreamedCall(StreamedPart):
    """A call of a tool, which is open while the server says that more of it follows."""

    def __init__(self, start: JsonObject, index: int) -> None:
        super().__init__(start, index)
        call = as_object(start[CALL], CALL)
        self._call = fields_without(call, "args", "partialArgs", "willContinue")
        self._arguments = _Arguments(as_object(call.get("args"), "functionCall.args"))
        self._begins_open = self._is_open = call.get("willContinue") is True
        self._is_empty = "args" not in call
        self._add(call)

    def opened(self) -> Sequence[Delta]:
        """Return the first delta of the call: all of the arguments, or none of them."""
        arguments = "" if self._begins_open else self._arguments.text
        return (ToolCallDelta(self.index, self._text("id"), self._text("name"), arguments),)

    def takes(self, part: JsonObject) -> bool:
        """Whether the part is the next piece of this call; only a new call has a name."""
        call = part.get(CALL)
        return self._is_open and is_object(call) and not call.get("name")

    def push(self, part: JsonObject) -> Sequence[Delta]:
        """Add the next piece, or the end of the call."""
        call = as_object(part[CALL], CALL)
        self.fields |= fields_without(part, CALL)
        self._add(call)
        self._is_open = call.get("willContinue") is True
        return () if self._is_open else self.flush()

    def flush(self) -> Sequence[Delta]:
        """End the call; return its arguments if they came in pieces."""
        if not self._begins_open:
            return ()
        self._begins_open = False
        return (ToolCallDelta(self.index, "", "", self._arguments.text),)

    @property
    def is_cut(self) -> bool:
        """Whether the server stopped in the middle of the call.

        The server may leave out the end of a call. But a text that it announced to continue, or a
        call without any arguments that it announced, was cut.
        """
        return self._is_open and (self._is_empty or self._arguments.is_cut)

    def whole(self) -> ToolCall:
        """Return the call; its `extra` holds the signature, and what only this wire knows."""
        extra = fields_without(self.fields, CALL)
        if more := fields_without(self._call, "id", "name"):
            extra[CALL] = more
        arguments = self._arguments.text
        own = json_text(extra) if extra else ""
        return ToolCall(self._text("id"), self._text("name"), arguments, own)

    def _text(self, key: str) -> str:
        return string_at(self._call, key)

    def _add(self, call: JsonObject) -> None:
        for piece in as_list(call.get("partialArgs"), "functionCall.partialArgs"):
            self._arguments.add(as_object(piece, "functionCall.partialArgs[]"))
            self._is_empty = False


@final
class _Arguments:
    """The arguments of a call, put together from values at JSON paths."""

    def __init__(self, start: JsonObject) -> None:
        self._value = dict(start)
        # The pieces of each text that the server has announced to continue, by its path.
        self._open: dict[str, list[str]] = {}

    @property
    def is_cut(self) -> bool:
        return bool(self._open)

    @property
    def text(self) -> str:
        for path, pieces in self._open.items():
            self._put(path, "".join(pieces))
        return json_text(self._value)

    def add(self, piece: JsonObject) -> None:
        path = string_at(piece, "jsonPath")
        kind = next((kind for kind in _VALUES if kind in piece), "")
        if kind == "stringValue":
            self._add_text(path, piece[kind])
        elif kind:
            self._put(path, None if kind == "nullValue" else piece[kind])
        if path in self._open and piece.get("willContinue") is not True:
            self._put(path, "".join(self._open.pop(path)))

    def _add_text(self, path: str, text: object) -> None:
        if not isinstance(text, str):
            raise TypeError(f"stringValue: expected a string, found {text!r}")
        if path not in self._open:
            self._put(path, "")  # Its name keeps its place among the others.
        self._open.setdefault(path, []).append(text)

    def _put(self, path: str, value: object) -> None:
        steps = list(_path_steps(path))
        holder: _Holder = self._value
        for step, following in pairwise(steps):
            holder = _step_into(holder, step, following)
        _set(holder, steps[-1], value)


def _path_steps(path: str) -> Iterator[_Step]:
    """Yield the names and indexes of a JSON path such as `$.stops[0].name`."""
    at, count = 1, 0
    while path.startswith("$") and (step := _match_step(path, at)) and count < STEPS_MAX:
        name, index, quoted, double = step.groups()
        if index is not None:
            yield int(index)
        else:
            yield whole_text(name or _escapes(_unescaped, quoted or double or ""))
        at, count = step.end(), count + 1
    if not count or at < len(path):
        raise TypeError(f"jsonPath: expected a path to a value of the arguments, found {path!r}")


def _unescaped(escape: re.Match[str]) -> str:
    """Return the character that an escape of RFC 9535 stands for; others stand for themselves."""
    code, character = escape.groups()
    return chr(int(code, 16)) if code else _CONTROLS.get(character, character)


def _step_into(holder: _Holder, step: _Step, following: _Step) -> _Holder:
    """Return the object or array at `step`; make it if it is new."""
    found: _Holder | None
    if isinstance(step, int) and is_list(holder):
        found = holder[step] if step < len(holder) else None
    elif isinstance(step, str) and is_object(holder):
        found = holder.get(step)
    else:
        raise _misfit(step)
    if found is None:
        found = [] if isinstance(following, int) else {}
        _set(holder, step, found)
    if not (is_object(found) or is_list(found)):
        raise _misfit(following)
    return found


def _set(holder: _Holder, step: _Step, value: object) -> None:
    if isinstance(step, str) and is_object(holder):
        holder[step] = value
    elif isinstance(step, int) and is_list(holder) and step <= len(holder):
        holder[step : step + 1] = [value]
    else:
        raise _misfit(step)


def _misfit(step: _Step) -> TypeError:
    return TypeError(f"jsonPath: expected a step that fits the steps before it, found {step!r}")
