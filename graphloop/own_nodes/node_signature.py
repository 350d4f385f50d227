"""NodeSignature: the state, the outcomes and the context of a node's function.

They stand in its annotations, so that a type checker and the graph read the same words. Annotations
that do not tell them are refused when the function is decorated, with how to write them.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, final, get_args, get_origin

from msgspec import Struct, field

from ..agent import states_fit
from ..conversation import latest_answer
from ..effects import ASKS, Ask, Invoke, Note
from ..errors import ConfigError, NodeDefinitionError
from ..outcomes import (
    Aborted,
    AnsweredCalls,
    Calls,
    Done,
    Failed,
    Held,
    Outcome,
    Settled,
    outcome_name,
)
from ..run import Run
from ..tools import is_async
from ..values import Message, SystemMessage, Usage, UserMessage

__all__ = ["NodeContext", "NodeSignature", "signature_of"]

ABOUT_CALLS: Final = (AnsweredCalls, Calls, Done, Held, Settled)
"""Outcomes by which proofs know what became of a turn's calls; no function can promise that."""

EXAMPLE: Final = "async def {name}(state: {state}) -> {outcomes}"


@final
class NodeContext(Struct, frozen=True):
    """A run as a node's function sees it; the second parameter receives it.

    Attributes:
        run_id: the run's id; that of a child run begins with its parent's.
        key: this visit of the node's own key, unique in its run.
        turn: the number of the latest turn; -1 before the first.
        messages: the conversation.
        answer: what was answered last, as a person approved it; empty before any answer.
        usage: tokens so far.
        notes: what the function has told; None for a generator, which tells by asking.
    """

    run_id: str
    key: str
    turn: int
    messages: Sequence[Message]
    answer: str
    usage: Usage
    notes: list[Note] | None = field(default_factory=list[Note])

    @classmethod
    def of(cls, run: Run[Any], node: str) -> NodeContext:
        """Return the context of the visit of `node` that waits for its function.

        A generator is told the same each time that it is run again: how things were at first.
        """
        waiting = (one.id for one in run.pending.values() if isinstance(one, Invoke))
        begun = run.turn.dialogue
        at = next(waiting, run.next_effect) if begun is None else begun.at
        is_longer = begun is not None and begun.messages < len(run.messages)
        return cls(
            run_id=run.id,
            key=f"{node}.{at}",
            turn=run.turn.number,
            messages=run.messages[: begun.messages] if begun and is_longer else run.messages,
            answer=latest_answer(run),
            usage=run.spent.usage if begun is None else begun.usage,
            notes=[] if begun is None else None,
        )

    def tell(self, *messages: str | Note) -> None:
        """Add messages to the conversation, once the node is left; a string is a user's message.

        While a turn is in hand, they come after the reply and the results of its calls.

        Raises:
            ConfigError: it is no user's or system message; or the function is a generator.
        """
        if self.notes is None:
            raise ConfigError(
                "a generator tells by asking: write `yield from tell(…)` in place of "
                "`context.tell(…)`"
            )
        for one in messages:
            if not isinstance(one, str | UserMessage | SystemMessage):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(
                    "a node tells texts, UserMessage and SystemMessage: what models and tools said "
                    f"is theirs to say; found {type(one).__name__}"
                )
        node = self.key.rpartition(".")[0]
        self.notes.extend(
            UserMessage(one, node) if isinstance(one, str) else one for one in messages
        )

    @property
    def idempotency_key(self) -> str:
        """The same for each attempt at this visit, and for no other: for services that ask."""
        return sha256(f"{self.run_id}\0{self.key}".encode()).digest()[:16].hex()


