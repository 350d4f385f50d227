"""NodeSignature: the state, the outcomes and the context of a node's function.

These are read from the function's annotations, so that a type checker and the graph use the same
information. A missing annotation is refused when the function is decorated.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Generic, Union, cast, final, get_args, get_origin

from msgspec import Struct, field
from typing_extensions import TypeVar

from ..conversation import latest_answer
from ..effects import REQUESTS, Invoke, Note, Request
from ..errors import ConfigError, NodeDefinitionError
from ..outcomes import (
    Aborted,
    AnsweredCalls,
    ApprovalNeeded,
    Calls,
    Done,
    Failed,
    Outcome,
    Settled,
    outcome_name,
)
from ..run import Run
from ..tools import deps_of_context
from ..values import Message, SystemMessage, Usage, UserMessage, idempotency_key

__all__ = ["NodeContext", "NodeSignature", "signature_of"]

ABOUT_CALLS: Final = (AnsweredCalls, Calls, Done, ApprovalNeeded, Settled)
"""Outcomes that tell the checker the results of a turn's calls; functions must not return these."""


DepsT_co = TypeVar("DepsT_co", default=object, covariant=True)


@final
class NodeContext(Struct, Generic[DepsT_co], frozen=True):
    """Facts about the run, passed to a node's function as its second argument.

    Attributes:
        run_id: the run's id; the id of a child run begins with the id of its parent.
        key: the key of this visit of the node, unique in its run.
        turn: the number of the latest turn; -1 before the first turn.
        messages: the conversation.
        answer: the latest answer, with a person's edits if any; empty before the first answer.
        usage: the tokens that the run has used so far.
        deps: the object that the caller gave this run, for `NodeContext[Deps]`.
        notes: the messages added by `tell`; None for a generator, which uses `yield from tell(…)`.

    A test that calls the function gives what the function reads: `NodeContext(answer="Yes.")`.
    """

    run_id: str = ""
    key: str = ""
    turn: int = -1
    messages: Sequence[Message] = ()
    answer: str = ""
    usage: Usage = Usage()
    notes: list[Note] | None = field(default_factory=list[Note])
    deps: DepsT_co = cast("DepsT_co", None)

    def __repr__(self) -> str:
        return f"NodeContext(run_id={self.run_id!r}, key={self.key!r}, turn={self.turn})"

    @classmethod
    def of(cls, run: Run[Any], node: str, deps: Any = None) -> NodeContext[Any]:  # noqa: ANN401
        """Return the context for the current visit of `node`.

        A generator is run again after each answer; each time, it gets the same context.
        """
        waiting = (effect.id for effect in run.pending.values() if isinstance(effect, Invoke))
        begun = run.turn.dialogue
        at = next(waiting, run.next_effect) if begun is None else begun.at
        is_longer = begun is not None and begun.messages < len(run.messages)
        return NodeContext(
            run_id=run.id,
            key=f"{node}.{at}",
            turn=run.turn.number,
            messages=run.messages[: begun.messages] if begun and is_longer else run.messages,
            answer=latest_answer(run),
            usage=run.spent.usage if begun is None else begun.usage,
            notes=[] if begun is None else None,
            deps=deps,
        )

    def tell(self, *messages: str | Note) -> None:
        """Add messages to the conversation when the node is left.

        During a turn, the messages are added after the model's reply and the results of its calls.

        Raises:
            ConfigError: a message is not a text, UserMessage or SystemMessage; or the function is
                a generator, which uses `yield from tell(…)` instead.
        """
        if self.notes is None:
            raise ConfigError(
                "NodeContext.tell: expected a node function, found a generator. Fix: write "
                "`yield from tell(…)` in a generator."
            )
        for message in messages:
            if not isinstance(message, str | UserMessage | SystemMessage):  # pyright: ignore[reportUnnecessaryIsInstance] - a call in it could run a tool.
                raise ConfigError(
                    "NodeContext.tell: expected a text, UserMessage or SystemMessage, found "
                    f"{type(message).__name__}. Fix: only models and tools say the others"
                )
        node = self.key.rpartition(".")[0]
        self.notes.extend(
            UserMessage(message, node) if isinstance(message, str) else message
            for message in messages
        )

    @property
    def idempotency_key(self) -> str:
        """A key for external services; equal in each attempt at the same visit of the node."""
        return idempotency_key(self.run_id, self.key)


@final
@dataclass(frozen=True)
class NodeSignature:
    """The parameters and outcomes of a function that becomes a node.

    Args:
        name: the function's name.
        state: the type of the state parameter.
        outcomes: the outcomes that the function may return.
        stateless: the outcomes that the function may return without a new state.
        changes: whether the function may return a new state.
        context: whether the function takes a `NodeContext` as well.
        asks: the types of the requests that a generator may yield; None for any other function.
        deps: the type of the dependencies that the context has; `object` if they are not read.
    """

    name: str
    state: object
    outcomes: frozenset[type[Outcome]]
    stateless: frozenset[type[Outcome]]
    changes: bool
    context: bool
    asks: frozenset[type[Request]] | None = None
    deps: object = object


