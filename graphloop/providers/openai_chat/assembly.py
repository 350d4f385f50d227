"""Assemble the texts, the tool calls and the sound of one turn from streamed fragments.

Servers disagree on how a fragment identifies its call. Proxies count from 1; Mistral sends no
index; Gemini's compatible endpoint sends every call at index 0 with a new id; some servers send no
id; others send every call at index 0 with the same id. So `CallAssembler` numbers calls in the
order in which they appear. If a fragment has an index, its id alone identifies no call, because ids
repeat within a turn.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from typing import Final, TypeAlias, final

from ...errors import BadReply
from ...media import Inline, MediaPart, received
from ...values import ReasoningPart, TextPart, ToolCall
from ..base import Delta, MediaDelta, ReasoningDelta, TextDelta, ToolCallDelta
from ..media import base64_text
from ..text import TextJoiner, whole_text
from ..wire_json import JsonObject, as_object, is_list, is_object, is_object_text, json_text

__all__ = ["CallAssembler", "CallDraft", "Prose", "ProseDelta", "SoundDraft", "add_field"]

ProseDelta: TypeAlias = type[TextDelta] | type[ReasoningDelta]

_FRAGMENT_FIELDS: Final = frozenset({"index", "id", "type", "function"})
_FUNCTION_FIELDS: Final = frozenset({"name", "arguments"})

PCM: Final = "audio/pcm;rate=24000"
"""OpenAI's raw sound: 16 bits, one channel; the only form of its sound without a mark."""


@final
class Prose:
    """Consecutive text, or consecutive reasoning, that becomes one message part."""

    __slots__ = ("extra", "joiner", "kind")

    def __init__(self, kind: ProseDelta, extra: str) -> None:
        self.kind: ProseDelta = kind
        self.extra = extra
        self.joiner = TextJoiner()

    def part(self) -> TextPart | ReasoningPart:
        """Return the text as assembled so far."""
        made = TextPart if self.kind is TextDelta else ReasoningPart
        return made(self.joiner.text, extra=self.extra)


@final
class CallDraft:
    """A tool call being assembled; its deltas are held back until its name arrives."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self._arguments = TextJoiner()
        self._extra: JsonObject = {}
        self._waiting = ""
        self._shown = False

    def add(self, fragment: JsonObject) -> Sequence[Delta]:
        """Add the next fragment of this call; return the deltas to show."""
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
        """Whether `fragment` starts another call, so that this call is complete."""
        function = _function_of(fragment)
        name = _word(function.get("name"))
        if not (name and self.name):
            return False
        # Some servers repeat the name in every fragment, even in an empty last fragment. So an
        # equal name starts another call only together with the start of a JSON object.
        another = name != self.name or _text(function.get("arguments")).lstrip().startswith("{")
        return another and is_object_text(self._arguments.text)

    def flush(self) -> Sequence[Delta]:
        """End the call; return the deltas that were held back."""
        return self._show(self._arguments.flush(), final=True)

    def part(self) -> ToolCall:
        """Return the tool call as assembled so far."""
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
    """Assigns each streamed fragment to its tool call."""

    def __init__(self) -> None:
        self._drafts: list[CallDraft] = []
        self._at_index: dict[int, CallDraft] = {}
        self._by_id: dict[tuple[int | None, str], CallDraft] = {}

    def add(self, fragment: JsonObject) -> tuple[CallDraft | None, Sequence[Delta]]:
        """Add a fragment; return its call if it started a new call, and the deltas to show."""
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
        """End all calls; return the deltas that they still held back."""
        return [delta for draft in self._drafts for delta in draft.flush()]

    def _find(self, index: int | None, call_id: str, fragment: JsonObject) -> CallDraft | None:
        if index is not None:
            draft = self._at_index.get(index)
            if draft is None or not call_id or draft.id in {"", call_id}:
                return draft
            # A different id at a known index is a new call, unless that id came there before.
            return self._by_id.get((index, call_id))
        if call_id:
            return self._by_id.get((None, call_id))
        last = self._drafts[-1] if self._drafts else None
        # Without an index and an id, only a second name shows that a second call starts.
        is_another = last is not None and last.name and _word(_function_of(fragment).get("name"))
        return None if is_another else last


@final
class SoundDraft:
    """The sound of a reply being assembled; servers may cut its base64 text anywhere.

    Args:
        index: the position of the sound among the media of the reply.
        model: the name of the model that was asked.
    """

    def __init__(self, index: int, model: str) -> None:
        self._index = index
        self._about: JsonObject = {"model": model}
        self._rest = ""
        self._pieces: list[bytes] = []
        self._media_type = ""

    def add(self, piece: JsonObject) -> Sequence[Delta]:
        """Add the next piece of the sound; return the deltas to show.

        Raises:
            BadReply: the data is not base64.
        """
        for name in ("id", "expires_at"):
            if piece.get(name) is not None:
                self._about[name] = piece[name]
        text = self._rest + _text(piece.get("data"))
        whole = len(text) - len(text) % 4
        self._rest = text[whole:]
        try:
            data = b64decode(text[:whole], validate=True)
        except ValueError as error:
            raise BadReply(
                f"delta.audio.data: expected base64, found {text[:80]!r}. Fix: ask again."
            ) from error
        if not data:
            return ()
        if not self._pieces:
            told = received(data, "").media_type
            self._media_type = told if told.startswith("audio/") else PCM
        self._pieces.append(data)
        return (MediaDelta(self._index, self._media_type, base64_text(Inline(data))),)

    def part(self) -> MediaPart:
        """Return the sound as assembled so far."""
        source = Inline(b"".join(self._pieces))
        return MediaPart(self._media_type, source, extra=json_text(self._about))


def add_field(into: JsonObject, name: str, value: object) -> None:
    """Merge an unknown field into `into`: extend arrays and objects, replace other values."""
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
    # Some servers send ids as numbers, or arguments as a JSON object instead of its text.
    if isinstance(value, str):
        return value
    return "" if value is None else json_text(value)
