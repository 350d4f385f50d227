"""sequence: who told whom what in one run, in order: you, the loop, models, tools, people, agents.

Owns what is said; the notations are `sequence_mermaid` and `sequence_text`. All of it is replayed
from the run's journal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar, assert_never, final

from ..effects import (
    AskHuman,
    CallModel,
    CallTool,
    CheckCalls,
    Effect,
    HandOver,
    Invoke,
    StartRun,
)
from ..events import (
    Answer,
    Asked,
    Begun,
    CallbackReturned,
    Cancelled,
    ChildEnded,
    Decided,
    EffectFailed,
    Event,
    Judged,
    Left,
    ModelReplied,
    Queued,
    Resumed,
    Started,
    Steered,
    ToolReturned,
    Tripped,
)
from ..graph import Graph
from ..latest_answer import latest_answer
from ..replay import replay_steps
from ..run import Run
from ..values import Message, Reply, UserMessage, UserPart

__all__ = ["Party", "Said", "sequence"]

S = TypeVar("S")

PartyKind: TypeAlias = Literal["you", "loop", "model", "tool", "person", "agent", "function"]

LONG: Final = 120
"""How much of a text is told."""


@final
@dataclass(frozen=True, slots=True)
class Party:
    """Somebody, or something, that takes part in a run."""

    kind: PartyKind
    name: str


@final
@dataclass(frozen=True, slots=True)
class Said:
    """One thing said, at a time in seconds since the run began; an answer if it `answers`."""

    at: float
    source: Party
    target: Party
    words: str
    answers: bool = False


YOU: Final = Party("you", "you")
PERSON: Final = Party("person", "person")


def sequence(graph: Graph[S], events: Sequence[Event]) -> tuple[Said, ...]:
    """Return all that was said in the run of a journal.

    Raises:
        StoreError: the journal does not begin with `Started`, or is of another graph.
        IllegalEvent: an event does not fit the graph.
    """
    return tuple(_sequence(graph, events))


def _sequence(graph: Graph[S], events: Sequence[Event]) -> Iterator[Said]:
    loop = Party("loop", graph.name)
    before: Run[S] | None = None
    for step in replay_steps(graph, events):
        run, event = step.run, step.event
        at = run.at - run.record.started_at
        effect = None if before is None else before.pending.get(getattr(event, "effect", 0))
        if isinstance(effect, CheckCalls):
            pass  # What is checked stays within the process.
        elif effect is not None:
            yield Said(at, _party(effect), loop, _short(_answered(event)), answers=True)
        else:
            words = _aside(event)
            if words:
                yield Said(at, YOU, loop, _short(words))
        for wish in step.effects:
            if not isinstance(wish, CheckCalls):
                yield Said(at, loop, _party(wish), _short(_wished(wish)))
        if run.ended:
            yield Said(at, loop, YOU, _short(_ending(run)), answers=True)
        before = run


def _party(effect: Effect) -> Party:  # noqa: PLR0911 - one way out for each wish
    match effect:
        case CallModel(model=model):
            return Party("model", model or "model")
        case CallTool(call=call):
            return Party("tool", call.name)
        case AskHuman():
            return PERSON
        case StartRun(agent=agent):
            return Party("agent", agent)
        case Invoke(callback=callback):
            return Party("function", callback)
        case CheckCalls():
            return Party("function", "checks")
        case HandOver():
            return YOU
        case _:
            assert_never(effect)


def _wished(effect: Effect) -> str:
    match effect:
        case CallModel(request=request):
            count = len(request.messages)
            return f"{count} message{'' if count == 1 else 's'}"
        case CallTool(call=call):
            return call.arguments or "{}"
        case AskHuman(call=call):
            again = " once more" if effect.unknown else ""
            return f"may {call.name} run{again}? {call.arguments}"
        case StartRun(arguments=arguments):
            return arguments or "go on from here"
        case Invoke():
            return "called"
        case CheckCalls() | HandOver():
            return "look"
        case _:
            assert_never(effect)


def _answered(event: Event) -> str:  # noqa: PLR0911 - one way out for each event
    match event:
        case ModelReplied(reply=reply):
            return _reply(reply)
        case ToolReturned(content=content, status=status):
            return f"{status}: {_content(content)}"
        case Decided(approved=approved, reason=reason):
            verdict = "approved" if approved else "denied"
            edited = ", with other arguments" if event.arguments else ""
            return f"{verdict}{edited}{': ' if reason else ''}{reason}"
        case ChildEnded(content=content, status=status):
            return f"{status}: {content}"
        case CallbackReturned(answer=answer):
            return _returned(answer)
        case EffectFailed(failure=failure):
            return f"failed: {failure.error}: {failure.message}"
        case Steered():
            return "go on"
        case _:
            return type(event).__name__


def _aside(event: Event) -> str:
    """Return what an event says that answers nothing; nothing for what is of no interest."""
    match event:
        case Started(messages=messages):
            return _last(messages)
        case Queued(message=message):
            return f"meanwhile: {_message(message)}"
        case Cancelled(reason=reason):
            return f"stop{': ' if reason else ''}{reason}"
        case Resumed():
            return "go on"
        case Begun():
            return ""
        case _:
            return type(event).__name__


def _returned(answer: Answer) -> str:
    match answer:
        case Left(outcome=outcome):
            return outcome
        case Judged(accepted=accepted, feedback=feedback):
            return "accepted" if accepted else f"rejected: {feedback}"
        case Asked(ask=ask):
            return f"ask: {ask.kind}"
        case Tripped(names=names):
            return f"stop: {', '.join(names)}" if names else "go on"
        case _:
            return "answered"


def _reply(reply: Reply) -> str:
    calls = [f"{one.name}({one.arguments})" for one in reply.message.calls]
    said = [one for one in (reply.message.text, *(f"call {one}" for one in calls)) if one]
    return "; ".join(said) or f"nothing ({reply.finish_reason})"


def _last(messages: Sequence[Message]) -> str:
    asked = [one for one in messages if isinstance(one, UserMessage)]
    return _message(asked[-1]) if asked else "begin"


def _message(message: UserMessage) -> str:
    return _content(message.content)


def _content(content: str | tuple[UserPart, ...]) -> str:
    return content if isinstance(content, str) else f"[{len(content)} parts]"


def _ending(run: Run[S]) -> str:
    reason = run.ending.reason if run.ending is not None else "over"
    text = latest_answer(run)
    return f"{reason}: {text}" if text else str(reason)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONG else f"{line[: LONG - 1]}…"
