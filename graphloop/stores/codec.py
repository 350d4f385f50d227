"""Events as JSON lines: the journal's only written form.

A line is `{"crc":"0a1b2c3d","v":1,"seq":7,"event":{"type":"ToolReturned",…}}`; the checksum is of
what follows it. The values describe themselves (`msgspec`); only the user's state is written and
validated by pydantic, by the graph's state type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final, TypeVar, cast
from zlib import crc32

import pydantic
from msgspec import DecodeError, Raw, Struct, convert, to_builtins
from msgspec.json import Decoder, Encoder
from pydantic_core import to_json

from ..errors import StoreError
from ..events import CallbackReturned, ChildEnded, Event, NodeReturned, Started
from ..values import evolve

__all__ = ["SCHEMA_VERSION", "Codec", "typed_events"]

T = TypeVar("T")

SCHEMA_VERSION: Final = 1


_FIX: Final = (
    "keep to dataclasses, pydantic models and JSON values, at most some 200 levels deep; annotate "
    "each part with the type that it has; have all of it written (no `exclude`, no alias for "
    "writing alone, no private attribute, no secret) and read as it was written (no validator that "
    "changes it once more; `ser_json_bytes` and `val_json_bytes='base64'` for bytes, "
    "`ser_json_inf_nan='strings'` for inf and nan)"
)
"""The fix for a state that a journal would not give back."""

SHOWN_CHARS: Final = 80
"""How many characters of a state a message shows, from where it differs."""

CONTEXT_CHARS: Final = 20
"""How many characters before the difference a message shows."""


class _Version(Struct):
    v: int


class _Line(Struct):
    v: int
    seq: int
    event: Event


class Codec:
    """Encodes and decodes the events of one graph.

    A store has the codec of one graph, and also keeps the runs of the agents that it calls. Their
    states are read as plain JSON; the codec of their own graph gives them their type (`typed`).

    Args:
        state_type: the type of the user's state; `object` leaves it as plain JSON.
    """

    def __init__(self, state_type: type[object] = object) -> None:
        self._state: pydantic.TypeAdapter[object] = pydantic.TypeAdapter(state_type)
        self._encoder = Encoder()
        self._version = Decoder(_Version)
        self._line = Decoder(_Line)

    def encode(self, seq: int, event: Event) -> bytes:
        """Return the event as one line, without a line end.

        Raises:
            StoreError: the user's state cannot be written as JSON.
        """
        try:
            text = self._encode(seq, event)[1:]
        except (TypeError, ValueError) as error:
            raise StoreError(
                f"event {seq} ({type(event).__name__}) cannot be written as JSON: {error}. "
                "Keep state to dataclasses, pydantic models and JSON values."
            ) from error
        return _checksum(text) + text

    def _encode(self, seq: int, event: Event) -> bytes:
        try:
            return self._encoder.encode(_Line(SCHEMA_VERSION, seq, self._without_state(event)))
        except UnicodeEncodeError:
            # Half of a surrogate pair, which servers send: JSON has an escape for it.
            plain = _changed(event, lambda state: cast("object", json.loads(_written(state))))
            line = to_builtins(_Line(SCHEMA_VERSION, seq, plain))
            return json.dumps(line, separators=(",", ":")).encode()

    def decode(self, line: bytes) -> tuple[int, Event]:
        """Return the sequence number and event of a line.

        Raises:
            StoreError: the line is no event, of an unknown type, damaged, or of a newer version.
        """
        try:
            version = _decoded(self._version, line).v
            if version > SCHEMA_VERSION:
                raise StoreError(
                    f"the journal has version {version}, this graphloop reads up to "
                    f"{SCHEMA_VERSION}: upgrade graphloop"
                )
            decoded = _decoded(self._line, line)
            head, text = line[:CHECKSUM_BYTES], line[CHECKSUM_BYTES:]
            if head != _checksum(text):
                raise StoreError(f"damaged: its checksum is wrong; found {line[:80]!r}")
            return decoded.seq, self._with_state(decoded.event)
        except pydantic.ValidationError as error:
            raise _not_ours(error) from error
        except (DecodeError, ValueError, RecursionError) as error:
            raise StoreError(f"not a journal line: {error}; found {line[:80]!r}") from error

    def of(self, run_id: str) -> Codec:
        """Return the codec to read a run with: the type of a child's state is unknown here."""
        return Codec() if "/" in run_id else self

    def typed(self, event: Event) -> Event:
        """Return an event, whose state another codec has read, with a state of this graph's type.

        A state that is of this type already stays the same object.

        Raises:
            StoreError: the state cannot be this graph's.
        """
        try:
            return _changed(event, self._typed)
        except pydantic.ValidationError as error:
            raise _not_ours(error) from error

    def misfit(self, state: object) -> str:
        """Return why a journal would give back another state, and the fix; empty if it would not.

        A resumed run would go on with that other state.
        """
        try:
            written = _written(state)
            read = self._read(written)
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
        """Whether a state is what its written form was read as."""
        if _are_equal(state, read):
            return True
        # NaN is unequal to itself, and some types compare by identity: then the JSON decides.
        again = _written(read)
        return again == written and not _are_equal(read, self._read(again))

    def _read(self, json: bytes) -> object:
        # By the names of fields, too: written text holds no validation alias.
        return self._state.validate_json(json, by_alias=True, by_name=True)

    def _typed(self, state: object) -> object:
        try:
            return self._state.validate_python(state, strict=True, by_alias=True, by_name=True)
        except pydantic.ValidationError:
            return self._read(_written(state))

    def _without_state(self, event: Event) -> Event:
        """Return the event with its state as JSON, the way pydantic writes it."""
        return _changed(event, lambda state: Raw(_written(state)))

    def _with_state(self, event: Event) -> Event:
        """Return the event with its state of JSON values as what it was."""
        # As JSON, not as Python: a strict model takes a list for a tuple from JSON only.
        return _changed(event, lambda state: self._read(self._encoder.encode(state)))


