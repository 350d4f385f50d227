"""NodeCall: call a node's function, and check its answer against its annotations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Generator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast, final, get_args

from msgspec import Struct, ValidationError
from msgspec.json import Decoder, Encoder, encode

from ..effects import Note, Request
from ..errors import MISTAKES, AskFailed, ConfigError, NotDeterministic
from ..events import Failure, NodeReturned, RequestYielded
from ..outcomes import Outcome
from ..run import Run
from ..states import changed_fields, lent, same_state
from ..stores import check_state
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
    """A node's function, with the options that apply to each call of the function.

    Args:
        function: the function.
        signature: the function's parameters and outcomes.
        writes: the state fields that the function may change; None for all fields.
        timeout_s: the time limit of one call in seconds; None for no limit.
        raises: pairs of an exception type and the node's outcome if the function raises it.
        deps: the object that the caller gave the run; `with_deps` sets it for one run.
    """

    function: Callable[..., object]
    signature: NodeSignature
    writes: frozenset[str] | None = None
    timeout_s: float | None = None
    raises: tuple[tuple[type[Exception], type[Outcome]], ...] = ()
    deps: object = field(default=None, repr=False, compare=False)

    @property
    def deps_type(self) -> object:
        """The type of `deps` that the function reads; `object` if it reads none."""
        return self.signature.deps

    def with_deps(self, deps: object) -> NodeCall:
        """Return the same call for a run with these dependencies."""
        return replace(self, deps=deps)

    async def __call__(self, run: Run[Any]) -> NodeReturned | RequestYielded:
        """Call the function with the run's current state, and return the event of its answer.

        Raises:
            ConfigError: the function's answer does not match its annotations.
            NotDeterministic: a generator does not repeat the requests that it made before.
            TimeoutError: the function exceeded its time limit.
            Exception: the function raised an exception that `raises` does not list.
        """
        state: object = run.state
        copy = lent(state)
        context = NodeContext.of(run, run.node, self.deps)
        arguments = (copy, context) if self.signature.context else (copy,)
        try:
            answer = await self._run_function(run, arguments)
        except NotDeterministic:
            raise
        except Exception as error:
            outcome = next((out for kind, out in self.raises if isinstance(error, kind)), None)
            if outcome is None:
                raise
            return NodeReturned(outcome.__name__, notes=tuple(context.notes or ()))
        if isinstance(answer, RequestYielded):
            # A generator that returns a new state may modify its copy: each replay gets a new copy.
            if not self.signature.changes:
                self._check_untouched(copy, state)
            return answer
        return self._event_of_return(answer, state, copy, tuple(context.notes or ()))

    async def _run_function(self, run: Run[Any], arguments: tuple[object, ...]) -> object:
        name = self.signature.name
        if self.signature.asks is not None:
            exchanges = run.turn.dialogue.exchanges if run.turn.dialogue is not None else ()
            answer = played(self.function(*arguments), exchanges, name)
            return answer.value if isinstance(answer, Returned) else answer
        try:
            return await within(self.timeout_s, self._call_function(arguments), f"node {name!r}")
        except TooLate as error:
            seconds = f"{self.timeout_s:g}"
            raise TimeoutError(f"node {name!r} gave no answer within {seconds} seconds") from error

    async def _call_function(self, arguments: tuple[object, ...]) -> object:
        answer = self.function(*arguments)
        if isinstance(answer, Awaitable):
            return await cast("Awaitable[object]", answer)  # isinstance leaves its type open.
        return answer

    def _event_of_return(
        self, answer: object, state: object, copy: object, notes: tuple[Note, ...]
    ) -> NodeReturned:
        """Return the event for the function's outcome, with the new state if it returned one."""
        # isinstance leaves the types of the items open.
        pair = cast("tuple[object, ...]", answer) if isinstance(answer, tuple) else (answer,)
        outcome = pair[0] if len(pair) == (2 if isinstance(answer, tuple) else 1) else pair
        if not isinstance(outcome, Outcome) or type(outcome) not in self.signature.outcomes:
            raise self._wrong_outcome(outcome)
        kept = encode(outcome).decode() if fields(outcome) else ""
        if len(pair) == 1:
            self._check_untouched(copy, state)
            return NodeReturned(type(outcome).__name__, None, kept, notes=notes)
        self._check_state(pair[1], state)
        return NodeReturned(type(outcome).__name__, pair[1], kept, changed=True, notes=notes)

    def _check_untouched(self, copy: object, state: object) -> None:
        if not same_state(copy, state):
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
        check_state(new, kind, f"{place} returns")
        if self.writes is None:
            return
        changed = changed_fields(kind, old, new, self.writes)
        if changed:
            raise ConfigError(
                f"{place} writes {_list_names(self.writes)}, as it declares; it changed "
                f"{_list_names(changed)}: add it to `writes=`, or leave it as it is"
            )

    def _wrong_outcome(self, answer: object) -> ConfigError:
        words = ", ".join(sorted(outcome.__name__ for outcome in self.signature.outcomes))
        hint = ""
        if answer is None:
            hint = " Fix: look for a way through it without a `return`."
        elif isinstance(answer, type):
            hint = f" Fix: return an instance, `{answer.__name__}()`."
        return ConfigError(
            f"node {self.signature.name!r}: expected an outcome of its annotation ({words}), found "
            f"{answer!r:.80}.{hint}"
        )


