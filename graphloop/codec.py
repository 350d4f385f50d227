"""Events as JSON lines: the journal's only written form.

A line is `{"v":1,"seq":7,"event":{"type":"ToolReturned",…}}`. The values describe themselves
(`msgspec`); only the user's state is written and validated by pydantic, by the graph's state type.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, TypeVar, cast

from msgspec import DecodeError, Raw, Struct, ValidationError, structs
from msgspec.json import Decoder, Encoder
from pydantic import TypeAdapter
from pydantic import ValidationError as StateError
from pydantic_core import to_json

from .errors import StoreError
from .events import CallbackReturned, ChildEnded, Event, Left, Started
from .values import evolve

__all__ = ["SCHEMA_VERSION", "Codec"]

T = TypeVar("T")

SCHEMA_VERSION: Final = 1


class _Version(Struct):
    v: int


class _Line(Struct):
    v: int
    seq: int
    event: Event


class Codec:
    """Encodes and decodes the events of one graph.

    A store has the codec of one graph, and keeps the runs of others beside: those of the agents
    that it calls. Their states are read as plain JSON, and become what they were by the codec of
    the graph they are of (`of`, `typed`).

    Args:
        state_type: the type of the user's state; `object` leaves it as plain JSON.
    """

    def __init__(self, state_type: type[object] = object) -> None:
        self._state: TypeAdapter[object] = TypeAdapter(state_type)
        self._encoder = Encoder()
        self._version = Decoder(_Version)
        self._line = Decoder(_Line)

    def encode(self, seq: int, event: Event) -> bytes:
        """Return the event as one line, without a line end.

        Raises:
            StoreError: the user's state cannot be written as JSON.
        """
        try:
            return self._encode(seq, event)
        except UnicodeEncodeError:
            # Half of a surrogate pair: JSON cannot hold it, and no wire would have sent it on.
            return self._encode(seq, _whole(event))
        except (TypeError, ValueError) as error:
            raise StoreError(
                f"event {seq} ({type(event).__name__}) cannot be written as JSON: {error}. "
                "Keep state to dataclasses, pydantic models and JSON values."
            ) from error

    def _encode(self, seq: int, event: Event) -> bytes:
        return self._encoder.encode(_Line(SCHEMA_VERSION, seq, self._without_state(event)))

    def decode(self, line: bytes) -> tuple[int, Event]:
        """Return the sequence number and event of a line.

        Raises:
            StoreError: the line is no event, of an unknown type, or of a newer version.
        """
        try:
            version = self._version.decode(line).v
            if version > SCHEMA_VERSION:
                raise StoreError(
                    f"the journal has version {version}, this graphloop reads up to "
                    f"{SCHEMA_VERSION}: upgrade graphloop"
                )
            decoded = self._line.decode(line)
            return decoded.seq, self._with_state(decoded.event)
        except (DecodeError, ValidationError) as error:
            raise StoreError(f"not a journal line: {error}; found {line[:80]!r}") from error
        except StateError as error:
            raise _not_ours(error) from error

    def of(self, run_id: str) -> Codec:
        """Return the codec to read a run with: whose state a child run has is not known here."""
        return Codec() if "/" in run_id else self

    def typed(self, event: Event) -> Event:
        """Return an event, whose state another codec has read, with a state of this graph's type.

        A state that is of this type already stays the same object.

        Raises:
            StoreError: the state cannot be this graph's.
        """
        try:
            return _changed(event, self._typed)
        except StateError as error:
            raise _not_ours(error) from error

    def misfit(self, state: object) -> str:
        """Return why a state could not be read back as one of this type; empty if it could."""
        try:
            self._state.validate_json(to_json(state, inf_nan_mode="strings"))
        except StateError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            place = ".".join(str(one) for one in first["loc"])
            return f"`{place}`: {first['msg']}" if place else first["msg"]
        except (TypeError, ValueError) as error:
            return f"it cannot be written as JSON: {error}"
        return ""

    def _typed(self, state: object) -> object:
        try:
            return self._state.validate_python(state, strict=True)
        except StateError:
            return self._state.validate_json(to_json(state, inf_nan_mode="strings"))

    def _without_state(self, event: Event) -> Event:
        """Return the event with its state as JSON, the way pydantic writes it."""
        return _changed(event, lambda state: Raw(to_json(state, inf_nan_mode="strings")))

    def _with_state(self, event: Event) -> Event:
        """Return the event with its state of JSON values as what it was."""
        # As JSON, not as Python: a strict model takes a list for a tuple from JSON only.
        return _changed(event, lambda state: self._state.validate_json(self._encoder.encode(state)))


def _not_ours(error: StateError) -> StoreError:
    return StoreError(f"the journal's state is not the graph's: {error}")


def _changed(event: Event, change: Callable[[object], object]) -> Event:
    match event:
        case Started(state=state) | ChildEnded(state=state) if state is not None:
            return evolve(event, state=change(state))
        case CallbackReturned(answer=Left(state=state) as left) if state is not None:
            return evolve(event, answer=evolve(left, state=change(state)))
        case _:
            return event


def _whole(value: T) -> T:
    """Return a value whose texts can all be encoded: lone surrogates become U+FFFD."""
    whole: object = value
    if isinstance(value, str) and not isinstance(value, Enum):
        whole = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    elif isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)  # isinstance cannot tell the item types.
        whole = tuple(_whole(item) for item in items)
    elif isinstance(value, Struct):
        fields = {name: _whole(getattr(value, name)) for name in value.__struct_fields__}
        whole = structs.replace(value, **fields)
    return cast("T", whole)