def typed_events(kind: object, events: Sequence[Event]) -> Sequence[Event]:
    """Return events with states of a graph's type, by whichever codec they were read.

    Args:
        kind: the type; None where it is unknown.
        events: the events.

    Raises:
        StoreError: a state cannot be of this type.
    """
    if kind is None or kind is object:
        return events
    codec = Codec(cast("type[object]", kind))
    return [codec.typed(event) for event in events]


def _decoded(decoder: Decoder[T], line: bytes) -> T:
    try:
        return decoder.decode(line)
    except DecodeError:
        if b"\\ud" not in line:
            raise
        return convert(json.loads(line), decoder.type)


def _checksum(text: bytes) -> bytes:
    """Return what a line begins with, before this text."""
    return b'{"crc":"%08x",' % crc32(text)


CHECKSUM_BYTES: Final = len(_checksum(b""))


def _written(state: object) -> bytes:
    """Return a state as JSON, the way pydantic writes what it is to read again."""
    return to_json(state, round_trip=True, inf_nan_mode="strings")


def _are_equal(given: object, read: object) -> bool:
    """Whether two states say that they are equal."""
    try:
        return bool(given == read)
    except Exception:  # noqa: BLE001 - arrays, and what else the user's own types raise
        return False


def _not_ours(error: pydantic.ValidationError) -> StoreError:
    return StoreError(f"the journal's state is not the graph's: {error}")


def _changed(event: Event, change: Callable[[object], object]) -> Event:
    match event:
        case Started(state=state) | ChildEnded(state=state) if state is not None:
            return evolve(event, state=change(state))
        case CallbackReturned(answer=NodeReturned(state=state) as left) if state is not None:
            return evolve(event, answer=evolve(left, state=change(state)))
        case _:
            return event
