"""Running a node's generator from its beginning, fed what it was answered so far.

Nothing of a generator is kept between its asks but what the journal holds, so a run goes on in any
process. Each time it is run it must ask the same: what it does between its asks depends on its
state, its context and its answers alone.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import cast, final, get_args

from msgspec import Struct, ValidationError
from msgspec.json import Decoder, Encoder

from ..asks import Ask
from ..errors import MISTAKES, AskFailed, ConfigError, NotDeterministic
from ..events import Asked, Failure
from ..turn import Exchange

__all__ = ["Returned", "played"]

ENCODER = Encoder()
DECODER: Decoder[Ask] = Decoder(Ask)


@final
class Returned(Struct, frozen=True):
    """What a generator returned."""

    value: object


def played(generator: object, exchanges: Sequence[Exchange], name: str) -> Asked | Returned:
    """Return what a generator asks next, or what it returns, once it was answered all that.

    Args:
        generator: what calling the node's function gave.
        exchanges: what it asked before, and was answered.
        name: the function's name.

    Raises:
        NotDeterministic: it does not ask what it asked before, or cannot be left at an ask.
        ConfigError: it yields something that is no ask, or what it asked for has a mistake in it,
            which is no answer that it could go on from.
        Exception: what it raised, after all that it was answered.
    """
    if not isinstance(generator, Generator):
        raise ConfigError(
            f"node {name!r} returns a generator, as its annotation says; found {generator!r:.80}"
        )
    # isinstance cannot tell what it yields, which is checked here.
    running = cast("Generator[object, object, object]", generator)
    try:
        return _played(running, exchanges, name)
    finally:
        _close(running, name)


def _close(generator: Generator[object, object, object], name: str) -> None:
    """Leave a generator where it asks: it is run again from its beginning."""
    try:
        generator.close()
    except RuntimeError as error:
        raise NotDeterministic(
            f"node {name!r}: its generator goes on when it is closed at an ask: it asks in a "
            "`finally`, or catches GeneratorExit. Fix: catch `Exception`, and ask outside of "
            "`finally`"
        ) from error


def _played(
    generator: Generator[object, object, object], exchanges: Sequence[Exchange], name: str
) -> Asked | Returned:
    answer: object = None
    for place, exchange in enumerate(exchanges):
        try:
            found = _next(generator, answer)
        except Exception as error:
            raised = f"{type(error).__name__}: {error}"
            raise _other(name, place, exchange.ask, f"that it raised {raised}") from error
        if isinstance(found, Returned):
            raise _other(name, place, exchange.ask, f"that it returned {found.value!r:.200}")
        if found != exchange.ask:
            raise _other(name, place, exchange.ask, f"{found!r:.200}")
        answer = exchange.answer
        if isinstance(answer, Failure) and answer.error in MISTAKES:
            raise ConfigError(
                f"node {name!r}, at its ask number {place + 1}, {exchange.ask!r:.200}: "
                f"{answer.error}: {answer.message}"
            )
    found = _next(generator, answer)
    return found if isinstance(found, Returned) else Asked(_ask(found, name, len(exchanges)))


def _next(generator: Generator[object, object, object], answer: object) -> object:
    try:
        if isinstance(answer, Failure):
            told = f"{answer.error}: {answer.message}"
            return generator.throw(AskFailed(told, error=answer.error))
        return generator.send(answer)
    except StopIteration as stop:
        return Returned(stop.value)


def _ask(found: object, name: str, place: int) -> Ask:
    """Return what was yielded, if it is an ask that a journal can keep."""
    where = f"node {name!r}, at its ask number {place + 1},"
    kinds = get_args(Ask)
    if not isinstance(found, kinds):
        fix = "write `yield from`, not `yield`" if isinstance(found, Generator) else "ask by one"
        raise ConfigError(
            f"{where} yields one of {', '.join(one.__name__ for one in kinds)}; found "
            f"{found!r:.80}. Fix: {fix}: `reply = yield from ask_model(…)`. Tools are run by "
            "models and agents, behind a gate, and never by a node of one's own"
        )
    try:
        return DECODER.decode(ENCODER.encode(found))
    except (TypeError, ValidationError, ValueError) as error:
        raise ConfigError(
            f"{where} yields a {type(found).__name__} that no journal can keep: {error}. Fix: give "
            "it texts"
        ) from error


def _other(name: str, place: int, expected: Ask, found: str) -> NotDeterministic:
    return NotDeterministic(
        f"node {name!r}: run again, with the same answers, its generator does not do the same. At "
        f"its ask number {place + 1} expected {expected!r:.200}, which the journal holds; found "
        f"{found}. Fix: let what it asks depend on its state, its context and its answers alone: "
        "no clock, no chance, no global, no I/O between asks. If the code was changed meanwhile, "
        "resume with the code that the run began with"
    )
