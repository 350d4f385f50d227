"""NodeCall: one call of a node's function, and the checks of its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Generator, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast, final, get_args

from msgspec import Struct, ValidationError
from msgspec.json import Decoder, Encoder, encode

from ..agent import changed_fields, lent, same_state
from ..driver import check_kind
from ..effects import Ask, Note
from ..errors import MISTAKES, AskFailed, ConfigError, NotDeterministic
from ..events import Failure, NodeReturned, RequestYielded
from ..outcomes import Outcome, outcome_name
from ..run import Run
from ..tools import TooLate, within
from ..turn import Exchange
from .node_signature import NodeContext, NodeSignature

__all__ = [
    "NodeCall",
    "Returned",
    "played",
]


@final
@dataclass(frozen=True)
class NodeCall:
    """How a node's function is called.

    Args:
        function: the function.
        signature: what it takes and returns.
        writes: the fields of the state that it may change; None for any.
        timeout_s: after how many seconds it is given up; None for never.
        raises: what the node is left by when the function raises one of these.
    """

    function: Callable[..., object]
    signature: NodeSignature
    writes: frozenset[str] | None = None
    timeout_s: float | None = None
    raises: tuple[tuple[type[Exception], type[Outcome]], ...] = ()

    async def __call__(self, run: Run[Any]) -> NodeReturned | RequestYielded:
        """Call the function in the run as it stands.

        Raises:
            ConfigError: it answered what its annotations do not say.
            NotDeterministic: a generator does not ask what it asked before.
            TimeoutError: it took too long.
            Exception: what the function raised, unless an outcome was declared for it.
        """
        state: object = run.state
        given = lent(state)
        context = NodeContext.of(run, run.node)
        arguments = (given, context) if self.signature.context else (given,)
        try:
            answer = await self._answer(run, arguments)
        except NotDeterministic:
            raise
        except Exception as error:
            outcome = next((one for kind, one in self.raises if isinstance(error, kind)), None)
            if outcome is None:
                raise
            return NodeReturned(outcome.__name__, notes=tuple(context.notes or ()))
        if isinstance(answer, RequestYielded):
            # A state that will be returned may change on the way: each replay gets a new copy.
            if not self.signature.changes:
                self._check_untouched(given, state)
            return answer
        return self._left(answer, state, given, tuple(context.notes or ()))

    async def _answer(self, run: Run[Any], given: tuple[object, ...]) -> object:
        name = self.signature.name
        if self.signature.asks is not None:
            exchanges = run.turn.dialogue.exchanges if run.turn.dialogue is not None else ()
            found = played(self.function(*given), exchanges, name)
            return found.value if isinstance(found, Returned) else found
        try:
            return await within(self.timeout_s, self._called(given), f"node {name!r}")
        except TooLate as error:
            seconds = f"{self.timeout_s:g}"
            raise TimeoutError(f"node {name!r} gave no answer within {seconds} seconds") from error

    async def _called(self, given: tuple[object, ...]) -> object:
        answer = self.function(*given)
        if isinstance(answer, Awaitable):
            return await cast("Awaitable[object]", answer)  # isinstance cannot tell of what
        return answer

    def _left(
        self, answer: object, state: object, given: object, notes: tuple[Note, ...]
    ) -> NodeReturned:
        """Return the answer as a fact."""
        # isinstance cannot tell what is in it.
        pair = cast("tuple[object, ...]", answer) if isinstance(answer, tuple) else (answer,)
        outcome = pair[0] if len(pair) in (1, 2) else pair
        if not isinstance(outcome, Outcome) or type(outcome) not in self.signature.outcomes:
            raise self._unfit(outcome)
        own = encode(outcome).decode() if fields(outcome) else ""
        if len(pair) == 1:
            self._check_untouched(given, state)
            return NodeReturned(type(outcome).__name__, None, own, notes=notes)
        self._check_state(pair[1], state)
        return NodeReturned(type(outcome).__name__, pair[1], own, changed=True, notes=notes)

    def _check_untouched(self, given: object, state: object) -> None:
        if not same_state(given, state):
            raise ConfigError(
                f"node {self.signature.name!r} changed its state in place, where no journal "
                "sees it: return it with the outcome, and write "
                "`-> tuple[<outcomes>, <its type>]`"
            )

    def _check_state(self, new: object, old: object) -> None:
        place, kind = f"node {self.signature.name!r}", self.signature.state
        if not self.signature.changes:
            raise ConfigError(
                f"{place} returned a new state, which its annotation does not say: write "
                "`-> tuple[<outcomes>, <the state's type>]`"
            )
        check_kind(new, kind, f"{place} returns")
        if self.writes is None:
            return
        changed = changed_fields(kind, old, new, self.writes)
        if changed:
            raise ConfigError(
                f"{place} writes {_listed(self.writes)}, as it declares; it changed "
                f"{_listed(changed)}: add it to `writes=`, or leave it as it is"
            )

    def _unfit(self, found: object) -> ConfigError:
        place = f"node {self.signature.name!r}"
        words = ", ".join(sorted(one.__name__ for one in self.signature.outcomes))
        if isinstance(found, type) and issubclass(found, Outcome):
            return ConfigError(
                f"{place} returned the class {found.__name__}: return one, `{found.__name__}()`"
            )
        if isinstance(found, Outcome):
            return ConfigError(
                f"{place} returned {outcome_name(type(found))!r}, which its annotation does not "
                f"name: add {type(found).__name__} to it, or return one of {words}"
            )
        none = ": is there a way through it without a `return`?" if found is None else ""
        return ConfigError(f"{place} returns one of {words}; found {found!r:.80}{none}")


def _listed(names: Collection[str]) -> str:
    return ", ".join(map(repr, sorted(names))) or "nothing"


ENCODER = Encoder()
DECODER: Decoder[Ask] = Decoder(Ask)


@final
class Returned(Struct, frozen=True):
    """The value that a generator returned."""

    value: object


def played(
    generator: object, exchanges: Sequence[Exchange], name: str
) -> RequestYielded | Returned:
    """Return the next ask of a generator after these exchanges, or its return value.

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
) -> RequestYielded | Returned:
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
    return (
        found if isinstance(found, Returned) else RequestYielded(_ask(found, name, len(exchanges)))
    )


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
