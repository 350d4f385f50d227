"""Hooks: what the functions among an agent's options receive and return.

Each receives the facts that its question is about, with the `deps` of the run.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, cast

from msgspec import Struct
from typing_extensions import TypeVar

from ..driver import cancelled_inside
from ..errors import ConfigError
from ..limits import StopCondition, StopInfo
from ..policy import Policy
from ..tools import AnyTool, DepsNeed, ToolContext, accepts, awaited, deps_wanted
from ..values import Message, Usage
from .inputs import ChoiceInput, DepsT, Instructions, MessageInput, Model
from .sub_agents import NamedAgent

if TYPE_CHECKING:
    # Imported for types only: an agent without screens loads no code of them.
    from ..screens import ScreenFunction

__all__ = [
    "AnswerInfo",
    "Compact",
    "Predicate",
    "Prepare",
    "Review",
    "Screen",
    "StepChanges",
    "StepInfo",
    "StopContext",
    "StopInput",
    "hook_needs",
    "inform",
    "instructions_for",
    "lent_deps",
    "stop_input",
]

T = TypeVar("T")
DepsT_co = TypeVar("DepsT_co", default=object, covariant=True)
OutputT_co = TypeVar("OutputT_co", default=object, covariant=True)

Screen: TypeAlias = "ScreenFunction | NamedAgent"
"""A function of what the user says, or an agent that reads it and answers with a verdict."""


@dataclass(frozen=True)
class StepInfo(Generic[DepsT_co]):
    """Data about a turn before it starts, passed to `prepare_step` and `compact` functions.

    Attributes:
        step_index: the turn's index, from 0.
        messages: the conversation to be sent to the model.
        usage: the tokens of all turns so far.
        deps: the object that the caller gave this run.
    """

    step_index: int
    messages: Sequence[Message]
    usage: Usage
    deps: DepsT_co = field(default=cast("DepsT_co", None), repr=False)


class StopContext(StopInfo, Generic[DepsT_co], frozen=True):
    """`StopInfo` for the functions among `stop_when`, with the object that the caller gave the run.

    def enough(info: StopContext[Deps]) -> bool:
        return info.spent.cost_usd > info.deps.credit_usd
    """

    deps: DepsT_co = cast("DepsT_co", None)

    def __repr__(self) -> str:
        return f"StopContext(step_count={self.step_count}, elapsed_s={self.elapsed_s})"


class StepChanges(Struct, frozen=True):
    """The changes that a `prepare_step` function returns; a default value changes nothing.

    `messages` becomes the history of this and all later turns. `add_tools` and `withdraw_tools`
    (names) change the tools of this and all later turns. `active_tools`, `tool_choice` and `model`
    replace the agent's values for this turn only. `tool_choice` must be possible with the tools of
    the turn. If a turn has `active_tools`, an added tool is offered only if that list names the
    tool. A journal stores no functions: to resume the run by its id in another process, pass the
    added tools among the agent's `tools`.
    """

    messages: Sequence[MessageInput] | None = None
    add_tools: Sequence[AnyTool | Callable[..., object]] = ()
    withdraw_tools: Sequence[str] = ()
    active_tools: Sequence[str] | None = None
    tool_choice: ChoiceInput | None = None
    model: Model | None = None


@dataclass(frozen=True)
class AnswerInfo(Generic[DepsT_co, OutputT_co]):
    """Data about a final answer, passed to `done_when` and `verify` functions.

        def verify(info: AnswerInfo[None, Report]) -> bool:
            return info.output.source != ""

    Attributes:
        text: the answer as text.
        output: the answer as a value of the agent's `output_type`; None without an `output_type`.
        messages: the conversation.
        usage: the tokens of all turns so far.
        step_index: the turn's index, from 0.
        attempt: the number of answers that this check has sent back so far.
        deps: the object that the caller gave this run.
    """

    text: str
    output: OutputT_co
    messages: Sequence[Message]
    usage: Usage
    step_index: int
    attempt: int
    deps: DepsT_co = field(default=cast("DepsT_co", None), repr=False)


class Review(Struct, frozen=True):
    """The result of a `verify` function: whether the answer is good, and how to improve it.

    The model reads `feedback` in its next turn. If `retry` is False, the run accepts the answer
    even if `ok` is False.
    """

    ok: bool
    feedback: str = ""
    retry: bool = True


Predicate: TypeAlias = Callable[[StopContext[DepsT]], bool | Awaitable[bool]]
StopInput: TypeAlias = StopCondition | Predicate[DepsT] | Sequence[StopCondition | Predicate[DepsT]]
Compact: TypeAlias = Callable[
    [StepInfo[DepsT]], Sequence[MessageInput] | Awaitable[Sequence[MessageInput]]
]
Prepare: TypeAlias = Callable[[StepInfo[DepsT]], StepChanges | Awaitable[StepChanges | None] | None]


TOLD: Final[Mapping[str, type]] = {
    "prepare_step": StepInfo,
    "compact": StepInfo,
    "done_when": AnswerInfo,
    "verify": AnswerInfo,
    "stop_when": StopContext,
}
"""The options that are functions of one argument, and the class of this argument."""


LENT: Final = {"instructions": 0, "approve_tool_call": 1, "on_step_finish": 1}
"""The options that are functions of `deps` itself, and its place among their arguments."""


def stop_input(
    given: StopInput[Any],
) -> tuple[tuple[StopCondition, ...], tuple[Predicate[Any], ...]]:
    """Split `stop_when` into stop conditions, which the graph evaluates, and functions.

    Raises:
        ConfigError: an item is neither a stop condition nor a function.
    """
    # isinstance does not narrow the type of the items.
    items = cast("Sequence[object]", given) if isinstance(given, Sequence) else (given,)
    conditions: list[StopCondition] = []
    predicates: list[Predicate[Any]] = []
    for item in items:
        if isinstance(item, StopCondition) and not isinstance(item, type):
            conditions.append(item)
        elif callable(item) and not isinstance(item, type):
            # The run checks what the function returns.
            predicates.append(cast("Predicate[Any]", item))
        else:
            raise ConfigError(
                "`stop_when`: expected conditions (graphloop.limits.stop) and functions of "
                f"StopInfo, found {item!r}"
            )
    return tuple(conditions), tuple(predicates)


def hook_needs(given: Mapping[str, object]) -> Iterator[DepsNeed]:
    """Yield a need for each function among the options that is told facts of its run.

    Args:
        given: the options of an agent or a graph, by name.
    """
    for option, context in TOLD.items():
        hook = given.get(option)
        for function in cast("Sequence[object]", hook if isinstance(hook, Sequence) else (hook,)):
            if callable(function):
                yield _need_of(option, function, deps_wanted(function, context))
    for option, place in LENT.items():
        function = given.get(option)
        if callable(function) and not (place and accepts(function, 1)):
            yield _need_of(option, function, deps_wanted(function, None, place))
    if isinstance(gate := given.get("gate"), Policy):
        for condition in gate.conditions.values():
            yield _need_of("gate", condition, deps_wanted(condition, ToolContext, 1))


def _need_of(option: str, function: Callable[..., object], kind: object) -> DepsNeed:
    name = getattr(function, "__name__", type(function).__name__)
    return DepsNeed(f"`{option}` function {name!r}", kind)


async def instructions_for(given: Instructions[Any] | None, deps: object) -> str | None:
    """Return the system message of a run; a function among the options computes it from `deps`.

    Raises:
        ConfigError: the function returns no text.
        Exception: the function raised it.
    """
    if given is None or isinstance(given, str):
        return given
    function = cast("Callable[..., str | Awaitable[str]]", given)
    said = await awaited(function(deps) if accepts(function, 1) else function())
    if not isinstance(said, str):
        raise ConfigError(
            f"`instructions`: expected a function that returns a text, found one that returns "
            f"{type(said).__name__}. Fix: return a str."
        )
    return said


def lent_deps(function: Callable[..., T], deps: object) -> Callable[..., T]:
    """Return a function of one argument; one that needs a second argument gets `deps` for it."""
    if accepts(function, 1) or not accepts(function, 2):
        return function

    def lent(first: object) -> T:
        return function(first, deps)

    return lent


async def inform(name: str, listener: Callable[[T], object], argument: T) -> tuple[str, ...]:
    """Call a listener, and return a warning if the listener raises an error.

    Args:
        name: the listener's name in warnings.
        listener: a synchronous or asynchronous function.
        argument: the argument of the listener.
    """
    try:
        answer = listener(argument)
        if inspect.isawaitable(answer):
            await cast("Awaitable[object]", answer)
    except asyncio.CancelledError as error:
        return (f"{name} was {cancelled_inside(error)}",)
    except Exception as error:  # noqa: BLE001 - a listener cannot fail a run
        return (f"{name} raised {type(error).__name__}: {error}",)
    return ()
