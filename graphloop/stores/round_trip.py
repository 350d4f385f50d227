"""Checks that states and answers of user functions survive a journal, before they are written.

If a journal could not be read back, its run could never be resumed, and its work would be lost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from functools import lru_cache
from inspect import isawaitable
from typing import Final, cast, get_args

from msgspec import ValidationError
from msgspec.json import Decoder, Encoder
from pydantic.errors import PydanticUserError

from ..errors import ConfigError
from ..events import CallbackAnswer, NodeReturned
from ..values import evolve
from .codec import Codec

__all__ = ["check_callback_answer", "check_state"]

ENCODER: Final = Encoder()


def check_callback_answer(answer: object, callback: str) -> CallbackAnswer:
    """Return the answer of a callback unchanged if a journal can hold it, else raise.

    A state in the answer is left to `check_state`.

    Raises:
        ConfigError: the value is not an answer, or one of its fields has the wrong type.
    """
    if not isinstance(answer, CallbackAnswer):
        *names, last = [kind.__name__ for kind in get_args(CallbackAnswer)]
        raise ConfigError(
            f"expected callback {callback!r} to return {', '.join(names)} or {last}, "
            f"found {type(answer).__name__}"
        )
    bare = evolve(answer, state=None) if isinstance(answer, NodeReturned) else answer
    try:
        _answer_decoder().decode(ENCODER.encode(bare))
    except UnicodeEncodeError:
        pass  # Half of a surrogate pair is allowed: the codec escapes it.
    except (TypeError, ValueError, ValidationError) as error:
        raise ConfigError(
            f"callback {callback!r} returned {type(answer).__name__} with what no journal can "
            f"hold: {error}. Fix: give its fields values of their types, found {answer!r:.200}"
        ) from error
    return answer


@lru_cache(maxsize=1)
def _answer_decoder() -> Decoder[CallbackAnswer]:
    return Decoder(
        CallbackAnswer
    )  # Made at first use: it costs more than an import of this module.


def check_state(state: object, kind: object, made: str, *, kept: bool = False) -> None:
    """Raise if a state has the wrong type, or if a JSON round trip would change it.

    Args:
        state: the state.
        kind: the graph's state type; None if it is unknown.
        made: the middle of the error message, which names the maker, such as "node 'n' returns".
        kept: whether a store keeps the journal. If not, the round trip is not checked.

    Raises:
        ConfigError: the state is an awaitable, has the wrong type, or would be changed.
    """
    if isawaitable(state):
        raise _unawaited_error(state, made)
    if isinstance(kind, type) and not _is_a(state, kind):
        raise ConfigError(
            f"expected that {made} a state of type {kind.__name__}, found {type(state).__name__}"
        )
    if not kept or kind is None or state is None:
        return
    try:
        problem = _codec_of(kind).misfit(state)
    except (PydanticUserError, NameError) as error:
        problem = f"its type has no written form: {error}"
    if problem:
        raise ConfigError(f"{made} a state that no journal could be read back with: {problem}")


def _unawaited_error(answer: Awaitable[object], made: str) -> ConfigError:
    """Return the error for a function that is asynchronous where a plain function is required."""
    if isinstance(answer, Coroutine):
        answer.close()  # Prevents Python's warning about a coroutine that was never awaited.
    found = type(cast("object", answer)).__name__
    return ConfigError(
        f"expected that {made} a value, found {found}, which has to be awaited. Fix: "
        "write a plain `def` that maps values; what takes time is for a node"
    )


@lru_cache(maxsize=64)
def _codec_of(kind: object) -> Codec:
    return Codec(cast("type[object]", kind))


def _is_a(state: object, kind: type) -> bool:
    try:
        return isinstance(state, kind)
    except TypeError:  # `isinstance` does not work with typed dictionaries and some protocols.
        return True
