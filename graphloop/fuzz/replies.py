"""Replies: what an adversarial model answers: every finish reason, and every way to call tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from json import dumps
from typing import Final, TypeAlias, final

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
from .arguments import fitting, unfit
from .choices import Choices

__all__ = ["Asked", "answered_by_a_model", "unanswered_calls"]

STORM_MAX: Final = 40
IDS: Final = ("", "same", "own")
FAILURES: Final[tuple[Callable[[str], Exception], ...]] = (
    ConnectionFailed,
    Overloaded,
    ContextOverflow,
    RequestRejected,
    ValueError,
)
CUT: Final = (FinishReason.LENGTH, FinishReason.OTHER)
REFUSING: Final = (
    FinishReason.REFUSAL,
    FinishReason.CONTENT_FILTER,
    FinishReason.CONTEXT_WINDOW,
)
CALLING: Final = (FinishReason.TOOL_CALLS, FinishReason.STOP, FinishReason.STOP_SEQUENCE)
"""Servers differ in what they say of a reply that calls tools."""


@final
@dataclass(frozen=True)
class Asked:
    """What a model was asked, and where its decisions come from."""

    effect: CallModel
    choices: Choices

    @property
    def offered(self) -> tuple[ToolSpec, ...]:
        """The tools that may be called."""
        tools = tuple([one for one in self.effect.request.tools if one.kind != "provider"])
        forced = self.effect.request.tool_choice
        named = tuple([one for one in tools if one.name == forced.name])
        return named if forced.mode == "tool" and named else tools

    def call(self) -> ToolCall:
        """Return a call of a tool on offer, with arguments that fit."""
        if not self.offered:
            return self.stranger()
        tool = self.choices.pick(self.offered)
        return ToolCall(self._call_id(), tool.name, fitting(tool.parameters, self.choices))

    def stranger(self) -> ToolCall:
        """Return a call that cannot run: of no tool there is, or with arguments that do not fit."""
        name = self.choices.pick(("nowhere", "", *[one.name for one in self.offered]))
        return ToolCall(self._call_id(), name, unfit(self.choices))

    def said(self, *parts: AssistantPart, finish: FinishReason) -> Reply:
        """Return a reply of these parts."""
        usage = Usage(10 * len(self.effect.request.messages), 5)
        return Reply(AssistantMessage(parts), finish, usage)

    @property
    def text(self) -> TextPart:
        """Text that no other reply of the run has."""
        return TextPart(f"Reply {self.effect.id}.")

    def _call_id(self) -> str:
        chosen = self.choices.pick(IDS)
        return chosen if chosen != "own" else f"call_{self.effect.id}_{len(self.choices.taken)}"


def answered_by_a_model(effect: CallModel, choices: Choices) -> Reply:
    """Return what a model answers.

    Raises:
        Exception: it could not be asked.
    """
    asked = Asked(effect, choices)
    forced = effect.request.tool_choice.mode == "tool" and len(effect.request.tools) == 1
    return choices.pick(FORCED if forced else MOVES)(asked)


def unanswered_calls(tools: tuple[ToolSpec, ...], choices: Choices) -> AssistantMessage:
    """Return what a model said before the run: calls that nobody has answered yet."""
    able = [one for one in tools if one.kind != "provider"]
    picked = [choices.pick(able) for _ in range(1 + choices.draw(2))] if able else []
    return AssistantMessage(
        tuple(
            [
                ToolCall(f"before_{place}", one.name, fitting(one.parameters, choices))
                for place, one in enumerate(picked)
            ]
        )
    )


def _done(asked: Asked) -> Reply:
    return asked.said(asked.text, finish=FinishReason.STOP)


def _one(asked: Asked) -> Reply:
    return asked.said(asked.call(), finish=asked.choices.pick(CALLING))


def _some(asked: Asked) -> Reply:
    calls = [asked.call() for _ in range(2 + asked.choices.draw(3))]
    return asked.said(asked.text, *calls, finish=asked.choices.pick(CALLING))


def _strange(asked: Asked) -> Reply:
    calls = [asked.stranger() for _ in range(1 + asked.choices.draw(2))]
    return asked.said(*calls, asked.call(), finish=FinishReason.TOOL_CALLS)


def _stranger(asked: Asked) -> Reply:
    return asked.said(asked.stranger(), finish=FinishReason.TOOL_CALLS)


def _storm(asked: Asked) -> Reply:
    call = asked.call()
    calls = [call] * (5 + asked.choices.draw(STORM_MAX - 4))
    return asked.said(asked.text, *calls, finish=FinishReason.TOOL_CALLS)


def _empty(asked: Asked) -> Reply:
    parts = asked.choices.pick(((), (TextPart(" "),)))
    return asked.said(*parts, finish=FinishReason.STOP)


def _paused(asked: Asked) -> Reply:
    parts: tuple[AssistantPart, ...] = asked.choices.pick(
        ((OpaquePart("{}"),), (), (asked.text, asked.call()))
    )
    return asked.said(*parts, finish=FinishReason.PAUSE)


def _cut(asked: Asked) -> Reply:
    finish, cut = asked.choices.pick(CUT), asked.call()
    call = ToolCall(cut.id, cut.name, cut.arguments[: len(cut.arguments) // 2])
    parts = asked.choices.pick(((asked.text, call), (asked.text,), (asked.call(), call)))
    return asked.said(*parts, finish=finish)


def _refused(asked: Asked) -> Reply:
    parts = asked.choices.pick(((asked.text,), (), (asked.text, asked.call())))
    return asked.said(*parts, finish=asked.choices.pick(REFUSING))


def _listed(asked: Asked) -> Reply:
    """Answer in a form that some nodes read."""
    items = [f"item {at}" for at in range(1 + asked.choices.draw(3))]
    text = asked.choices.pick((dumps(items), "\n".join(items), dumps({"answer": items[0]})))
    return asked.said(TextPart(text), finish=FinishReason.STOP)


def _failed(asked: Asked) -> Reply:
    raise asked.choices.pick(FAILURES)("the adversary")


Move: TypeAlias = Callable[[Asked], Reply]

MOVES: Final[tuple[Move, ...]] = (
    *(_done, _one, _some, _stranger, _strange, _storm),
    *(_empty, _paused, _cut, _refused, _listed, _failed),
    *(_one, _one, _some, _done, _listed, _one),
)
"""What a model does when it may do what it likes; the common things stand here more than once."""

FORCED: Final[tuple[Move, ...]] = (
    *(_one, _done, _some, _stranger, _cut, _refused, _empty, _failed),
    *(_one, _one, _one, _one, _one, _one),
)
"""What a model does that has to answer through one tool."""
