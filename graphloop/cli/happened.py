"""What happened, event by event, as a line for people: the journal of a run made readable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, assert_never

from ..effects import (
    AskHuman,
    CallModel,
    CallTool,
    Effect,
    Invoke,
    StartRun,
)
from ..events import (
    Answer,
    Asked,
    Begun,
    CallbackReturned,
    CallCheck,
    CallsChecked,
    Cancelled,
    Changes,
    ChildEnded,
    Decided,
    EffectFailed,
    Event,
    Joined,
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
from ..front.graph import Graph
from ..replay import replay_steps
from ..values import TextPart, UserMessage, UserPart
from .lines import call_text, one_line

__all__ = ["effects_of", "happened"]

TEXT_MAX: Final = 200


def effects_of(graph: Graph[None], events: Sequence[Event]) -> dict[int, Effect]:
    """Return all effects that a run has wished for, by their ids; nothing is performed.

    Raises:
        StoreError: the journal is of another graph.
        IllegalEvent: an event does not fit the graph: it has changed since.
    """
    return {effect.id: effect for step in replay_steps(graph, events) for effect in step.effects}


def happened(event: Event, effects: Mapping[int, Effect]) -> str:
    """Return what an event tells; `effects` says what it answers, as far as that is known."""
    match event:
        case Started():
            told = _started(event)
        case ModelReplied():
            told = _replied(event)
        case CallsChecked():
            told = _listed([_check(one) for one in event.checks])
        case Steered() | Resumed() | Begun() | Queued() | Cancelled():
            told = _aside(event, effects)
        case _:
            told = f"{_name(event.effect, effects)} {_answered(event)}"
    return told


def _answered(
    event: ToolReturned | Decided | CallbackReturned | EffectFailed | ChildEnded,
) -> str:
    """Return what came of an effect."""
    match event:
        case ToolReturned():
            how = "" if event.status == "ok" else f"({event.status}) "
            told = f"{how}→ {_content(event.content)}"
        case Decided():
            edit = f", with {event.arguments}" if event.arguments else ""
            reason = f": {event.reason}" if event.reason else ""
            told = f"{'approved' if event.approved else 'denied'}{edit}{reason}"
        case CallbackReturned():
            told = f"→ {_answer(event.answer)}"
        case EffectFailed():
            told = f"failed: {event.failure.error}: {event.failure.message}"
        case ChildEnded():
            told = f"ended ({event.end_reason or event.status}) → {event.content}"
        case _:
            assert_never(event)
    return _short(told)


def _aside(
    event: Steered | Resumed | Begun | Queued | Cancelled, effects: Mapping[int, Effect]
) -> str:
    """Return what an event tells that comes from whoever drives or steers the run."""
    match event:
        case Begun():
            return _listed([_name(one, effects) for one in event.effects])
        case Resumed():
            return "a driver took the run up"
        case Queued():
            when = "once the run would end" if event.follow_up else "in the next turn"
            return f"to be read {when}: {_content(event.message.content)}"
        case Cancelled():
            when = "after this turn" if event.after_step else "at once"
            reason = f": {event.reason}" if event.reason else ""
            return _short(f"{when}{reason}")
        case Steered():
            changes = {
                "the conversation replaced": event.messages is not None,
                f"{len(event.append)} message(s) added": bool(event.append),
                f"{len(event.results)} result(s) given": bool(event.results),
                "settings changed": event.setup is not None,
            }
            return _listed([name for name, made in changes.items() if made]) or "nothing changed"
        case _:
            assert_never(event)


def _started(event: Started) -> str:
    asked = [one for one in (*event.messages, *event.steering) if isinstance(one, UserMessage)]
    said = f": {_content(asked[-1].content)}" if asked else ""
    return f"{event.graph}, {event.setup.model}{said}"


def _replied(event: ModelReplied) -> str:
    message, usage = event.reply.message, event.reply.usage
    text = _short(message.text)
    calls = [f"→ {call_text(one.name, one.arguments)}" for one in message.calls]
    facts = f"{event.reply.finish_reason}, {usage.total_tokens:,} tokens"
    return " · ".join([*([text] if text else []), *calls, facts])


def _check(check: CallCheck) -> str:
    if check.problem:
        return _short(check.problem)
    held = [name for names in check.held for name in names]
    rules = f"{', '.join(held)} held" if held else ""
    asks = "needs approval" if check.needs_approval else ""
    # What a gate says that the run is held to since it was taken up.
    added = [
        f"{one.verdict} {', '.join(one.tools)}" for one in check.added if one.verdict != "allow"
    ]
    return " and ".join(one for one in (asks, rules, *added) if one) or "well formed"


def _answer(answer: Answer) -> str:
    match answer:
        case Changes():
            names = answer.__struct_fields__
            changed = [name for name in names if getattr(answer, name) not in (None, ())]
            return f"changed {_listed(changed)}" if changed else "changed nothing"
        case Tripped():
            return _listed(answer.names) or "go on"
        case Left():
            return f"left by {answer.outcome}"
        case Joined():
            return _short(answer.text)
        case Asked(ask=ask):
            return f"asks: {ask.kind}"
        case Judged():
            verdict = "accepted" if answer.accepted else "rejected"
            return _short(f"{verdict}: {answer.feedback}" if answer.feedback else verdict)
        case _:
            assert_never(answer)


def _name(effect: int, effects: Mapping[int, Effect]) -> str:
    """Return what an event answers, as a reader knows it."""
    match effects.get(effect):
        case CallTool() | AskHuman() as asked:
            name = f"{asked.key} {asked.call.name}"
        case StartRun() as started:
            name = f"{started.key} {started.agent}"
        case Invoke() as invoked:
            name = invoked.callback
        case CallModel() as asked:
            name = asked.model
        case _:
            name = f"effect {effect}"
    return name


def _content(content: str | tuple[UserPart, ...]) -> str:
    if isinstance(content, str):
        return _short(content)
    return _short("".join(one.text if isinstance(one, TextPart) else "[…]" for one in content))


def _short(text: str) -> str:
    return one_line(text, TEXT_MAX)


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(texts)
