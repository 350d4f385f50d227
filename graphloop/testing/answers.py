"""Answers: whether each call of the model is answered, by what came of it.

A message that joins the conversation joins the run's record as well. The result of a call is the
answer of its tool or child run. Where neither has answered, it is what the turn holds, or a
reason: never a success. A failure stays one when a node shortens the past. An assistant message is
the turn's reply, or the answer of an agent that takes over. Each queued message is read once.
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
from ..turn import Turn
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
from .trace import Move, Trace, TraceStep, moves, new_in
from .violation import Violation

__all__ = ["lost_calls", "untrue_additions"]

S = TypeVar("S")
Content: TypeAlias = str | tuple[UserPart, ...]

SHORT: Final = 40
NAMES_MAX: Final = 4
REFUSED: Final = frozenset({"deny", "invalid", "unknown"})
"""Verdicts of a gate on calls that do not run."""
CALLING: Final = frozenset({FinishReason.TOOL_CALLS, FinishReason.STOP, FinishReason.STOP_SEQUENCE})
"""Finish reasons of replies whose calls count, whatever a table does with the others."""


def lost_calls(subject: Subject[S], trace: Trace[S]) -> Iterator[Violation]:
    """Yield each reply with calls that the history lacks when the next one is asked for."""
    owed: AssistantMessage | None = None
    since = known = 0
    for number, one in enumerate(trace.steps, 1):
        match one.event:
            case ModelReplied(reply=reply) if subject.graph.nodes[one.node].kind == "model":
                if reply.message.calls and reply.finish_reason in CALLING:
                    owed, since = reply.message, known
            case Steered(messages=messages) if messages is not None:
                owed = None  # Its caller has replaced the conversation.
            case _:
                pass
        added, known = one.run.record.added, len(one.run.record.added)
        asks = any(isinstance(effect, CallModel) for effect in one.effects)
        of_a_model = asks and subject.graph.nodes[one.run.node].kind == "model"
        if owed is None or not (of_a_model or one.run.ended):
            continue
        if owed not in added[since:]:
            more = len(owed.calls) - NAMES_MAX
            names = ", ".join(repr(call.name) for call in owed.calls[:NAMES_MAX])
            lost = f"calls of {names}{f' and {more} more' if more > 0 else ''} are not answered"
            yield Violation("answers", f"{lost} in the history", number)
            return
        owed = None


def untrue_additions(subject: Subject[S], trace: Trace[S]) -> Iterator[Violation]:
    """Yield each addition of a node that did not happen, or that one of the records lacks."""
    ledger, heard = _Ledger(), 0
    for move in moves(subject, trace):
        for one in trace.steps[heard : move.number]:
            ledger.hear(one)
        heard = move.number
        sent = new_in(move.run.messages, move.before.messages)
        added = new_in(move.run.record.added, move.before.record.added)
        by = f"node {move.node.name!r}"
        if sent is not None and added is not None and ledger.own(sent) != ledger.own(added):
            found = f"{by} adds other messages to the conversation than to what the run has added"
            yield Violation("history", found, move.number)
        problems = [
            *ledger.in_turn(move),
            *ledger.in_records(move, (*(sent or ()), *(added or ()))),
        ]
        if sent is None:
            problems += ledger.in_the_past(move)
        for problem in dict.fromkeys(problems):
            yield Violation("answers", f"{problem}, by {by}", move.number)
    yield from _unread(trace)


def _unread(trace: Trace[S]) -> Iterator[Violation]:
    """Yield each queued message that was not read once, and does not wait."""
    said = Counter([one.event.message for one in trace.steps if isinstance(one.event, Queued)])
    run = trace.run
    known = Counter[object]()
    if said and run:
        known.update([*run.record.added, *run.inbox.steering, *run.inbox.follow_ups])
    for message, times in said.items():
        if known[message] != times:
            found = f"{message.content!r} was said {times} time(s), and read {known[message]}"
            yield Violation("history", found, len(trace.steps))


@final
@dataclass(frozen=True, slots=True)
class _Came:
    """The end of a call; a `content` of None may be told in any words."""

    status: ResultStatus
    content: Content | None = None

    def fits(self, result: ToolResult) -> bool:
        """Whether a result tells of it."""
        if self.content is not None:
            return (self.status, self.content) == (result.status, result.content)
        # A tool that failed does not say how.
        return result.status == self.status or (self.status == "error" and result.status != "ok")

    def __str__(self) -> str:
        return self.status if self.content is None else _told(self.status, self.content)


@final
@dataclass
class _Ledger:
    """The end of each call, by its key and by its tool, and the messages that were handed in."""

    came: dict[str, _Came] = field(default_factory=dict[str, _Came])
    by_tool: set[tuple[str, object]] = field(default_factory=set[tuple[str, object]])
    given: set[Message] = field(default_factory=set[Message])
    denied: set[str] = field(default_factory=set[str])
    pending: Mapping[int, Effect] = field(default_factory=dict[int, Effect])

    def hear(self, taken: TraceStep[Any]) -> None:
        """Keep what an event says of a call, and the messages that are handed in."""
        pending, self.pending = self.pending, taken.run.pending
        match taken.event, taken.answered:
            case Cancelled(after_step=False, unbegun=unbegun), _:
                for one in pending.values():
                    if isinstance(one, CallTool | StartRun) and one.id not in unbegun:
                        self._note(one.key, "", _Came("unknown"))
            case ToolReturned(status=status, content=content), CallTool(key=key, call=call):
                # It may have run: a driver says so in its own words, perhaps after a person.
                said = None if status == "unknown" else content
                self._note(key, call.name, _Came(status, said))
            case ChildEnded(status=status, content=content), StartRun(key=key, agent=agent):
                self._note(key, agent, _Came(status, content))
            case EffectFailed(), CallTool(key=key) | StartRun(key=key):
                self._note(key, "", _Came("error"))
            case Decided(approved=False), AskHuman(key=key):
                self.denied.add(key)
            case Steered(messages=messages, append=append, results=results), _:
                self.given.update((*(messages or ()), *append, *results))
            case (
                (Started(messages=messages) | CallbackReturned(answer=Changes(messages=messages))),
                _,
            ):
                self.given.update(messages or ())
            case _:
                pass

    def _note(self, key: str, tool: str, came: _Came) -> None:
        self.came[key] = came
        self.by_tool.add((tool, came.content))

    def own(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the messages that were not handed in."""
        return tuple([one for one in messages if one not in self.given])

    def in_turn(self, move: Move[S]) -> Iterator[str]:
        """Yield the untrue results that a turn has got."""
        for key, result, had in _new_results(move.before.turn, move.run.turn):
            if result in self.given:
                continue
            came, told = self.came.get(key), _answer(key, result)
            if had is not None and had not in self.given:
                yield f"{told}, and {_told(had.status, had.content)} stood there before"
            if came is not None and not came.fits(result):
                yield f"{told}, and {came} came of it"
            elif came is None and result.status == "ok" and (why := self._why_not(move, key)):
                yield f"{told}, and {why}"

    def in_records(self, move: Move[S], new: Sequence[Message]) -> Iterator[str]:
        """Yield the untrue messages that the records have got."""
        turn = move.before.turn
        reply = None if turn.reply is None else turn.reply.message
        held = {one.key: one for one in turn.results if one is not None}
        # The answer of an agent that takes over is the run's answer, too.
        texts = [one.text for one in held.values()]
        for one in self.own(new):
            if isinstance(one, ToolResult):
                yield from self._recorded(one, held.get(one.key))
            elif isinstance(one, AssistantMessage) and one != reply and one.text not in texts:
                yield f"{one.text!r:.{SHORT}} is told in a model's name, and none has said it"

    def in_the_past(self, move: Move[S]) -> Iterator[str]:
        """Yield the failures that read as successes in a conversation that was rewritten."""
        had = {one.key: one for one in move.before.messages if isinstance(one, ToolResult)}
        for one in self.own(move.run.messages):
            if isinstance(one, ToolResult) and one.status == "ok":
                before, came = had.get(one.key), self.came.get(one.key)
                fits = came is not None and came.fits(one)
                if before is not None and before.status != "ok" and not fits:
                    was = _told(before.status, before.content)
                    yield f"{_answer(one.key, one)}, and {was} stood there before"

    def _recorded(self, result: ToolResult, held: ToolResult | None) -> Iterator[str]:
        came, told = self.came.get(result.key), _answer(result.key, result)
        if held is not None:
            if held != result:
                yield f"{told}, and its turn has {_told(held.status, held.content)}"
        elif came is not None:
            if not came.fits(result):
                yield f"{told}, and {came} came of it"
        elif result.status == "ok" and (
            result.key or (result.name, result.content) not in self.by_tool
        ):
            yield f"{told}, and nothing came of it"

    def _why_not(self, move: Move[S], key: str) -> str:
        """Return why a call without an end cannot have gone well; empty if it can."""
        if key in self.denied:
            return "a person has refused it"
        place, number = call_place(key), move.run.turn.number
        turns = [one for one in (move.before.turn, move.run.turn) if one.number == number]
        verdicts = [one.verdicts[place] for one in turns if place < len(one.verdicts)]
        if any(one is not None and one.kind in REFUSED for one in verdicts):
            return "the gate has refused it"
        # A node of the user's own may answer in a tool's place, from a cache for example.
        runs = any(isinstance(one, Execute) for one in unwrapped([move.node]))
        return "nothing has run it" if runs else ""


def _new_results(before: Turn, after: Turn) -> Iterator[tuple[str, ToolResult, ToolResult | None]]:
    """Yield the results that a turn has got, by their keys, with the results before them."""
    if after.results is before.results:
        return
    same = (before.number, before.calls) == (after.number, after.calls)
    had = before.results if same and before.results else (None,) * len(after.results)
    for place, (result, old) in enumerate(zip(after.results, had, strict=True)):
        if result is not None and result != old:
            yield call_key(after.number, place), result, old


def _answer(key: str, result: ToolResult) -> str:
    said = _told(result.status, result.content)
    return f"call {key or '?'} of {result.name!r} is answered with {said}"


def _told(status: ResultStatus, content: Content) -> str:
    said = repr(content)
    return f"{status} {said if len(said) <= SHORT else f'{said[: SHORT - 1]}…'}"
