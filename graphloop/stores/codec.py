"""Encodes events as JSON lines, and decodes them; every store on disk uses this form.

A line is `{"crc":"0a1b2c3d","v":1,"seq":7,"event":{"type":"ToolReturned",…}}`. The checksum `crc`
covers the rest of the line. `msgspec` encodes the event; pydantic encodes and validates only the
user's state in it, by the graph's state type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, MutableMapping, Sequence
from typing import Final, cast
from zlib import crc32

import pydantic
from msgspec import DecodeError, Raw, Struct, to_builtins
from msgspec.json import Decoder, Encoder
from pydantic_core import to_json

from ..errors import StoreError
from ..events import CallbackReturned, ChildEnded, Event, NodeReturned, Started
from ..run import History
from ..values import evolve
from .beginnings import Beginning, Beginnings, decoded
from .blobs import INLINE_BYTES_MAX, ReadBlob, attached, detached

__all__ = ["SCHEMA_VERSION", "Codec", "typed_events"]

SCHEMA_VERSION: Final = 1


_FIX: Final = (
    "keep to dataclasses, pydantic models and JSON values, at most some 200 levels deep; annotate "
    "each part with the type that it has; have all of it written (no `exclude`, no alias for "
    "writing alone, no private attribute, no secret) and read as it was written (no validator that "
    "changes it once more; `ser_json_bytes` and `val_json_bytes='base64'` for bytes, "
    "`ser_json_inf_nan='strings'` for inf and nan)"
)
"""The advice in an error message about a state that JSON would change or cannot hold."""

SHOWN_CHARS: Final = 80
"""The number of characters of a state that an error message shows around the first difference."""

CONTEXT_CHARS: Final = 20
"""The number of characters that an error message shows before the first difference."""


class _Head(Struct):
    v: int
    blobs: tuple[str, ...] = ()
    beginning: Beginning | None = None


class _Line(Struct):
    v: int
    seq: int
    event: Event


class Codec:
    """Encodes events of runs of one graph as JSON lines, and decodes them.

    A store uses the codec of one graph for all runs, also for child runs of other graphs. The state
    of a child run is decoded as plain JSON values. The codec of the child's graph converts it to
    its type (`typed`).

    Args:
        state_type: the type of the user's state; `object` decodes a state as plain JSON values.
    """

    def __init__(self, state_type: type[object] = object) -> None:
        self._state: pydantic.TypeAdapter[object] = pydantic.TypeAdapter(state_type)
        self._encoder = Encoder()
        self._head = Decoder(_Head)
        self._line = Decoder(_Line)

    def encode(
        self,
        seq: int,
        event: Event,
        blobs: MutableMapping[str, bytes] | None = None,
        beginnings: Beginnings | None = None,
    ) -> bytes:
        """Encode an event and its sequence number as one JSON line, without a newline.

        Args:
            seq: the number of the event.
            event: the event.
            blobs: takes the bytes of large media by reference, for a store that keeps them beside
                its journals; without it, the line holds all bytes itself.
            beginnings: takes the first messages of a run out of the line, into `blobs`. The store
                calls its `saved` when it has the blobs.

        Raises:
            StoreError: the user's state cannot be written as JSON.
        """
        beginning = None
        if type(event) is Started:
            if beginnings is not None and blobs is not None:
                event, beginning = beginnings.cut(event, blobs)
            event = evolve(event, messages=tuple(event.messages))  # msgspec knows no `History`.
        try:
            text = self._encode(seq, event)[1:]
        except (TypeError, ValueError) as error:
            raise StoreError(
                f"event {seq} ({type(event).__name__}) cannot be written as JSON: {error}. "
                "Keep state to dataclasses, pydantic models and JSON values."
            ) from error
        if blobs is not None and len(text) > INLINE_BYTES_MAX:
            taken: dict[str, bytes] = {}
            text = detached(text, taken)
            if taken:
                text = b'"blobs":%s,%s' % (self._encoder.encode([*taken]), text)
                blobs.update(taken)
        if beginning is not None:
            text = b'"beginning":%s,%s' % (self._encoder.encode(beginning), text)
        return _checksum(text) + text

    def _encode(self, seq: int, event: Event) -> bytes:
        try:
            return self._encoder.encode(_Line(SCHEMA_VERSION, seq, self._without_state(event)))
        except UnicodeEncodeError:
            # Servers may send half of a surrogate pair; the `json` module escapes it.
            plain = _with_state(
                event, lambda state: cast("object", json.loads(_encode_state(state)))
            )
            line = to_builtins(_Line(SCHEMA_VERSION, seq, plain))
            return json.dumps(line, separators=(",", ":")).encode()

    def decode(
        self, line: bytes, read_blob: ReadBlob | None = None, beginnings: Beginnings | None = None
    ) -> tuple[int, Event]:
        """Decode a JSON line into the event's sequence number and the event.

        Args:
            line: the line, without its newline.
            read_blob: returns the bytes of a blob to which the line refers.
            beginnings: what the store gives `encode`; it remembers the conversation.

        Raises:
            StoreError: the line is damaged, its event has an unknown type, its state has the wrong
                type, its blobs are missing, or a newer version of graphloop wrote it.
        """
        try:
            head = decoded(self._head, line)
            if head.v > SCHEMA_VERSION:
                raise StoreError(
                    f"the journal has version {head.v}, this graphloop reads up to "
                    f"{SCHEMA_VERSION}: upgrade graphloop"
                )
            checksum, text = line[:CHECKSUM_BYTES], line[CHECKSUM_BYTES:]
            is_whole = checksum == _checksum(text)
            if is_whole and head.blobs and read_blob is not None:
                line = attached(line, head.blobs, read_blob)
            told = decoded(self._line, line)
            if not is_whole:
                raise StoreError(f"damaged: its checksum is wrong: {line[:80]!r}")
            event = told.event
            if isinstance(event, Started):
                event = evolve(event, messages=History(event.messages))
                if head.beginning is not None:
                    event = (beginnings or Beginnings()).joined(
                        event, head.beginning, read_blob or _no_blob
                    )
            return told.seq, self._with_state(event)
        except pydantic.ValidationError as error:
            raise _not_ours(error) from error
        except (DecodeError, ValueError, RecursionError) as error:
            raise StoreError(f"expected a journal line, found {line[:80]!r}: {error}") from error

    def last_part(self, line: bytes) -> str:
        """Return the last part of the conversation that a run begins with; empty without parts.

        Args:
            line: the line of the run's first event, as `encode` returns it.
        """
        beginning = decoded(self._head, line).beginning
        return "" if beginning is None else beginning.last

    def of(self, run_id: str) -> Codec:
        """Return this codec; for a child run, return a codec that decodes states as plain JSON.

        The state type of a child's graph is unknown here.
        """
        return Codec() if "/" in run_id else self

    def typed(self, event: Event) -> Event:
        """Return the event with its state converted from plain JSON values to the state type.

        A state that already has this type stays the same object.

        Raises:
            StoreError: the state cannot be converted to this graph's state type.
        """
        try:
            return _with_state(event, self._check_state)
        except pydantic.ValidationError as error:
            raise _not_ours(error) from error

    def misfit(self, state: object) -> str:
        """Return why a JSON round trip would change this state, with a fix; empty if it would not.

        A run that is resumed from such a journal would go on with the changed state.
        """
        try:
            written = _encode_state(state)
            read = self._decode_state(written)
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            return f"{f'`{place}`: ' if place else ''}{first['msg']}. Fix: {_FIX}"
        except (TypeError, ValueError) as error:
            return f"it cannot be written as JSON: {error}. Fix: {_FIX}"
        if self._is_kept(state, written, read):
            return ""
        ours, theirs = repr(state), repr(read)
        pairs = enumerate(zip(ours, theirs, strict=False))
        at = max(0, next((at for at, (a, b) in pairs if a != b), 0) - CONTEXT_CHARS)
        given, back = ours[at:][:SHOWN_CHARS], theirs[at:][:SHOWN_CHARS]
        return f"a journal would return another state: expected {given}, found {back}. Fix: {_FIX}"

    def _is_kept(self, state: object, written: bytes, read: object) -> bool:
        """Whether `read`, which was decoded from `written`, is equal to the original state."""
        if _are_equal(state, read):
            return True
        # The JSON decides where `==` cannot: NaN differs from itself, and some types use identity.
        again = _encode_state(read)
        return again == written and not _are_equal(read, self._decode_state(again))

    def _decode_state(self, json: bytes) -> object:
        # `by_name`, because encoded JSON may use a field's name in place of its validation alias.
        return self._state.validate_json(json, by_alias=True, by_name=True)

    def _check_state(self, state: object) -> object:
        try:
            return self._state.validate_python(state, strict=True, by_alias=True, by_name=True)
        except pydantic.ValidationError:
            return self._decode_state(_encode_state(state))

    def _without_state(self, event: Event) -> Event:
        """Return the event with its state encoded as raw JSON by pydantic."""
        return _with_state(event, lambda state: Raw(_encode_state(state)))

    def _with_state(self, event: Event) -> Event:
        """Return the event with its state converted from plain JSON values to the state type."""
        # Through JSON text, because a strict model accepts a list as a tuple only from JSON.
        return _with_state(event, lambda state: self._decode_state(self._encoder.encode(state)))


def typed_events(kind: object, events: Sequence[Event]) -> Sequence[Event]:
    """Return the events with their states converted to a graph's state type.

    Args:
        kind: the state type; None if it is unknown, which leaves the events unchanged.
        events: the events, decoded by any codec.

    Raises:
        StoreError: a state cannot be converted to this type.
    """
    if kind is None or kind is object:
        return events
    codec = Codec(cast("type[object]", kind))
    return [codec.typed(event) for event in events]


def _no_blob(digest: str) -> bytes:
    raise StoreError(f"{digest}: expected its data beside the journal, found none")


def _checksum(text: bytes) -> bytes:
    """Return the beginning of a JSON line with the checksum of the rest of the line, `text`."""
    return b'{"crc":"%08x",' % crc32(text)


CHECKSUM_BYTES: Final = len(_checksum(b""))


def _encode_state(state: object) -> bytes:
    """Encode a state as JSON by pydantic, in the form that pydantic can decode again."""
    return to_json(state, round_trip=True, inf_nan_mode="strings")


def _are_equal(given: object, read: object) -> bool:
    """Whether the states compare as equal; False if the comparison raises an error."""
    try:
        return bool(given == read)
    except Exception:  # noqa: BLE001 - arrays and users' types may raise any error
        return False


def _not_ours(error: pydantic.ValidationError) -> StoreError:
    return StoreError(f"the journal's state is not the graph's: {error}")


STATEFUL: Final = frozenset({Started, ChildEnded, CallbackReturned})
"""Event types that may have a state; a look at the type is faster than a pattern that fails."""


def _with_state(event: Event, change: Callable[[object], object]) -> Event:
    if type(event) not in STATEFUL:
        return event
    match event:
        case Started(state=state) | ChildEnded(state=state) if state is not None:
            return evolve(event, state=change(state))
        case CallbackReturned(answer=NodeReturned(state=state) as left) if state is not None:
            return evolve(event, answer=evolve(left, state=change(state)))
        case _:
            return event