@final
@dataclass(frozen=True)
class NodeSignature:
    """The parameters and outcomes of a function that becomes a node.

    Args:
        name: the function's name.
        state: the type of the state that it takes.
        outcomes: the outcomes that it returns.
        stateless: those among them that it may return without a new state.
        changes: whether it may return a new state.
        context: whether it takes a `NodeContext` as well.
        asks: what it asks for, if it is a generator; None for a function that just answers.
    """

    name: str
    state: object
    outcomes: frozenset[type[Outcome]]
    stateless: frozenset[type[Outcome]]
    changes: bool
    context: bool
    asks: frozenset[type[Ask]] | None = None


def signature_of(function: Callable[..., object]) -> NodeSignature:
    """Return what a function's annotations say.

    Raises:
        NodeDefinitionError: they do not say enough, or something that no node can do.
    """
    name = getattr(function, "__name__", "")
    place = f"node function {name or repr(function)!r}"
    if not inspect.isroutine(function) or not str(name).isidentifier():
        raise NodeDefinitionError(
            f"{place}: expected a function with a name, found {type(function).__name__}. "
            f"Fix: write `@node` above a `def`."
        )
    parameters = tuple(inspect.signature(function).parameters.values())
    hints = _hints(function, place)
    state = _state(parameters, hints, place)
    takes_context = _takes_context(parameters, hints, place)
    if "return" not in hints:
        raise NodeDefinitionError(
            f"{place}: expected its outcomes as the return annotation, found none. Fix: write "
            f"`{_example(name, state)}`."
        )
    asks, returned = _asked(function, hints["return"], place)
    found = tuple(_members(returned))
    carried = [get_args(one) for one in found if get_origin(one) is tuple]
    for pair in carried:
        if len(pair) != 2 or not states_fit(_whole(pair[1]), state):
            told = f"tuple[{', '.join(_word(one) for one in pair)}]"
            raise NodeDefinitionError(
                f"{place}: expected an outcome, or an outcome and the new state, found {told}. "
                f"Fix: write `-> tuple[<outcomes>, {_word(state)}]`."
            )
    plain = [one for one in found if get_origin(one) is not tuple]
    with_state = [one for pair in carried for one in _members(pair[0])]
    stateless = frozenset(_outcome(one, place, _example(name, state)) for one in plain)
    changing = frozenset(_outcome(one, place, _example(name, state)) for one in with_state)
    return NodeSignature(
        str(name), state, stateless | changing, stateless, bool(carried), takes_context, asks
    )


def _asked(
    function: Callable[..., object], returns: object, place: str
) -> tuple[frozenset[type[Ask]] | None, object]:
    """Return what a generator asks for and returns; a function that just answers asks nothing."""
    if inspect.isasyncgenfunction(function):
        raise NodeDefinitionError(
            f"{place}: expected a function or a generator, found an asynchronous generator, which "
            "can return nothing. Fix: write a plain `def`, and `yield from ask_model(…)` in it."
        )
    if get_origin(returns) is not Generator:
        if inspect.isgeneratorfunction(function):
            raise NodeDefinitionError(
                f"{place}: expected `Asking[<outcomes>]` as the return annotation of a generator, "
                f"found {_word(returns)}. Fix: write `-> Asking[This | That]`; or, to ask for "
                "nothing, `return` the outcome and do not `yield`."
            )
        return None, returns
    if is_async(function):
        raise NodeDefinitionError(
            f"{place}: expected a plain `def` that asks with `yield from`, found an asynchronous "
            "one that promises a generator. Fix: leave `async` out; what it waits for, it asks for."
        )
    yields, _, returned = get_args(returns)
    kinds = frozenset(_members(yields))
    if not kinds or not kinds <= ASKS:
        words = ", ".join(sorted(one.__name__ for one in ASKS))
        raise NodeDefinitionError(
            f"{place}: expected a generator that yields of {words}, found {_word(yields)}. Fix: "
            "write `-> Asking[<outcomes>]`, or `Generator[<asks>, Answer, <outcomes>]`."
        )
    return frozenset(one for one in ASKS if one in kinds), returned


