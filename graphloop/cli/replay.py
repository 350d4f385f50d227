"""Print the events of a run; no model is asked, and no tool runs.

  graphloop replay 1f3a2b4c --store runs.db
  graphloop replay 1f3a2b4c --upto 4 --store runs.db
  graphloop replay 1f3a2b4c --target examples/approval --json --store runs

If the run's target is known (from a database or --target; it is executed), calls have names, denied
calls have the rule or person that denied them, and the state after the last event is printed.
--json prints the events as lines of a JSON journal, then the state.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Final, TypeAlias

import typer
from msgspec import to_builtins
from pydantic_core import to_jsonable_python

from ..agent import Graph
from ..effects import AskHuman, CallModel, CallTool, Effect, Invoke, StartRun
from ..errors import GraphloopError
from ..events import (
    AnswerChecked,
    BranchesJoined,
    CallbackAnswer,
    CallbackReturned,
    CallCheck,
    CallsChecked,
    Cancelled,
    Changes,
    ChildEnded,
    EffectFailed,
    EffectsStarted,
    Event,
    ItemsListed,
    ModelReplied,
    NodeReturned,
    RequestYielded,
    Started,
    StopRequested,
    ToolAsked,
    ToolReturned,
)
from ..questions import pending_of
from ..replay import JudgedCall, judged_steps
from ..run import Run
from ..stores import Codec, typed
from ..values import (
    AssistantMessage,
    SystemMessage,
    ToolResult,
    UserMessage,
)
from .display import ask_text, state_text, tokens_text
from .errors import Status, tell_error
from .modules import register
from .options import Json, Registers, RunId, StorePath, TargetOption
from .stored import Journal, read
from .text import call_text, content_text, counted, one_line, safe_json, time_text, wrapped

__all__ = ["event_lines", "replay_command"]

TEXT_MAX: Final = 200
DENIED: Final = {"deny", "invalid", "unknown"}
"""Verdicts after which a call does not run."""

APART: Final = {"type", "at", "effect", "spent"}
"""The fields of an event that are printed in columns of their own, or as a number of tokens."""

SPENDING: Final = (Cancelled, ChildEnded, EffectFailed, ToolAsked, ToolReturned)
"""The events that hold what others have spent; `EffectsStarted` has a line of its own."""

Upto: TypeAlias = Annotated[int | None, typer.Option(metavar="N", help="Stop after this event.")]


def replay_command(
    run: RunId,
    *,
    store: StorePath = None,
    target: TargetOption = None,
    upto: Upto = None,
    registers: Registers = None,
    as_json: Json = False,
) -> Status:
    """Print a run's journal and, if its graph is known, its state."""
    register(registers)
    journal = asyncio.run(read(store, run))
    if upto is not None:
        journal.check_number("--upto", upto)
    events = journal.events[:upto]
    known = _replay_known(journal, target, len(events))
    lines = _json_lines(events, known) if as_json else _text_lines(events, known)
    for line in lines:
        text = safe_json(line) if as_json else wrapped(line, sys.stdout)
        sys.stdout.write(f"{text}\n")
    return Status.OK


@dataclass(frozen=True)
class _Known:
    """The result of a replay: the run, its effects by id, and denied calls by event number."""

    run: Run[None]
    effects: Mapping[int, Effect]
    denials: Mapping[int, tuple[JudgedCall, ...]]


def _replay_known(journal: Journal, target: str | None, number: int) -> _Known | None:
    """Replay the first `number` events of a journal on its graph; None if no target is known.

    If a target from the store cannot be loaded, print a message and return None. An error of a
    `--target` is raised.
    """
    if not (target or journal.start):
        return None
    try:
        return _replay_graph(journal.graph(target), journal.events[:number])
    except GraphloopError as error:
        if target:
            raise
        tell_error(f"the state is not shown: {error}")
        return None


