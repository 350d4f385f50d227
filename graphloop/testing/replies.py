"""Random model replies for the fuzzer: every finish reason, with valid and invalid tool calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from json import dumps, loads
from typing import Any, Final, cast, final

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
from .choices import COUNT_MAX, Choices

__all__ = [
    "answered_by_a_model",
    "are_arguments",
    "fitting",
    "unanswered_calls",
    "unfit_arguments",
]

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
"""The finish reasons that servers give to a reply with tool calls."""
UNFORCED: Final = (
    *("done", "one", "some", "stranger", "strange", "storm"),
    *("empty", "paused", "cut", "refused", "listed", "failed"),
    *("one", "one", "some", "done", "listed", "one"),
)
"""The kinds of reply that a model may give freely; a repeated kind is drawn more often."""
FORCED: Final = (
    *("one", "done", "some", "stranger", "cut", "refused", "empty", "failed"),
    *("one", "one", "one", "one", "one", "one"),
)
"""The kinds of reply when the request forces one tool; a repeated kind is drawn more often."""


def answered_by_a_model(effect: CallModel, choices: Choices) -> Reply:
    """Return a random model reply to the request of `effect`, as the choices decide.

    Raises:
        Exception: the choices make the request fail.
    """
    forced = effect.request.tool_choice.mode == "tool" and len(effect.request.tools) == 1
    kind = choices.pick(FORCED if forced else UNFORCED)
    if kind == "failed":
        raise choices.pick(FAILURES)("the adversary")
    parts, finish = _Model(effect, choices).answer(kind)
    usage = Usage(10 * len(effect.request.messages), 5)
    return Reply(AssistantMessage(parts), finish, usage)


def unanswered_calls(tools: tuple[ToolSpec, ...], choices: Choices) -> AssistantMessage:
    """Return an assistant message with calls of these tools, for an input without their results."""
    able = [tool for tool in tools if tool.kind != "provider"]
    picked = [choices.pick(able) for _ in range(1 + choices.draw(2))] if able else []
    calls = [
        ToolCall(f"before_{place}", tool.name, fitting(tool.parameters, choices))
        for place, tool in enumerate(picked)
    ]
    return AssistantMessage(tuple(calls))


@final
@dataclass(frozen=True)
class _Model:
    """Builds a random model reply to the request of `effect`, as the choices decide."""

    effect: CallModel
    choices: Choices

    def answer(  # noqa: C901, PLR0911 - one case for each kind
        self, kind: str
    ) -> tuple[tuple[AssistantPart, ...], FinishReason]:
        """Return the message parts and the finish reason of a reply of this kind."""
        draw, pick, call, stranger = (
            *(self.choices.draw, self.choices.pick, self._draw_call, self._draw_bad_call),
        )
        text = TextPart(f"Reply {self.effect.id}.")  # The id makes the text unique in the run.
        match kind:
            case "one":
                return (call(),), pick(CALLING)
            case "some":
                return (text, *[call() for _ in range(2 + draw(3))]), pick(CALLING)
            case "stranger":
                return (stranger(),), FinishReason.TOOL_CALLS
            case "strange":
                strangers = [stranger() for _ in range(1 + draw(2))]
                return (*strangers, call()), FinishReason.TOOL_CALLS
            case "storm":
                return (text, *[call()] * (5 + draw(STORM_MAX - 4))), FinishReason.TOOL_CALLS
            case "empty":
                return pick(((), (TextPart(" "),))), FinishReason.STOP
            case "paused":
                return pick(((OpaquePart("{}"),), (), (text, call()))), FinishReason.PAUSE
            case "cut":
                finish, cut = pick(CUT), call()
                half = ToolCall(cut.id, cut.name, cut.arguments[: len(cut.arguments) // 2])
                return pick(((text, half), (text,), (call(), half))), finish
            case "refused":
                return pick(((text,), (), (text, call()))), pick(REFUSING)
            case "listed":  # Some nodes parse a reply as a list or as JSON.
                items = [f"item {at}" for at in range(1 + draw(3))]
                words = pick((dumps(items), "\n".join(items), dumps({"answer": items[0]})))
                return (TextPart(words),), FinishReason.STOP
            case _:
                return (text,), FinishReason.STOP

    def _draw_call(self) -> ToolCall:
        """Return a call of an offered tool with arguments that match the tool's schema."""
        if not self._offered_tools:
            return self._draw_bad_call()
        tool = self.choices.pick(self._offered_tools)
        return ToolCall(self._call_id(), tool.name, fitting(tool.parameters, self.choices))

    def _draw_bad_call(self) -> ToolCall:
        """Return a call of an unknown tool, or of an offered tool with invalid arguments."""
        name = self.choices.pick(("nowhere", "", *[tool.name for tool in self._offered_tools]))
        return ToolCall(self._call_id(), name, unfit_arguments(self.choices))

    @property
    def _offered_tools(self) -> tuple[ToolSpec, ...]:
        tools = tuple([tool for tool in self.effect.request.tools if tool.kind != "provider"])
        choice = self.effect.request.tool_choice
        named = tuple([tool for tool in tools if tool.name == choice.name])
        return named if choice.mode == "tool" and named else tools

    def _call_id(self) -> str:
        chosen = self.choices.pick(IDS)
        return chosen if chosen != "own" else f"call_{self.effect.id}_{len(self.choices.taken)}"


def fitting(schema: str, choices: Choices) -> str:
    """Return random arguments, as JSON text, that match a tool's JSON Schema.

    Only common schema keywords are read; for any other schema the value is a text. That is enough,
    because no real check runs: the adversary also decides which arguments are valid.
    """
    return dumps(_draw_value(loads(schema), choices, 0))


def unfit_arguments(choices: Choices) -> str:
    """Return a random arguments text that is invalid JSON or matches few tool schemas."""
    return choices.pick(UNFIT)


def are_arguments(arguments: str) -> bool:
    """Whether the text parses as a JSON object."""
    try:
        return isinstance(loads(arguments), dict)
    except ValueError:
        return False


def _draw_value(  # noqa: PLR0911 - one case for each type of JSON
    schema: object, choices: Choices, depth: int
) -> object:
    if not isinstance(schema, dict) or depth > DEPTH_MAX:
        return "deep"
    known = cast("dict[str, Any]", schema)  # All keys of a JSON object are texts.
    match known:
        case {"const": constant}:
            return constant
        case {"enum": [_, *_] as options}:
            return choices.pick(options[:COUNT_MAX])
        case {"anyOf": [_, *_] as options} | {"oneOf": [_, *_] as options}:
            return _draw_value(choices.pick(options[:COUNT_MAX]), choices, depth + 1)
        case {"type": "object"}:
            required = known.get("required", ())
            return {
                name: _draw_value(inner, choices, depth + 1)
                for name, inner in known.get("properties", {}).items()
                if name in required or choices.chance(2)
            }
        case {"type": "array"}:
            items = known.get("items", {"type": "string"})
            return [_draw_value(items, choices, depth + 1) for _ in range(choices.draw(4))]
        case {"type": "boolean"}:
            return not choices.draw(2)  # True is the simplest choice, because it ends most loops.
        case {"type": "integer" | "number"}:
            return choices.pick((0, 1, -1, 7, 10**9))
        case {"type": "null"}:
            return None
        case _:
            return choices.pick(TEXTS)
