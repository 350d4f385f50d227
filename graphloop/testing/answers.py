"""Checks that each call of a model gets its true result, and that no message is invented or lost.

A node adds each message to both the conversation and the run's record. The result of a call is the
answer of its tool or child run. A call without such an answer has no successful result. A failure
stays a failure when a node shortens the conversation. Each assistant message is the turn's reply,
or the answer of an agent that takes over. Each queued message is read once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar, final

from ..conversation import BLOCKED_NOTE
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
    Reply,
    ResultStatus,
    ToolResult,
    UserPart,
    call_key,
    call_place,
    evolve,
)
from .subject import Subject
from .trace import Move, Trace, TraceStep, new_in
from .violation import Violation

__all__ = ["lost_calls", "untrue_additions"]

S = TypeVar("S")
Content: TypeAlias = str | tuple[UserPart, ...]

SHORT: Final = 40
REFUSED: Final = frozenset({"deny", "invalid", "unknown"})
"""The verdicts by which a gate keeps a call from running."""
CALLING: Final = frozenset({FinishReason.TOOL_CALLS, FinishReason.STOP, FinishReason.STOP_SEQUENCE})
"""The finish reasons of replies whose calls must all get results in the history."""


def lost_calls(subject: Subject[S], trace: Trace[S]) -> Iterator[Violation]:
    """Yield a violation for the first reply whose calls the record lacks at the next request."""
    nodes = subject.graph.nodes
    owed: AssistantMessage | None = None
    unjudged: Reply | None = None
    since = known = 0
    for number, step in enumerate(trace.steps, 1):
        turn = step.run.turn
        if unjudged is not None and turn.screening is None:
            # A reply that waited for the verdict of a screen counts from then on, or not at all.
            if turn.reply is unjudged and unjudged.message.calls:
                owed, since = unjudged.message, known
            unjudged = None
        match step.event:
            case ModelReplied(reply=reply) if turn.screening is not None:
                unjudged = reply if reply.finish_reason in CALLING else None
            case ModelReplied(reply=reply) if nodes[step.node].kind == "model":
                if reply.message.calls and reply.finish_reason in CALLING:
                    owed, since = reply.message, known
            case Steered(messages=messages) if messages is not None:
                owed = None  # The caller replaced the conversation, and the calls with it.
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
    """Yield a violation for each false message that a node adds, or adds to one record only."""
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
    yield from _unread_messages(trace)


def _unread_messages(trace: Trace[S]) -> Iterator[Violation]:
    """Yield a violation for each queued message that was lost, or was read more than once."""
    queued = Counter([step.event.message for step in trace.steps if isinstance(step.event, Queued)])
    if queued and (run := trace.run):
        known = Counter[object]([*run.record.added, *run.inbox.steering, *run.inbox.follow_ups])
        for message, times in queued.items():
            # A screen may have put its note in place of a message that was read.
            note = evolve(message, content=BLOCKED_NOTE)
            withheld = min(max(0, times - known[message]), known[note])
            known[note] -= withheld
            if known[message] + withheld != times:
                text = f"{message.content!r} was queued {times} time(s), and read {known[message]}"
                yield Violation("history", text, len(trace.steps))


@final
@dataclass(frozen=True, slots=True)
class _End:
    """The status and content with which a call ended; a `content` of None matches any text."""

    status: ResultStatus
    content: Content | None = None

    def fits(self, result: ToolResult) -> bool:
        """Whether a tool result reports this status and content."""
        if self.content is not None:
            return (self.status, self.content) == (result.status, result.content)
        # An `EffectFailed` event fixes no status, so any status but "ok" is a true report.
        return result.status == self.status or (self.status == "error" and result.status != "ok")

    def __str__(self) -> str:
        if self.content is None:
            return self.status
        words = repr(self.content)
        return f"{self.status} {words if len(words) <= SHORT else f'{words[: SHORT - 1]}…'}"


@final
@dataclass
class _Ledger:
    """Collects, event by event, how each call ended and which messages the caller supplied.

    Attributes:
        ends: maps the key of a call to the end of that call.
        by_tool: the name and the answer of each tool or child run that returned.
        brought: the messages that the caller or a function of the user supplied.
        denied: the keys of the calls that a person denied.
        pending: the pending effects after the latest event, by id.
    """

    ends: dict[str, _End] = field(default_factory=dict[str, _End])
    by_tool: set[tuple[str, Content]] = field(default_factory=set[tuple[str, Content]])
    brought: set[Message] = field(default_factory=set[Message])
    denied: set[str] = field(default_factory=set[str])
    pending: Mapping[int, Effect] = field(default_factory=dict[int, Effect])

    def hear(self, step: TraceStep[Any]) -> None:
        """Record the end of a call or the caller's messages from a step's event."""
        pending, self.pending = self.pending, step.run.pending
        match step.event, step.answered:
            case Cancelled(after_step=False, unstarted=unstarted), _:
                for effect in pending.values():
                    if isinstance(effect, CallTool | StartRun) and effect.id not in unstarted:
                        self.ends[effect.key] = _End("unknown")
            case ToolReturned(status=status, content=content), CallTool(key=key, call=call):
                # For an unknown outcome, the driver or a person writes the text: any text is true.
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
        """Return those of the messages that the caller did not supply."""
        return tuple([message for message in messages if message not in self.brought])

    def in_turn(self, move: Move[S]) -> Iterator[str]:
        """Yield a text for each false result that a node's move added to the turn."""
        before, turn = move.before.turn, move.run.turn
        if turn.results is before.results:
            return
        same = (before.number, before.calls) == (turn.number, turn.calls) and before.results
        olds = before.results if same else (None,) * len(turn.results)
        for place, (result, old) in enumerate(zip(turn.results, olds, strict=True)):
            if result is None or result == old or result in self.brought:
                continue
            key = call_key(turn.number, place)
            text, end = _result_text(key, result), self.ends.get(key)
            if old is not None and old not in self.brought:
                yield f"{text}, and {_end_of(old)} stood there before"
            if end is not None and not end.fits(result):
                yield f"{text}, and {end} came of it"
            elif end is None and result.status == "ok" and (why := self._why_not(move, key)):
                yield f"{text}, and {why}"

    def in_records(self, move: Move[S], new: Sequence[Message]) -> Iterator[str]:
        """Yield a text for each false message among those that a move added to a record."""
        turn = move.before.turn
        reply = None if turn.reply is None else turn.reply.message
        results = {result.key: result for result in turn.results if result is not None}
        # An assistant message may repeat the result of an agent that takes over the run.
        texts = [result.text for result in results.values()]
        for message in self.own(new):
            if isinstance(message, ToolResult):
                yield from self._record_faults(message, results.get(message.key))
            elif (
                isinstance(message, AssistantMessage)
                and message != reply
                and message.text not in texts
            ):
                yield f"{message.text!r:.{SHORT}} is told in a model's name, and none has said it"

    def in_the_past(self, move: Move[S]) -> Iterator[str]:
        """Yield a text for each failed result that a rewritten conversation shows as a success."""
        olds = {old.key: old for old in move.before.messages if isinstance(old, ToolResult)}
        for message in self.own(move.run.messages):
            if isinstance(message, ToolResult) and message.status == "ok":
                old, end = olds.get(message.key), self.ends.get(message.key)
                fits = end is not None and end.fits(message)
                if old is not None and old.status != "ok" and not fits:
                    told = _result_text(message.key, message)
                    yield f"{told}, and {_end_of(old)} stood there before"

    def _record_faults(self, result: ToolResult, in_turn: ToolResult | None) -> Iterator[str]:
        end, text = self.ends.get(result.key), _result_text(result.key, result)
        if in_turn is not None:
            if in_turn != result:
                yield f"{text}, and its turn has {_end_of(in_turn)}"
        elif result.status == "ok":
            # A result without a key may belong to any call of its tool.
            known = not result.key and (result.name, result.content) in self.by_tool
            if not (known if end is None else end.fits(result)):
                yield f"{text}, and {end or 'nothing'} came of it"

    def _why_not(self, move: Move[S], key: str) -> str:
        """Return why a call that has no recorded end cannot have succeeded; empty if it can."""
        if key in self.denied:
            return "a person has refused it"
        place, number = call_place(key), move.run.turn.number
        turns = [turn for turn in (move.before.turn, move.run.turn) if turn.number == number]
        verdicts = [turn.verdicts[place] for turn in turns if place < len(turn.verdicts)]
        if any(verdict is not None and verdict.kind in REFUSED for verdict in verdicts):
            return "the gate has refused it"
        # Only an `Execute` needs a tool's answer: a user's node may answer from a cache.
        runs = any(isinstance(node, Execute) for node in unwrapped([move.node]))
        return "nothing has run it" if runs else ""


def _end_of(result: ToolResult) -> _End:
    return _End(result.status, result.content)


def _result_text(key: str, result: ToolResult) -> str:
    return f"call {key or '?'} of {result.name!r} is answered with {_end_of(result)}"
