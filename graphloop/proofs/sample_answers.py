"""Worlds: answers to effects that lead a run along a witness.

Each answer is an event as a driver would journal it, the ordinary ones first. No function of the
user is called: every outcome that a function declares is an answer.
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
from ..node_protocol import unwrapped
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
from .written import enum_of, field_types, is_record

__all__ = ["CONVERSATIONS", "SETUPS", "Functions", "answers", "functions_of", "sample"]

S = TypeVar("S")

Functions: TypeAlias = Mapping[str, Sequence[Function]]
"""The nodes of a graph that call a function, by its name."""

TOKENS: Final = 5_000
"""A reply may use as much as the budget, so that a StopCheck stops."""

TOOLS: Final = (ToolSpec("read", "Read.", '{"type": "object"}'),)
SETUPS: Final = tuple(
    events.Setup("model", TOOLS, budget=Budget(tokens=TOKENS, tool_calls=calls), attended=attended)
    for attended, calls in product((False, True), (None, 1))
)
"""A caller that has its say, or none; a budget that one call of a tool has spent, or none."""

CALL: Final = ToolCall("", "read", "{}")
CONVERSATIONS: Final[Mapping[str, tuple[Message, ...]]] = {
    "": (UserMessage("Go."),),
    "calls": (UserMessage("Go."), AssistantMessage((CALL, CALL))),
    "overflow": (UserMessage("x" * 4_000_000),),
}
"""What a run begins with, by the outcome that asks for it: calls that are open, or many words."""


def _reply(*parts: AssistantPart, finish: FinishReason, tokens: int = 1) -> Reply:
    return Reply(AssistantMessage(parts), finish, Usage(tokens, 1))


REPLIES: Final = (
    _reply(TextPart("done"), finish=FinishReason.STOP),
    _reply(CALL, finish=FinishReason.TOOL_CALLS),
    _reply(CALL, CALL, finish=FinishReason.TOOL_CALLS),
    _reply(TextPart("half"), evolve(CALL, arguments="{"), finish=FinishReason.LENGTH),
    _reply(finish=FinishReason.STOP),
    _reply(TextPart("on"), finish=FinishReason.PAUSE),
    _reply(TextPart("no"), finish=FinishReason.REFUSAL),
    _reply(TextPart("full"), finish=FinishReason.CONTEXT_WINDOW),
    _reply(TextPart('["a", "b"]'), finish=FinishReason.STOP),
    _reply(TextPart("done"), finish=FinishReason.STOP, tokens=TOKENS),
    _reply(CALL, finish=FinishReason.TOOL_CALLS, tokens=TOKENS),
)
FAILURES: Final = (Failure("ServerError", "down"), Failure("ContextOverflow", "full"))
SAID: Final[tuple[events.Answer, ...]] = (
    events.Changes(),
    events.StopRequested(),
    events.StopRequested(("stop",)),
    events.AnswerChecked(accepted=True),
    events.AnswerChecked(accepted=False, feedback="no"),
    events.AnswerChecked(accepted=False, feedback="no", retry=False),
    events.BranchesJoined("all"),
)


def functions_of(graph: NodeGraph[S]) -> Functions:
    """Return the nodes of a graph that call a function."""
    found: dict[str, list[Function]] = {}
    for node in unwrapped(graph.nodes.values()):
        if isinstance(node, Function):
            found.setdefault(node.callback, []).append(node)
    return found


def answers(functions: Functions, run: Run[S], *, said: bool = True) -> Iterator[Event]:
    """Yield what may happen next to a run that waits; with `said`, a person may say more."""
    effect, at = run.pending[min(run.pending)], run.at + 1
    yield from _answered(functions, effect, at)
    if said and not run.inbox.follow_ups:
        yield events.Queued(at, UserMessage("more"), follow_up=True)
    if said and not run.inbox.steering:
        yield events.Queued(at, UserMessage("wait"))
    yield events.EffectFailed(at, effect.id, FAILURES[0])
    yield events.Cancelled(at, "simulated")


def _answered(functions: Functions, effect: effects.Effect, at: float) -> Iterator[Event]:  # noqa: C901 - one case an effect
    match effect:
        case effects.CallModel():
            for reply in _replies(effect):
                yield events.ModelReplied(at, effect.id, reply, 0.0)
            yield events.EffectFailed(at, effect.id, FAILURES[1])
        case effects.CheckCalls(calls=calls):
            for asked in dict.fromkeys((0, len(calls), 1)):
                checks = [CallCheck("", place < asked) for place in range(len(calls))]
                yield events.CallsChecked(at, effect.id, tuple(checks))
            yield events.CallsChecked(at, effect.id, (CallCheck("does not fit"),) * len(calls))
        case effects.AskHuman():
            for approved in (True, False):
                yield events.Decided(at, effect.id, approved)
        case effects.CallTool():
            yield events.ToolReturned(at, effect.id, "fine")
        case effects.Invoke(callback=callback):
            for answer in (*_left(functions, callback), *SAID):
                yield events.CallbackReturned(at, effect.id, answer)
        case effects.StartRun():
            for text in ("42", '["a", "b"]'):
                yield events.ChildEnded(at, effect.id, text)
            yield events.ChildEnded(at, effect.id, "bad", "error")
        case effects.AwaitCaller():
            yield events.Steered(at, effect.id)
            yield events.Steered(at, effect.id, append=(UserMessage("more"),))


def _replies(effect: effects.CallModel) -> Iterator[Reply]:
    """Yield what a model answers; where it has to use a tool, each of the tool's choices first."""
    if effect.request.tool_choice.mode == "tool":
        for tool in effect.request.tools:
            for arguments in _arguments(tool):
                call = ToolCall("", tool.name, arguments)
                yield _reply(call, finish=FinishReason.TOOL_CALLS)
    yield from REPLIES