def signature_of(function: Callable[..., object]) -> NodeSignature:
    """Read the state, outcomes and parameters of a node's function from its annotations.

    Only the state and the outcomes are checked here; type checkers report other mistakes.

    Raises:
        NodeDefinitionError: an annotation is missing, or functions must not return an annotated
            outcome.
    """
    name = getattr(function, "__name__", "")
    place = f"node function {name or repr(function)!r}"
    if not inspect.isroutine(function) or not str(name).isidentifier():
        found = type(function).__name__
        problem = f"expected a function with a name, found {found}"
        raise _definition_error(place, problem, "write `@node` above a `def`")
    parameters = tuple(inspect.signature(function).parameters.values())
    hints = _type_hints(function, place)
    state = _state_type(parameters, hints, place)
    example = f"async def {name}(state: {_type_name(state)}) -> This | That"
    if "return" not in hints:
        problem = "expected its outcomes as the return annotation, found none"
        raise _definition_error(place, problem, f"write `{example}`")
    asks, returns = _request_types(hints["return"])
    members = tuple(_union_members(returns))
    plain = [member for member in members if get_origin(member) is not tuple]
    pairs = [get_args(member) for member in members if get_origin(member) is tuple]
    stateless = frozenset(_check_outcome(member, place, example) for member in plain)
    changing = frozenset(
        _check_outcome(member, place, example)
        for pair in pairs
        for member in _union_members(pair[0])
    )
    contexts = [deps_of_context(hints.get(one.name), NodeContext) for one in parameters[1:]]
    return NodeSignature(
        name=str(name),
        state=state,
        outcomes=stateless | changing,
        stateless=stateless,
        changes=bool(pairs),
        context=any(is_context for is_context, _ in contexts),
        asks=asks,
        deps=next((deps for is_context, deps in contexts if is_context), object),
    )


def _definition_error(place: str, problem: str, fix: str) -> NodeDefinitionError:
    return NodeDefinitionError(f"{place}: {problem}. Fix: {fix}.")


def _request_types(returns: object) -> tuple[frozenset[type[Request]] | None, object]:
    """Return a generator's request types (None for a plain function) and the return type."""
    if get_origin(returns) is not Generator:
        return None, returns
    yields, _, returned = get_args(returns)
    kinds = {*_union_members(yields)}
    return frozenset(kind for kind in REQUESTS if kind in kinds), returned


def _type_hints(function: Callable[..., object], place: str) -> dict[str, object]:
    try:
        return typing.get_type_hints(function, include_extras=False)
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        raise _definition_error(
            place,
            f"its annotations cannot be resolved: {error}",
            "define or import the types at module level, outside `if TYPE_CHECKING`",
        ) from error


def _state_type(
    parameters: Sequence[inspect.Parameter], hints: dict[str, object], place: str
) -> object:
    required = [
        parameter for parameter in parameters if parameter.default is inspect.Parameter.empty
    ]
    if not parameters or len(required) > 2:
        raise _definition_error(
            place,
            "expected the state as its first parameter and perhaps a NodeContext as its second, "
            f"found parameters {', '.join(parameter.name for parameter in parameters) or 'none'}",
            "write `(state: <its type>)` or `(state: <its type>, context: NodeContext)`",
        )
    first = parameters[0]
    if first.name not in hints:
        fix = "annotate it with the type of the graph's state; `None` where the graph has none"
        raise _definition_error(
            place, f"expected an annotation of parameter {first.name!r}, found none", fix
        )
    state = hints[first.name]
    if deps_of_context(state, NodeContext)[0]:
        fix = f"put the state first; `(_: None, {first.name}: NodeContext)` if the graph has none"
        raise _definition_error(
            place, f"expected the state first, found the context {first.name!r}", fix
        )
    return None if state is NoneType else state


def _union_members(hint: object) -> Iterator[object]:
    """Yield the members of a union, including those of nested unions and type aliases."""
    value = getattr(hint, "__value__", None)  # `type X = …`
    if value is not None:
        yield from _union_members(value)
    elif get_origin(hint) in (Union, UnionType):
        for member in get_args(hint):
            yield from _union_members(member)
    elif get_origin(hint) is Annotated:
        yield from _union_members(get_args(hint)[0])
    else:
        yield hint


def _check_outcome(member: object, place: str, example: str) -> type[Outcome]:
    name = _type_name(member)
    if not isinstance(member, type) or not issubclass(member, Outcome) or member is Outcome:
        raise _definition_error(
            place,
            f"expected outcomes in its return annotation, found {name}",
            f"derive a class from Outcome for each way to leave, and write `{example}`",
        )
    if member in (Aborted, Failed):
        name = outcome_name(member)
        problem = f"every function may be left by {name!r}, and no function returns it"
        raise _definition_error(place, problem, "leave it out; raise an exception to fail")
    if member in ABOUT_CALLS:
        name = outcome_name(member)
        problem = f"only nodes of graphloop know what became of a turn's calls ({name!r})"
        raise _definition_error(place, problem, "derive an outcome of your own")
    return member


def _type_name(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)