def _replay_graph(graph: Graph[None], events: Sequence[Event]) -> _Known:
    steps = list(judged_steps(graph, typed(graph, events)))
    effects = {effect.id: effect for step, _ in steps for effect in step.effects}
    denials = {
        seq: tuple([call for call in judged if call.verdict.kind in DENIED])
        for seq, (_, judged) in enumerate(steps, 1)
    }
    return _Known(steps[-1][0].run, effects, denials)


def event_lines(
    events: Sequence[Event], after: int, graph: Graph[None] | None, *, as_json: bool
) -> Iterator[str]:
    """Yield the lines of the events that follow number `after`; a `graph` names their effects."""
    if as_json:
        yield from map(safe_json, islice(_json_lines(events, None), after, None))
        return
    known = None
    if graph is not None:
        with suppress(GraphloopError):  # The code has changed: its graph names nothing.
            known = _replay_graph(graph, events)
    for line in _event_lines(events, known, after):
        yield wrapped(line, sys.stdout)


def _json_lines(events: Sequence[Event], known: _Known | None) -> Iterator[str]:
    """Yield the events as JSON lines of a journal, then a JSON line with the run's state."""
    codec = Codec()
    for seq, event in enumerate(events, 1):
        yield codec.encode(seq, event).decode()
    if known is not None:
        run = known.run
        ending = run.ending if run.ended else None
        state = {
            "seq": run.seq,
            "node": run.node,
            "end_reason": ending.reason if ending is not None else None,
            "steps": len(run.record.steps),
            "messages": len(run.messages),
            "total_tokens": run.spent.usage.total_tokens,
            "pending": [pending.key for pending in pending_of(run, {}, None)],
            "denied": [
                {
                    "event": seq,
                    "key": key,
                    "tool": call.name,
                    "by": verdict.by,
                    "reason": verdict.reason,
                }
                for seq, calls in known.denials.items()
                for key, call, verdict in calls
            ],
            "value": to_jsonable_python(run.state, fallback=repr),
        }
        yield json.dumps({"state": state}, ensure_ascii=False)


def _text_lines(events: Sequence[Event], known: _Known | None) -> Iterator[str]:
    yield from _event_lines(events, known, 0)
    if known is not None:
        yield ""
        yield from _state_lines(known.run)


def _event_lines(events: Sequence[Event], known: _Known | None, after: int) -> Iterator[str]:
    """Yield the lines of the events that follow number `after`, and of the calls denied there."""
    effects: Mapping[int, Effect] = {} if known is None else known.effects
    digits = len(str(len(events)))
    width = max(len(type(event).__name__) for event in events)
    for seq, event in islice(enumerate(events, 1), after, None):
        kind = type(event).__name__
        text = one_line(_event_text(event, effects), TEXT_MAX)
        start = f"{seq:{digits}}  {time_text(event.at)}"
        yield f"{start}  {kind:{width}}  {text}".rstrip()
        for key, call, verdict in () if known is None else known.denials[seq]:
            reason = one_line(verdict.reason, TEXT_MAX)
            by = f" by {verdict.by}" if verdict.by else ""
            yield f"{'':{len(start)}}  {key} {one_line(call.name, TEXT_MAX)} denied{by}: {reason}"


def _event_text(event: Event, effects: Mapping[int, Effect]) -> str:
    """Return a text for an event: the effect that the event answers, and the event's fields."""
    match event:
        case Started():
            prompts = [prompt for prompt in event.messages if isinstance(prompt, UserMessage)]
            prompt = f": {content_text(prompts[-1].content)}" if prompts else ""
            return f"{event.graph}, {event.setup.model}{prompt}"
        case ModelReplied():
            facts = f"{event.reply.finish_reason}, {event.reply.usage.total_tokens:,} tokens"
            checks = ", ".join(map(_check_text, event.checks))
            return " · ".join(filter(None, [_message_text(event.reply.message), facts, checks]))
        case EffectsStarted():
            return ", ".join(_effect_text(effect, effects) for effect in event.effects)
        case CallsChecked():
            return ", ".join(map(_check_text, event.checks))
        case CallbackReturned():
            return f"{_effect_text(event.effect, effects)} {_answer_text(event.answer)}"
        case _:
            answered: int | None = getattr(event, "effect", None)
            name = "" if answered is None else f"{_effect_text(answered, effects)} "
            fields: dict[str, object] = to_builtins(event, enc_hook=repr)
            if isinstance(event, ToolReturned):
                fields["content"] = content_text(event.content)
            text = name + ", ".join(
                f"{key}={value if isinstance(value, str) else json.dumps(value)}"
                for key, value in fields.items()
                if key not in APART and value not in (None, "", ())
            )
            tokens = event.spent.usage.total_tokens if isinstance(event, SPENDING) else 0
            return f"{text} · {tokens:,} tokens" if tokens else text


