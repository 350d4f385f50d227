"""Sample answers: possible next events of a simulated run.

Each event is an event that a driver could journal, and the most common events come first. The
simulation calls no function of the user: it returns each outcome that the function declares.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, timedelta
from itertools import product
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NewType,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)
from uuid import UUID

import msgspec
from pydantic import BaseModel

from .. import effects, events
from ..events import CallCheck, Event, Failure, NodeReturned
from ..graph import NodeGraph
from ..nodes import Function
from ..outcomes import Aborted, Failed, Outcome
from ..run import Run
from ..spending import Budget
from ..values import (
    AssistantMessage,
    AssistantPart,
    FinishReason,
    Message,
    Reply,
    TextPart,
    ToolCall,
    ToolSpec,
    Usage,
    UserMessage,
    evolve,
)
from .state_types import enum_of, field_types, is_record

__all__ = ["CONVERSATIONS", "SETUPS", "Functions", "answers", "functions_of", "sample"]

S = TypeVar("S")

Functions: TypeAlias = Mapping[str, Sequence[Function]]
"""The `Function` nodes of a graph, by the name of the user's function that they call."""

TOKENS: Final = 5_000
"""The token budget of simulated runs; a reply that uses it up makes a StopCheck stop."""

TOOLS: Final = (ToolSpec("read", "Read.", '{"type": "object"}'),)
SETUPS: Final = tuple(
    events.Setup("model", TOOLS, budget=Budget(tokens=TOKENS, tool_calls=calls), attended=attended)
    for attended, calls in product((False, True), (None, 1))
)
"""The setups to try: with or without a steering caller, and with or without a tool call limit."""

CALL: Final = ToolCall("", "read", "{}")
CONVERSATIONS: Final[Mapping[str, tuple[Message, ...]]] = {
    "": (UserMessage("Go."),),
    "calls": (UserMessage("Go."), AssistantMessage((CALL, CALL))),
    "overflow": (UserMessage("x" * 4_000_000),),
}
"""The initial conversations of simulated runs, by the outcome that each makes possible."""


def _sample_reply(*parts: AssistantPart, finish: FinishReason, tokens: int = 1) -> Reply:
    """Return a model reply of these parts, which used this number of input tokens."""
    return Reply(AssistantMessage(parts), finish, Usage(tokens, 1))


REPLIES: Final = (
    _sample_reply(TextPart("done"), finish=FinishReason.STOP),
    _sample_reply(CALL, finish=FinishReason.TOOL_CALLS),
    _sample_reply(CALL, CALL, finish=FinishReason.TOOL_CALLS),
    _sample_reply(TextPart("half"), evolve(CALL, arguments="{"), finish=FinishReason.LENGTH),
    _sample_reply(finish=FinishReason.STOP),
    _sample_reply(TextPart("on"), finish=FinishReason.PAUSE),
    _sample_reply(TextPart("no"), finish=FinishReason.REFUSAL),
    _sample_reply(TextPart("full"), finish=FinishReason.CONTEXT_WINDOW),
    _sample_reply(TextPart('["a", "b"]'), finish=FinishReason.STOP),
    _sample_reply(TextPart("done"), finish=FinishReason.STOP, tokens=TOKENS),
    _sample_reply(CALL, finish=FinishReason.TOOL_CALLS, tokens=TOKENS),
)
FAILURES: Final = (Failure("ServerError", "down"), Failure("ContextOverflow", "full"))
CALLBACK_ANSWERS: Final[tuple[events.CallbackAnswer, ...]] = (
    events.Changes(),
    events.StopRequested(),
    events.StopRequested(("stop",)),
    events.AnswerChecked(accepted=True),
    events.AnswerChecked(accepted=False, feedback="no"),
    events.AnswerChecked(accepted=False, feedback="no", retry=False),
    events.BranchesJoined("all"),
    events.ItemsListed(("a", "b")),
    events.NodeReturned("Answered"),
)


def functions_of(graph: NodeGraph[S]) -> Functions:
    """Return the `Function` nodes of a graph, by the name of the function that they call."""
    functions: dict[str, list[Function]] = {}
    for node in graph.every_node:
        if isinstance(node, Function):
            functions.setdefault(node.callback, []).append(node)
    return functions


def answers(functions: Functions, run: Run[S], *, steered: bool = True) -> Iterator[Event]:
    """Yield the events that may follow in a run that waits for an effect, most common first.

    Args:
        functions: the `Function` nodes, by the name of the function that they call.
        run: the run; it must have a pending effect.
        steered: whether the caller may add messages to the inbox.
    """
    effect, at = run.pending[min(run.pending)], run.at + 1
    yield from _effect_answers(functions, effect, at)
    if steered and not run.inbox.follow_ups:
        yield events.Queued(at, UserMessage("more"), follow_up=True)
    if steered and not run.inbox.steering:
        yield events.Queued(at, UserMessage("wait"))
    yield events.EffectFailed(at, effect.id, FAILURES[0])
    yield events.Cancelled(at, "simulated")