def _hints(function: Callable[..., object], place: str) -> dict[str, object]:
    try:
        return typing.get_type_hints(function, include_extras=False)
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        raise NodeDefinitionError(
            f"{place}: its annotations cannot be resolved: {error}. "
            "Fix: define or import the types at module level, outside `if TYPE_CHECKING`."
        ) from error


def _state(parameters: Sequence[inspect.Parameter], hints: dict[str, object], place: str) -> object:
    if not parameters or _needed(parameters) > 2 or len(parameters) > 2:
        found = ", ".join(one.name for one in parameters) or "none"
        raise NodeDefinitionError(
            f"{place}: expected the state as its first parameter and perhaps a NodeContext as its "
            f"second, found parameters {found}. Fix: write `(state: <its type>)` or "
            "`(state: <its type>, context: NodeContext)`."
        )
    first = parameters[0]
    if first.kind not in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD):
        raise NodeDefinitionError(
            f"{place}: parameter {first.name!r} cannot be given by its place. Fix: write "
            f"`({first.name}: <the state's type>)`."
        )
    if first.name not in hints:
        raise NodeDefinitionError(
            f"{place}: parameter {first.name!r} has no annotation. Fix: annotate it with the type "
            "of the graph's state; `None` where the graph has none."
        )
    state = hints[first.name]
    if state is NodeContext:
        raise NodeDefinitionError(
            f"{place}: the context is its first parameter. Fix: put the state first; "
            f"`(_: None, {first.name}: NodeContext)` where the graph has none."
        )
    return _whole(state)


def _whole(kind: object) -> object:
    return None if kind is NoneType else kind


def _needed(parameters: Sequence[inspect.Parameter]) -> int:
    return sum(one.default is inspect.Parameter.empty for one in parameters)


def _takes_context(
    parameters: Sequence[inspect.Parameter], hints: dict[str, object], place: str
) -> bool:
    if len(parameters) < 2:
        return False
    second = parameters[1]
    named = second.kind in (second.POSITIONAL_ONLY, second.POSITIONAL_OR_KEYWORD)
    if hints.get(second.name) is NodeContext and named:
        return True
    raise NodeDefinitionError(
        f"{place}: its second parameter {second.name!r} is given the context of the run, found the "
        f"annotation {_word(hints.get(second.name, 'none'))}. Fix: write "
        f"`{second.name}: NodeContext`, or leave it out."
    )


def _members(hint: object) -> Iterator[object]:
    """Yield the members of a union, as deep as it goes."""
    value = getattr(hint, "__value__", None)  # `type X = …`
    if value is not None:
        yield from _members(value)
    elif get_origin(hint) in (Union, UnionType):
        for one in get_args(hint):
            yield from _members(one)
    elif get_origin(hint) is Annotated:
        yield from _members(get_args(hint)[0])
    else:
        yield hint


def _outcome(found: object, place: str, example: str) -> type[Outcome]:
    own = "Outcome itself, which is no way to leave" if found is Outcome else _word(found)
    if not isinstance(found, type) or not issubclass(found, Outcome) or found is Outcome:
        raise NodeDefinitionError(
            f"{place}: expected outcomes in its return annotation, found {own}. Fix: derive a "
            f"class of your own from Outcome for each way to leave, and write `{example}`."
        )
    if found in (Aborted, Failed):
        raise NodeDefinitionError(
            f"{place}: every function may be left by {outcome_name(found)!r}, and none returns it. "
            "Fix: leave it out; raise an exception to fail."
        )
    if found in ABOUT_CALLS:
        raise NodeDefinitionError(
            f"{place}: {outcome_name(found)!r} tells what became of a turn's calls, which only the "
            "nodes of graphloop can. Fix: derive an outcome of your own."
        )
    return found


def _example(name: object, state: object) -> str:
    return EXAMPLE.format(name=name, state=_word(state), outcomes="This | That")


def _word(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)
