"""Tool calls of one turn, assembled from fragments.

Servers disagree on how a fragment names its call. Proxies count from 1, Mistral sends
no index, Gemini's compatible endpoint sends every call at index 0 under a new id, some send no id
at all, some every call at index 0 under one id. Calls are therefore counted here, in the order they
appear; an id is never a key by itself where there is an index, for ids repeat within a turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from ...values import ToolCall
from ..base import Delta, ToolCallDelta
from ..text import TextJoiner, whole_text
from ..wire_json import JsonObject, as_object, is_list, is_object, is_object_text, json_text

__all__ = ["CallAssembler", "CallDraft", "add_field"]

_FRAGMENT_FIELDS: Final = frozenset({"index", "id", "type", "function"})
_FUNCTION_FIELDS: Final = frozenset({"name", "arguments"})


@final
class CallDraft:
    """A call under assembly; its deltas wait for its name."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self._arguments = TextJoiner()
        self._extra: JsonObject = {}
        self._waiting = ""
        self._shown = False

    def add(self, fragment: JsonObject) -> Sequence[Delta]:
        """Take the next fragment of this call; return the deltas to show."""
        self.id = self.id or _word(fragment.get("id"))
        function = _function_of(fragment)
        self.name = self.name or _word(function.get("name"))
        unknown = {key: value for key, value in function.items() if key not in _FUNCTION_FIELDS}
        add_field(self._extra, "function", unknown or None)
        for key, value in fragment.items():
            if key not in _FRAGMENT_FIELDS:
                add_field(self._extra, key, value)
        piece = _text(function.get("arguments"))
        return self._show(self._arguments.push(piece) if piece else "")

    def ends_before(self, fragment: JsonObject) -> bool:
        """Whether `fragment` starts another call."""
        function = _function_of(fragment)
        name = _word(function.get("name"))
        if not (name and self.name):
            return False
        # Some servers repeat the name in every fragment, the last of which may be empty.
        another = name != self.name or _text(function.get("arguments")).lstrip().startswith("{")
        return another and is_object_text(self._arguments.text)

    def flush(self) -> Sequence[Delta]:
        """End the call; return the deltas that waited for more of it."""
        return self._show(self._arguments.flush(), final=True)

    def call(self) -> ToolCall:
        """Return the call as far as it has come."""
        extra = json_text(self._extra) if self._extra else ""
        return ToolCall(self.id, self.name, self._arguments.text, extra)

    def _show(self, piece: str, *, final: bool = False) -> Sequence[Delta]:
        if self._shown:
            return (ToolCallDelta(self.index, "", "", piece),) if piece else ()
        self._waiting += piece
        if not (self.name or final):
            return ()
        self._shown = True
        return (ToolCallDelta(self.index, self.id, self.name, self._waiting),)


@final
class CallAssembler:
    """Finds the call that each fragment belongs to."""

    def __init__(self) -> None:
        self._drafts: list[CallDraft] = []
        self._at_index: dict[int, CallDraft] = {}
        self._by_id: dict[tuple[int | None, str], CallDraft] = {}

    def add(self, fragment: JsonObject) -> tuple[CallDraft | None, Sequence[Delta]]:
        """Take a fragment; return the call it started, and its deltas."""
        at = fragment.get("index")
        index = at if isinstance(at, int) else None
        call_id = _word(fragment.get("id"))
        draft = self._find(index, call_id, fragment)
        new = draft is None or draft.ends_before(fragment)
        if draft is None or new:
            draft = CallDraft(len(self._drafts))
            self._drafts.append(draft)
        if index is not None:
            self._at_index[index] = draft
        if call_id:
            self._by_id[index, call_id] = draft
        return draft if new else None, draft.add(fragment)

    def flush(self) -> Sequence[Delta]:
        """Return the deltas that any call still holds back."""
        return [delta for draft in self._drafts for delta in draft.flush()]

    def _find(self, index: int | None, call_id: str, fragment: JsonObject) -> CallDraft | None:
        if index is not None:
            draft = self._at_index.get(index)
            if draft is None or not call_id or draft.id in {"", call_id}:
                return draft
            # Another id at a known index: a call of its own, unless it was there before.
            return self._by_id.get((index, call_id))
        if call_id:
            return self._by_id.get((None, call_id))
        last = self._drafts[-1] if self._drafts else None
        # With neither index nor id a second name can only mean a second call.
        is_another = last is not None and last.name and _word(_function_of(fragment).get("name"))
        return None if is_another else last


def add_field(into: JsonObject, name: str, value: object) -> None:
    """Keep an unknown field: arrays and objects grow, the rest replaces."""
    kept = into.get(name)
    if is_list(kept) and is_list(value):
        kept.extend(value)
    elif is_object(kept) and is_object(value):
        kept.update(value)
    elif value is not None:
        into[name] = value


def _function_of(fragment: JsonObject) -> JsonObject:
    return as_object(fragment.get("function"), "tool_calls[].function")


def _word(value: object) -> str:
    return whole_text(_text(value))


def _text(value: object) -> str:
    # Ids may be numbers, and some servers send the arguments as the object instead of its text.
    if isinstance(value, str):
        return value
    return "" if value is None else json_text(value)