def _effect_answers(  # noqa: C901 - one case for each effect
    functions: Functions, effect: effects.Effect, at: float
) -> Iterator[Event]:
    """Yield the events that may answer an effect, with time `at`, most common first."""
    match effect:
        case effects.CallModel():
            for reply in _sample_replies(effect):
                yield events.ModelReplied(at, effect.id, reply, 0.0)
            yield events.EffectFailed(at, effect.id, FAILURES[1])
        case effects.CheckCalls(calls=calls):
            for count in dict.fromkeys((0, len(calls), 1)):
                checks = [CallCheck("", number < count) for number in range(len(calls))]
                yield events.CallsChecked(at, effect.id, tuple(checks))
            yield events.CallsChecked(at, effect.id, (CallCheck("does not fit"),) * len(calls))
        case effects.AskHuman():
            for approved in (True, False):
                yield events.Decided(at, effect.id, approved)
        case effects.CallTool():
            yield events.ToolReturned(at, effect.id, "fine")
        case effects.Invoke(callback=callback):
            for answer in (*_declared_outcomes(functions, callback), *CALLBACK_ANSWERS):
                yield events.CallbackReturned(at, effect.id, answer)
        case effects.StartRun():
            for text in ("42", '["a", "b"]'):
                yield events.ChildEnded(at, effect.id, text)
            yield events.ChildEnded(at, effect.id, "bad", "error")
        case effects.AwaitCaller():
            yield events.Steered(at, effect.id)
            yield events.Steered(at, effect.id, append=(UserMessage("more"),))


def _sample_replies(effect: effects.CallModel) -> Iterator[Reply]:
    """Yield sample model replies; if the request forces a tool, first calls of that tool."""
    if effect.request.tool_choice.mode == "tool":
        for tool in effect.request.tools:
            for arguments in _sample_arguments(tool):
                call = ToolCall("", tool.name, arguments)
                yield _sample_reply(call, finish=FinishReason.TOOL_CALLS)
    yield from REPLIES


def _sample_arguments(tool: ToolSpec) -> Iterator[str]:
    """Yield arguments for a tool as JSON, with each combination of its enum and boolean values."""
    properties: Mapping[str, Mapping[str, Any]] = json.loads(tool.parameters)["properties"]
    values = [
        schema.get("enum") or ([True, False] if schema.get("type") == "boolean" else ["no"])
        for schema in properties.values()
    ]
    for chosen in product(*values):
        yield json.dumps(dict(zip(properties, chosen, strict=True)))


def _declared_outcomes(functions: Functions, callback: str) -> Iterator[NodeReturned]:
    """Yield each outcome that a function's nodes declare, as if the function had returned it."""
    for node in functions.get(callback, ()):
        for outcome in sorted(
            node.outcomes - {Failed, Aborted}, key=lambda outcome: outcome.__name__
        ):
            yield NodeReturned(outcome.__name__, fields=_sample_fields(outcome))


def _sample_fields(outcome: type[Outcome]) -> str:
    """Return a sample of an outcome's fields as JSON; empty text if no sample can be made."""
    try:
        return msgspec.json.encode(sample(outcome)).decode()
    except Exception:  # noqa: BLE001 - the class is the user's
        return ""


ATOMS: Final[dict[object, object]] = {
    NoneType: None,
    None: None,
    bool: True,
    int: 7,
    float: 0.5,
    str: "text",
    date: date(2020, 2, 29),
    timedelta: timedelta(days=-1, microseconds=1),
    UUID: UUID(int=7),
    Path: Path("a/b"),
}

DEPTH_MAX: Final = 8
"""The depth of nesting after which optional values and lists are left empty."""


def sample(  # noqa: C901, PLR0911 - a way out for each kind of type
    of: object, depth: int = 0
) -> object:
    """Return a sample value of type `of`; a record's fields with a default keep the default.

    Raises:
        TypeError: no sample of the type is known. A class of the user may raise other errors.
    """
    origin, args = get_origin(of) or of, get_args(of)
    if of in ATOMS:
        return ATOMS[of]
    if isinstance(of, NewType):
        return sample(of.__supertype__, depth)
    if origin is Annotated:
        return sample(args[0], depth)
    if origin is Literal:
        return args[0]
    if origin in {Union, UnionType}:
        members = [member for member in args if member is not NoneType]
        too_deep = len(members) < len(args) and depth > DEPTH_MAX
        return None if too_deep else sample(members[0], depth)
    if origin in {list, set, frozenset} and args:
        make = cast("Callable[[object], object]", origin)
        return make([] if depth > DEPTH_MAX else [sample(args[0], depth + 1)])
    if origin is tuple and args:
        parts = args[:1] if args[-1] is ... else args
        return tuple(sample(part, depth + 1) for part in parts)
    if origin is dict and args:
        return {} if depth > DEPTH_MAX else {sample(args[0], depth): sample(args[1], depth + 1)}
    enum = enum_of(of)
    if enum is not None:
        return next(iter(enum))
    if is_record(of) and depth <= 2 * DEPTH_MAX:
        return _sample_record(cast("type[object]", of), depth)
    raise TypeError(f"no value of {of} is known")


def _sample_record(of: type[object], depth: int) -> object:
    """Return a record with sample values for its required fields."""
    types = field_types(of)
    make = cast("Callable[..., object]", of)
    return make(**{name: sample(types[name], depth + 1) for name in _required_fields(of)})


def _required_fields(of: type[Any]) -> list[str]:
    """Return the names of a record's fields that have no default."""
    if issubclass(of, BaseModel):
        return [name for name, info in of.model_fields.items() if info.is_required()]
    if is_dataclass(of):
        return [
            field.name
            for field in fields(of)
            if field.init and field.default is MISSING and field.default_factory is MISSING
        ]
    return [name for name in of._fields if name not in of._field_defaults]