def _list_names(names: Collection[str]) -> str:
    return ", ".join(map(repr, sorted(names))) or "nothing"


ENCODER = Encoder()
DECODER: Decoder[Request] = Decoder(Request)


@final
class Returned(Struct, frozen=True):
    """The return value of a generator that has finished."""

    value: object


def played(
    generator: object, exchanges: Sequence[Exchange], name: str
) -> RequestYielded | Returned:
    """Run a generator on its recorded answers; return its next request or its return value.

    Args:
        generator: the generator that the node's function returned.
        exchanges: the generator's earlier requests and their answers, in order.
        name: the function's name, for error messages.

    Raises:
        NotDeterministic: a request differs from the recorded request, or the generator continues
            when it is closed.
        ConfigError: the generator yields an object that is not a request, or a recorded answer is
            an error that a mistake in the code causes.
        Exception: the generator raised it after all recorded answers.
    """
    if not isinstance(generator, Generator):
        raise ConfigError(
            f"node {name!r}: expected a generator, as its annotation says, found {generator!r:.80}"
        )
    # isinstance leaves the yielded type open; `_check_request` checks each yielded object.
    running = cast("Generator[object, object, object]", generator)
    try:
        return _replay_exchanges(running, exchanges, name)
    finally:
        _close_generator(running, name)


def _close_generator(generator: Generator[object, object, object], name: str) -> None:
    """Close a generator; the next call of the node's function starts a new generator."""
    try:
        generator.close()
    except RuntimeError as error:
        raise NotDeterministic(
            f"node {name!r}: its generator goes on when it is closed at an ask: it asks in a "
            "`finally`, or catches GeneratorExit. Fix: catch `Exception`, and ask outside of "
            "`finally`"
        ) from error


def _replay_exchanges(
    generator: Generator[object, object, object], exchanges: Sequence[Exchange], name: str
) -> RequestYielded | Returned:
    answer: object = None
    for place, exchange in enumerate(exchanges):
        try:
            request = _resume_generator(generator, answer)
        except Exception as error:
            raised = f"that it raised {type(error).__name__}: {error}"
            raise _not_deterministic(name, place, exchange.ask, raised) from error
        if isinstance(request, Returned):
            returned = f"that it returned {request.value!r:.200}"
            raise _not_deterministic(name, place, exchange.ask, returned)
        if request != exchange.ask:
            raise _not_deterministic(name, place, exchange.ask, f"{request!r:.200}")
        answer = exchange.answer
        if isinstance(answer, Failure) and answer.error in MISTAKES:
            raise ConfigError(
                f"node {name!r}: its request number {place + 1}, {exchange.ask!r:.200}, failed: "
                f"{answer.error}: {answer.message}"
            )
    last = _resume_generator(generator, answer)
    return (
        last
        if isinstance(last, Returned)
        else RequestYielded(_check_request(last, name, len(exchanges)))
    )


def _resume_generator(generator: Generator[object, object, object], answer: object) -> object:
    try:
        if isinstance(answer, Failure):
            message = f"{answer.error}: {answer.message}"
            return generator.throw(AskFailed(message, error=answer.error))
        return generator.send(answer)
    except StopIteration as stop:
        return Returned(stop.value)


def _check_request(request: object, name: str, place: int) -> Request:
    """Return the yielded request; raise an error if a journal could not store it."""
    where = f"node {name!r}, at its request number {place + 1}"
    kinds = get_args(Request)
    if not isinstance(request, kinds):
        fix = "`yield from`, not `yield`" if isinstance(request, Generator) else "one of these"
        raise ConfigError(
            f"{where}: expected one of {', '.join(kind.__name__ for kind in kinds)}, found "
            f"{request!r:.80}. Fix: write {fix}: `reply = yield from ask_model(…)`. Only models "
            "and agents run tools, behind a gate"
        )
    try:
        return DECODER.decode(ENCODER.encode(request))
    except (TypeError, ValidationError, ValueError) as error:
        kind = type(request).__name__
        raise ConfigError(
            f"{where}: found an {kind} that no journal can keep: {error}. Fix: give it texts"
        ) from error


def _not_deterministic(name: str, place: int, expected: Request, found: str) -> NotDeterministic:
    return NotDeterministic(
        f"node {name!r}: run again, with the same answers, its generator does not do the same. At "
        f"its request number {place + 1} expected {expected!r:.200}, which the journal holds, "
        f"found {found}. Fix: let what it asks depend on its state, its context and its answers "
        "alone: no clock, no chance, no global, no I/O between asks. If the code was changed "
        "meanwhile, resume with the code that the run began with"
    )
