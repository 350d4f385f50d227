"""Replies of an adversarial model: every finish reason, and every way to call tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from json import dumps, loads
from typing import Final, TypeAlias, cast, final

from ..effects import CallModel
from ..errors import ConnectionFailed, ContextOverflow, Overloaded, RequestRejected
from ..values import (
    AssistantMessage,
    AssistantPart,
    FinishReason,
    OpaquePart,
    Reply,
    TextPart,
    ToolCall,
    ToolSpec,
    Usage,
)
from .choices import Choices

__all__ = ["answered_by_a_model", "fitting", "is_object", "unanswered_calls", "unfit"]

STORM_MAX: Final = 40
DEPTH_MAX: Final = 4
IDS: Final = ("", "same", "own")
UNFIT: Final = ("{}", "", '{"text": ', "null", "[]", '{"text": {"deep": [1, 2]}}', "\ud83d{", "{}x")
TEXTS: Final = ("a", "", "b c", "ä\n\u2028", '["a", "b"]')
FAILURES: Final[tuple[Callable[[str], Exception], ...]] = (
    *(ConnectionFailed, Overloaded, ContextOverflow, RequestRejected, ValueError),
)
CUT: Final = (FinishReason.LENGTH, FinishReason.OTHER)
REFUSING: Final = (
    *(FinishReason.REFUSAL, FinishReason.CONTENT_FILTER, FinishReason.CONTEXT_WINDOW),
)
CALLING: Final = (FinishReason.TOOL_CALLS, FinishReason.STOP, FinishReason.STOP_SEQUENCE)
"""Servers differ in the finish reason of a reply that calls tools."""


def answered_by_a_model(effect: CallModel, choices: Choices) -> Reply:
    """Return the answer of a model.

    Raises:
        Exception: the request failed.
    """
    forced = effect.request.tool_choice.mode == "tool" and len(effect.request.tools) == 1
    return choices.pick(FORCED if forced else FREE)(_Model(effect, choices))


def unanswered_calls(tools: tuple[ToolSpec, ...], choices: Choices) -> AssistantMessage:
    """Return a reply from before the run, with calls that have no results yet."""
    able = [one for one in tools if one.kind != "provider"]
    picked = [choices.pick(able) for _ in range(1 + choices.draw(2))] if able else []
    calls = [
        ToolCall(f"before_{place}", one.name, fitting(one.parameters, choices))
        for place, one in enumerate(picked)
    ]
    return AssistantMessage(tuple(calls))


@final
@dataclass(frozen=True)
class _Model:
    """The request that a model answers, and the choices that decide its answer."""

    effect: CallModel
    choices: Choices

    @property
    def text(self) -> TextPart:
        """Text that no other reply of the run has."""
        return TextPart(f"Reply {self.effect.id}.")

    def call(self) -> ToolCall:
        """Return a call of a tool on offer, with arguments that fit."""
        if not self._offered:
            return self.stranger()
        tool = self.choices.pick(self._offered)
        return ToolCall(self._call_id(), tool.name, fitting(tool.parameters, self.choices))

    def stranger(self) -> ToolCall:
        """Return a call that cannot run: an unknown tool, or arguments that do not fit."""
        name = self.choices.pick(("nowhere", "", *[one.name for one in self._offered]))
        return ToolCall(self._call_id(), name, unfit(self.choices))

    def said(self, *parts: AssistantPart, finish: FinishReason = FinishReason.STOP) -> Reply:
        """Return a reply of these parts."""
        usage = Usage(10 * len(self.effect.request.messages), 5)
        return Reply(AssistantMessage(parts), finish, usage)

    def chosen(
        self, *options: tuple[AssistantPart, ...], finish: FinishReason = FinishReason.STOP
    ) -> Reply:
        """Return a reply of one of these lists of parts."""
        return self.said(*self.choices.pick(options), finish=finish)

    @property
    def _offered(self) -> tuple[ToolSpec, ...]:
        """The tools that may be called."""
        tools = tuple([one for one in self.effect.request.tools if one.kind != "provider"])
        forced = self.effect.request.tool_choice
        named = tuple([one for one in tools if one.name == forced.name])
        return named if forced.mode == "tool" and named else tools

    def _call_id(self) -> str:
        chosen = self.choices.pick(IDS)
        return chosen if chosen != "own" else f"call_{self.effect.id}_{len(self.choices.taken)}"


def _done(model: _Model) -> Reply:
    return model.said(model.text)


def _one(model: _Model) -> Reply:
    return model.said(model.call(), finish=model.choices.pick(CALLING))


def _some(model: _Model) -> Reply:
    calls = [model.call() for _ in range(2 + model.choices.draw(3))]
    return model.said(model.text, *calls, finish=model.choices.pick(CALLING))


def _strange(model: _Model) -> Reply:
    calls = [model.stranger() for _ in range(1 + model.choices.draw(2))]
    return model.said(*calls, model.call(), finish=FinishReason.TOOL_CALLS)


def _stranger(model: _Model) -> Reply:
    return model.said(model.stranger(), finish=FinishReason.TOOL_CALLS)


def _storm(model: _Model) -> Reply:
    call = model.call()
    calls = [call] * (5 + model.choices.draw(STORM_MAX - 4))
    return model.said(model.text, *calls, finish=FinishReason.TOOL_CALLS)


def _empty(model: _Model) -> Reply:
    return model.chosen((), (TextPart(" "),))


def _paused(model: _Model) -> Reply:
    options = ((OpaquePart("{}"),), (), (model.text, model.call()))
    return model.chosen(*options, finish=FinishReason.PAUSE)


def _cut(model: _Model) -> Reply:
    finish, cut = model.choices.pick(CUT), model.call()
    call = ToolCall(cut.id, cut.name, cut.arguments[: len(cut.arguments) // 2])
    return model.chosen((model.text, call), (model.text,), (model.call(), call), finish=finish)


def _refused(model: _Model) -> Reply:
    parts = model.choices.pick(((model.text,), (), (model.text, model.call())))
    return model.said(*parts, finish=model.choices.pick(REFUSING))


def _listed(model: _Model) -> Reply:
    """Answer in a form that some nodes read."""
    items = [f"item {at}" for at in range(1 + model.choices.draw(3))]
    texts = (dumps(items), "\n".join(items), dumps({"answer": items[0]}))
    return model.said(TextPart(model.choices.pick(texts)))


def _failed(model: _Model) -> Reply:
    raise model.choices.pick(FAILURES)("the adversary")


Move: TypeAlias = Callable[[_Model], Reply]

FREE: Final[tuple[Move, ...]] = (
    *(_done, _one, _some, _stranger, _strange, _storm),
    *(_empty, _paused, _cut, _refused, _listed, _failed),
    *(_one, _one, _some, _done, _listed, _one),
)
"""Answers of a model that no request forces; common answers stand here more than once."""

FORCED: Final[tuple[Move, ...]] = (
    *(_one, _done, _some, _stranger, _cut, _refused, _empty, _failed),
    *(_one, _one, _one, _one, _one, _one),
)
"""Answers of a model that has to call one tool."""


def fitting(schema: str, choices: Choices) -> str:
    """Return arguments, as JSON text, that fit a tool's schema.

    Only common keywords are understood; any other value is a text. A simulation needs no more,
    because the adversary checks the arguments as well.
    """
    return dumps(_value(loads(schema), choices, 0))


def unfit(choices: Choices) -> str:
    """Return arguments that fit hardly any schema."""
    return choices.pick(UNFIT)


def is_object(arguments: str) -> bool:
    """Whether arguments are a JSON object."""
    try:
        return isinstance(loads(arguments), dict)
    except ValueError:
        return False


def _value(schema: object, choices: Choices, depth: int) -> object:
    if not isinstance(schema, Mapping) or depth > DEPTH_MAX:
        return "deep"
    told = cast("Mapping[str, object]", schema)  # A key of JSON is a string.
    if "const" in told:
        return told["const"]
    for key in ("enum", "anyOf", "oneOf"):
        options = told.get(key)
        if isinstance(options, Sequence) and options and not isinstance(options, str):
            chosen = choices.pick(cast("Sequence[object]", options[:255]))
            return chosen if key == "enum" else _value(chosen, choices, depth + 1)
    return _typed(told, choices, depth)


def _typed(schema: Mapping[str, object], choices: Choices, depth: int) -> object:
    match schema.get("type"):
        case "object":
            return _object(schema, choices, depth)
        case "array":
            items = schema.get("items", {"type": "string"})
            return [_value(items, choices, depth + 1) for _ in range(choices.draw(4))]
        case "boolean":
            return not choices.draw(2)  # Yes ends most loops, so it is the simpler one.
        case "integer" | "number":
            return choices.pick((0, 1, -1, 7, 10**9))
        case "null":
            return None
        case _:
            return choices.pick(TEXTS)


def _object(schema: Mapping[str, object], choices: Choices, depth: int) -> dict[str, object]:
    # A schema whose keywords have other types than these is refused where a tool is made.
    properties = cast("Mapping[str, object]", schema.get("properties", {}))
    needed = cast("Sequence[object]", schema.get("required", ()))
    return {
        name: _value(one, choices, depth + 1)
        for name, one in properties.items()
        if name in needed or choices.chance(2)
    }
