"""Round trip: states and answers of functions, checked before they become facts of a journal.

A run whose journal cannot be read back could never be resumed, with all that it has done and paid
for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from functools import lru_cache
from inspect import isawaitable
from typing import Final, cast

from msgspec import ValidationError
from msgspec.json import Decoder, Encoder
from pydantic.errors import PydanticUserError

from ..errors import ConfigError
from ..events import (
    Answer,
    AnswerChecked,
    BranchesJoined,
    Changes,
    NodeReturned,
    RequestYielded,
    StopRequested,
)
from ..values import evolve
from .codec import Codec

__all__ = ["check_callback_answer", "check_state"]

ENCODER: Final = Encoder()
DECODER: Final = Decoder(Answer)


def check_callback_answer(answer: object, callback: str) -> Answer:
    """Return the answer of a callback if a journal can hold it; `check_state` sees a state in it.

    Raises:
        ConfigError: it is no answer, or a field of it is of another type.
    """
    if not isinstance(
        answer,
        Changes | StopRequested | NodeReturned | AnswerChecked | BranchesJoined | RequestYielded,
    ):
        raise ConfigError(
            f"callback {callback!r} returns Changes, StopRequested, NodeReturned, AnswerChecked, "
            "BranchesJoined or RequestYielded; "
            f"found {type(answer).__name__}"
        )
    bare = evolve(answer, state=None) if isinstance(answer, NodeReturned) else answer
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


def check_state(state: object, kind: object, made: str, *, kept: bool = False) -> None:
    """Refuse a state that is not of the graph's type, or would be read back as another one.

    Args:
        state: the state.
        kind: the type of the graph's state; None where it is not known.
        made: its maker, as a sentence begins: "node 'n' returns".
        kept: whether the journal is kept, so that it may be read.

    Raises:
        ConfigError: the state is to be awaited, or it or a part of it is of another type.
    """
    if isawaitable(state):
        raise _unawaited(state, made)
    if isinstance(kind, type) and not _is_a(state, kind):
        raise ConfigError(f"{made} a state of type {kind.__name__}; found {type(state).__name__}")
    if not kept or kind is None or state is None:
        return
    try:
        problem = _codec_of(kind).misfit(state)
    except (PydanticUserError, NameError) as error:
        problem = f"its type has no written form: {error}"
    if problem:
        raise ConfigError(f"{made} a state that no journal could be read back with: {problem}")


def _unawaited(answer: Awaitable[object], made: str) -> ConfigError:
    """Return the refusal of an asynchronous function where a plain one is called."""
    if isinstance(answer, Coroutine):
        answer.close()  # It is never awaited.
    found = type(cast("object", answer)).__name__
    return ConfigError(
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