def _arguments(tool: ToolSpec) -> Iterator[str]:
    properties: Mapping[str, Mapping[str, Any]] = json.loads(tool.parameters)["properties"]
    values = [
        one.get("enum") or ([True, False] if one.get("type") == "boolean" else ["no"])
        for one in properties.values()
    ]
    for chosen in product(*values):
        yield json.dumps(dict(zip(properties, chosen, strict=True)))


def _left(functions: Functions, callback: str) -> Iterator[NodeReturned]:
    """Yield the outcomes that the function of that name may leave by."""
    for node in functions.get(callback, ()):
        for outcome in sorted(node.outcomes - {Failed, Aborted}, key=lambda one: one.__name__):
            yield NodeReturned(outcome.__name__, fields=_fields(outcome))


def _fields(outcome: type[Outcome]) -> str:
    """Return fields of an outcome as JSON; none where no value of them is known."""
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

DEEP: Final = 8
"""How deep records are filled that hold themselves."""


def sample(  # noqa: C901, PLR0911 - a way out for each kind of type
    of: object, depth: int = 0
) -> object:
    """Return a value of a type; what has a default has its default.

    Raises:
        TypeError: no value is known; whatever a class raises when one is made.
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
        shallow = NoneType in args and depth > DEEP
        return None if shallow else sample(next(one for one in args if one is not NoneType), depth)
    if origin in {list, set, frozenset} and args:
        make = cast("Callable[[object], object]", origin)
        return make([] if depth > DEEP else [sample(args[0], depth + 1)])
    if origin is tuple and args:
        parts = args[:1] if args[-1] is ... else args
        return tuple([sample(one, depth + 1) for one in parts])
    if origin is dict and args:
        return {} if depth > DEEP else {sample(args[0], depth): sample(args[1], depth + 1)}
    enum = enum_of(of)
    if enum is not None:
        return next(iter(enum))
    if is_record(of) and depth <= 2 * DEEP:
        return _record(cast("type[object]", of), depth)
    raise TypeError(f"no value of {of} is known")


def _record(of: type[object], depth: int) -> object:
    types = field_types(of)
    make = cast("Callable[..., object]", of)
    return make(**{name: sample(types[name], depth + 1) for name in _required(of)})


def _required(of: type[Any]) -> list[str]:
    """Return the fields that have no default."""
    if issubclass(of, BaseModel):
        return [name for name, one in of.model_fields.items() if one.is_required()]
    if is_dataclass(of):
        return [
            one.name
            for one in fields(of)
            if one.init and one.default is MISSING and one.default_factory is MISSING
        ]
    return [name for name in of._fields if name not in of._field_defaults]
