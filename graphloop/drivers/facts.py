"""What functions of the user's answer, looked at before it becomes a fact of the journal.

A run whose journal holds what nobody can read back could never be taken up again, with all that it
has done and paid for.
"""

from __future__ import annotations

from collections.abc import Coroutine
from functools import lru_cache
from inspect import isawaitable
from typing import Final, cast

from msgspec import ValidationError
from msgspec.json import Decoder, Encoder
from pydantic.errors import PydanticUserError

from ..codec import Codec
from ..errors import ConfigError
from ..events import Answer, Asked, Changes, Joined, Judged, Left, Tripped
from ..values import evolve

__all__ = ["check_answer", "check_kind", "check_state", "refuse_awaitable"]

ENCODER: Final = Encoder()
DECODER: Final = Decoder(Answer)


def check_answer(answer: object, callback: str) -> Answer:
    """Return what a callback answered, if a journal can hold it; a state in it is looked at apart.

    Raises:
        ConfigError: it is no answer, or what it holds is of another type.
    """
    if not isinstance(answer, Changes | Tripped | Left | Judged | Joined | Asked):
        raise ConfigError(
            f"callback {callback!r} returns Changes, Tripped, Left, Judged, Joined or Asked; "
            f"found {type(answer).__name__}"
        )
    bare = evolve(answer, state=None) if isinstance(answer, Left) else answer
    try:
        DECODER.decode(ENCODER.encode(bare))
    except UnicodeEncodeError:
        pass  # Half of a surrogate pair: it is escaped when it is written.
    except (TypeError, ValueError, ValidationError) as error:
        raise ConfigError(
            f"callback {callback!r} returned {type(answer).__name__} with what no journal can "
            f"hold: {error}. Fix: give it what its fields say; found {answer!r:.200}"
        ) from error
    return answer


def check_state(state: object, kind: object, made: str, *, kept: bool) -> None:
    """Refuse a state that is not of the graph's type, or would be read back as another one.

    Args:
        state: the state.
        kind: the type of the graph's state; None where nobody knows it.
        made: who made it, as a sentence begins: "node 'n' returns".
        kept: whether the journal is kept, so that somebody may read it.

    Raises:
        ConfigError: it is another thing, or a part of it is.
    """
    refuse_awaitable(state, made)
    check_kind(state, kind, made)
    if not kept or kind is None or state is None:
        return
    try:
        problem = _codec_of(kind).misfit(state)
    except (PydanticUserError, NameError) as error:
        problem = f"its type has no written form: {error}"
    if problem:
        raise ConfigError(f"{made} a state that no journal could be read back with: {problem}")


def check_kind(state: object, kind: object, made: str) -> None:
    """Refuse a state that is of another type than the graph's, by what shows of it.

    Raises:
        ConfigError: naming both.
    """
    if isinstance(kind, type) and not _is_a(state, kind):
        raise ConfigError(f"{made} a state of type {kind.__name__}; found {type(state).__name__}")


def refuse_awaitable(answer: object, made: str) -> None:
    """Refuse what an asynchronous function returned where a plain one is called.

    Raises:
        ConfigError: saying so.
    """
    if not isawaitable(answer):
        return
    if isinstance(answer, Coroutine):
        answer.close()  # Nobody will await it.
    found = type(cast("object", answer)).__name__
    raise ConfigError(
        f"{made} a value, at once; found {found}, which has to be awaited. Fix: "
        "write a plain `def` that maps values; what takes time is for a node"
    )


@lru_cache(maxsize=64)
def _codec_of(kind: object) -> Codec:
    return Codec(cast("type[object]", kind))


def _is_a(state: object, kind: type) -> bool:
    try:
        return isinstance(state, kind)
    except TypeError:  # A typed mapping, or a protocol: what it is does not show.
        return True