def _answer_text(answer: CallbackAnswer) -> str:
    """Return what a user's function answered, in words."""
    match answer:
        case AnswerChecked(accepted=True):
            text = "accepted"
        case AnswerChecked(feedback=feedback):
            text = f"not accepted: {feedback}" if feedback else "not accepted"
        case StopRequested(names=names):
            text = f"stops the run: {', '.join(names)}" if names else "lets the run go on"
        case NodeReturned(outcome=outcome, fields=fields):
            text = f"leaves by {outcome} {fields}".rstrip()
        case RequestYielded():
            text = f"asks: {json.dumps(to_builtins(answer.ask, enc_hook=repr))}"
        case ItemsListed(items=items):
            text = f"lists {counted(len(items), 'item')}"
        case BranchesJoined(text=text):
            text = f"joins the answers: {text}"
        case Changes():
            changed: dict[str, object] = to_builtins(answer, enc_hook=repr)
            named = [name for name, value in changed.items() if value and name != "kind"]
            text = f"changes {', '.join(named)}" if named else "changes nothing"
    return text


def _check_text(check: CallCheck) -> str:
    asks = ["needs approval"] if check.needs_approval else []
    met = [f"`{name}` holds" for names in check.met for name in names]
    return check.problem or " and ".join(asks + met) or "arguments fit"


def _effect_text(effect: int, effects: Mapping[int, Effect]) -> str:
    """Return the key and name of the effect with this id; the id alone if it is unknown."""
    match effects.get(effect):
        case CallTool() | AskHuman() as asked:
            return f"{asked.key} {asked.call.name}"
        case StartRun() as started:
            return f"{started.key} {started.agent}"
        case Invoke() as invoked:
            return invoked.callback
        case CallModel() as asked:
            return asked.model
        case _:
            return f"effect {effect}"


def _state_lines(run: Run[None]) -> Iterator[str]:
    ending = run.ending if run.ended else None
    facts = [
        f"at {run.node}" if ending is None else f"ended, {ending.reason}",
        counted(len(run.record.steps), "step"),
        counted(len(run.messages), "message"),
        tokens_text(run.spent.told_usage),
    ]
    yield f"after event {run.seq}: {' · '.join(facts)}"
    if state := state_text(run):
        yield f"  {state}"
    for pending in pending_of(run, {}, None):
        yield f"  waits for {pending.key}: {ask_text(pending)}"
    for effect in run.pending.values():
        if isinstance(effect, StartRun):
            yield f"  waits for {effect.key}: agent {effect.agent}, run {run.id}/{effect.key}"
    for message in run.messages:
        if not isinstance(message, SystemMessage):
            yield f"  {message.role}: {one_line(_message_text(message), TEXT_MAX)}"


def _message_text(message: UserMessage | AssistantMessage | ToolResult) -> str:
    match message:
        case AssistantMessage():
            calls = [f"→ {call_text(call.name, call.arguments)}" for call in message.calls]
            media = [f"[{part.label}]" for part in message.media]
            return " ".join(filter(None, (message.text, *media, *calls)))
        case ToolResult() | UserMessage():
            return content_text(message.content)
