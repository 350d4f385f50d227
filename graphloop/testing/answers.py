"""Answers: each call of the model is answered by its true end.

A message joins the conversation and the run's record, or neither. A call's result is the answer of
its tool or child run. Where neither has answered, the result is what the turn holds, or a reason:
never a success. A failure stays one when a node shortens the past. An assistant message is the
turn's reply, or the answer of an agent that takes over. Each queued message is read once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar, final

from ..effects import AskHuman, CallModel, CallTool, Effect, StartRun
from ..events import (
    CallbackReturned,
    Cancelled,
    Changes,
    ChildEnded,
    Decided,
    EffectFailed,
    ModelReplied,
    Queued,
    Started,
    Steered,
    ToolReturned,
)
from ..node_protocol import unwrapped
from ..nodes import Execute
from ..values import (
    AssistantMessage,
    FinishReason,
    Message,
    ResultStatus,
    ToolResult,
    UserPart,
    call_key,
    call_place,
)
from .subject import Subject
from .trace import Move, Trace, TraceStep, new_in
from .violation import Violation

__all__ = ["lost_calls", "untrue_additions"]

S = TypeVar("S")
Content: TypeAlias = str | tuple[UserPart, ...]

SHORT: Final = 40
REFUSED: Final = frozenset({"deny", "invalid", "unknown"})
"""Verdicts of a gate on calls that do not run."""
CALLING: Final = frozenset({FinishReason.TOOL_CALLS, FinishReason.STOP, FinishReason.STOP_SEQUENCE})
"""Finish reasons of replies whose calls count, whatever a table does with the others."""


def lost_calls(subject: Subject[S], trace: Trace[S]) -> Iterator[Violation]:
    """Yield the first reply whose calls are not in the history before the next request."""
    nodes = subject.graph.nodes
    owed: AssistantMessage | None = None
    since = known = 0
    for number, step in enumerate(trace.steps, 1):
        match step.event:
            case ModelReplied(reply=reply) if nodes[step.node].kind == "model":
                if reply.message.calls and reply.finish_reason in CALLING:
                    owed, since = reply.message, known
            case Steered(messages=messages) if messages is not None:
                owed = None  # Its caller has replaced the conversation.
            case _:
                pass
        added, known = step.run.record.added, len(step.run.record.added)
        asks = any(isinstance(effect, CallModel) for effect in step.effects)
        if owed is None or not (step.run.ended or (asks and nodes[step.run.node].kind == "model")):
            continue
        if owed not in added[since:]:
            names = ", ".join(dict.fromkeys(repr(call.name) for call in owed.calls))
            text = f"{len(owed.calls)} call(s) of {names} are not answered in the history"
            yield Violation("answers", text, number)
            return
        owed = None


def untrue_additions(trace: Trace[S]) -> Iterator[Violation]:
    """Yield each addition of a node that did not happen, or that one of the records lacks."""
    ledger, heard = _Ledger(), 0
    for move in trace.moves:
        for step in trace.steps[heard : move.number]:
            ledger.hear(step)
        heard, by = move.number, f"node {move.node.name!r}"
        sent = new_in(move.run.messages, move.before.messages)
        added = new_in(move.run.record.added, move.before.record.added)
        if sent is not None and added is not None and ledger.own(sent) != ledger.own(added):
            text = f"{by} adds other messages to the conversation than to the record"
            yield Violation("history", text, move.number)
        problems = [
            *ledger.in_turn(move),
            *ledger.in_records(move, (*(sent or ()), *(added or ()))),
        ]
        if sent is None:
            problems += ledger.in_the_past(move)
        for text in dict.fromkeys(problems):
            yield Violation("answers", f"{text}, by {by}", move.number)
    yield from _unread(trace)


def _unread(trace: Trace[S]) -> Iterator[Violation]:
    """Yield each queued message that was not read once, and does not wait."""
    queued = Counter([step.event.message for step in trace.steps if isinstance(step.event, Queued)])
    if queued and (run := trace.run):
        known = Counter[object]([*run.record.added, *run.inbox.steering, *run.inbox.follow_ups])
        for message, times in queued.items():
            if known[message] != times:
                text = f"{message.content!r} was queued {times} time(s), and read {known[message]}"
                yield Violation("history", text, len(trace.steps))


@final
@dataclass(frozen=True, slots=True)
class _End:
    """The end of a call; a `content` of None may be put in any words."""

    status: ResultStatus
    content: Content | None = None

    def fits(self, result: ToolResult) -> bool:
        """Whether a result tells of this end."""
        if self.content is not None:
            return (self.status, self.content) == (result.status, result.content)
        # A tool that failed does not say how.
        return result.status == self.status or (self.status == "error" and result.status != "ok")

    def __str__(self) -> str:
        if self.content is None:
            return self.status
        words = repr(self.content)
        return f"{self.status} {words if len(words) <= SHORT else f'{words[: SHORT - 1]}…'}"


@final
@dataclass
class _Ledger:
    """The end of each call, by its key and by its tool, and the messages that callers brought."""

    ends: dict[str, _End] = field(default_factory=dict[str, _End])
    by_tool: set[tuple[str, Content]] = field(default_factory=set[tuple[str, Content]])
    brought: set[Message] = field(default_factory=set[Message])
    denied: set[str] = field(default_factory=set[str])
    pending: Mapping[int, Effect] = field(default_factory=dict[int, Effect])

    def hear(self, step: TraceStep[Any]) -> None:
        """Keep what an event says of a call, and the messages that a caller brings."""
        pending, self.pending = self.pending, step.run.pending
        match step.event, step.answered:
            case Cancelled(after_step=False, unbegun=unbegun), _:
                for effect in pending.values():
                    if isinstance(effect, CallTool | StartRun) and effect.id not in unbegun:
                        self.ends[effect.key] = _End("unknown")
            case ToolReturned(status=status, content=content), CallTool(key=key, call=call):
                # That a tool may have run, a driver says in its own words, perhaps after a person.
                self.ends[key] = _End(status, None if status == "unknown" else content)
                self.by_tool.add((call.name, content))
            case ChildEnded(status=status, content=content), StartRun(key=key, agent=agent):
                self.ends[key] = _End(status, content)
                self.by_tool.add((agent, content))
            case EffectFailed(), CallTool(key=key) | StartRun(key=key):
                self.ends[key] = _End("error")
            case Decided(approved=False), AskHuman(key=key):
                self.denied.add(key)
            case Steered(messages=messages, append=append, results=results), _:
                self.brought.update((*(messages or ()), *append, *results))
            case (
                (Started(messages=messages) | CallbackReturned(answer=Changes(messages=messages))),
                _,
            ):
                self.brought.update(messages or ())
            case _:
                pass

    def own(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the messages that no caller brought."""
        return tuple([message for message in messages if message not in self.brought])

    def in_turn(self, move: Move[S]) -> Iterator[str]:
        """Yield the untrue results that a turn has got."""
        before, turn = move.before.turn, move.run.turn
        if turn.results is before.results:
            return
        same = (before.number, before.calls) == (turn.number, turn.calls) and before.results
        olds = before.results if same else (None,) * len(turn.results)
        for place, (result, old) in enumerate(zip(turn.results, olds, strict=True)):
            if result is None or result == old or result in self.brought:
                continue
            key = call_key(turn.number, place)
            text, end = _text(key, result), self.ends.get(key)
            if old is not None and old not in self.brought:
                yield f"{text}, and {_end(old)} stood there before"
            if end is not None and not end.fits(result):
                yield f"{text}, and {end} came of it"
            elif end is None and result.status == "ok" and (why := self._why_not(move, key)):
                yield f"{text}, and {why}"

    def in_records(self, move: Move[S], new: Sequence[Message]) -> Iterator[str]:
        """Yield the untrue messages that the records have got."""
        turn = move.before.turn
        reply = None if turn.reply is None else turn.reply.message
        results = {result.key: result for result in turn.results if result is not None}
        # The answer of an agent that takes over is the run's answer, too.
        texts = [result.text for result in results.values()]
        for message in self.own(new):
            if isinstance(message, ToolResult):
                yield from self._recorded(message, results.get(message.key))
            elif (
                isinstance(message, AssistantMessage)
                and message != reply
                and message.text not in texts
            ):
                yield f"{message.text!r:.{SHORT}} is told in a model's name, and none has said it"

    def in_the_past(self, move: Move[S]) -> Iterator[str]:
        """Yield the failures that read as successes in a conversation that was rewritten."""
        olds = {old.key: old for old in move.before.messages if isinstance(old, ToolResult)}
        for message in self.own(move.run.messages):
            if isinstance(message, ToolResult) and message.status == "ok":
                old, end = olds.get(message.key), self.ends.get(message.key)
                fits = end is not None and end.fits(message)
                if old is not None and old.status != "ok" and not fits:
                    yield f"{_text(message.key, message)}, and {_end(old)} stood there before"

    def _recorded(self, result: ToolResult, in_turn: ToolResult | None) -> Iterator[str]:
        end, text = self.ends.get(result.key), _text(result.key, result)
        if in_turn is not None:
            if in_turn != result:
                yield f"{text}, and its turn has {_end(in_turn)}"
        elif result.status == "ok":
            # A result without a key belongs to any call of its tool.
            known = not result.key and (result.name, result.content) in self.by_tool
            if not (known if end is None else end.fits(result)):
                yield f"{text}, and {end or 'nothing'} came of it"

    def _why_not(self, move: Move[S], key: str) -> str:
        """Return why a call without an end cannot have gone well; empty if it can."""
        if key in self.denied:
            return "a person has refused it"
        place, number = call_place(key), move.run.turn.number
        turns = [turn for turn in (move.before.turn, move.run.turn) if turn.number == number]
        verdicts = [turn.verdicts[place] for turn in turns if place < len(turn.verdicts)]
        if any(verdict is not None and verdict.kind in REFUSED for verdict in verdicts):
            return "the gate has refused it"
        # A node of the user's own may answer in a tool's place, from a cache for example.
        runs = any(isinstance(node, Execute) for node in unwrapped([move.node]))
        return "nothing has run it" if runs else ""


def _end(result: ToolResult) -> _End:
    return _End(result.status, result.content)


def _text(key: str, result: ToolResult) -> str:
    return f"call {key or '?'} of {result.name!r} is answered with {_end(result)}"
