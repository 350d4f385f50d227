"""Additions: whether what nodes add to a conversation is what happened.

What is added to the conversation, the run has added, and the other way round. The result of a call
is what its tool returned, or its child run came to; where neither came, or its caller answered in
the tool's place, it is what the turn holds for it, and a reason at least: never a success. So it is
of what a gate or a person has refused, and of what a node keeps of the past that it shortens. What
stands there in a model's name a model or an agent has said, and what a person says meanwhile is
read once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, final

from ..effects import AskHuman, CallTool, Effect, StartRun
from ..events import (
    CallbackReturned,
    Cancelled,
    Changes,
    ChildEnded,
    Decided,
    EffectFailed,
    Queued,
    Started,
    Steered,
    ToolReturned,
)
from ..node_protocol import unwrapped
from ..nodes.execute import Execute
from ..turn import Turn
from ..values import (
    AssistantMessage,
    Message,
    ResultStatus,
    ToolResult,
    UserPart,
    call_key,
    call_place,
)
from .moves import Move, moves, new_in
from .story import Chapter, Story
from .subject import Subject
from .violation import Violation

__all__ = ["untrue_additions"]

S = TypeVar("S")

SHORT: Final = 40
REFUSED: Final = frozenset({"deny", "invalid", "unknown"})
"""What a gate says of calls that do not run."""


def untrue_additions(subject: Subject[S], story: Story[S]) -> Iterator[Violation]:
    """Yield what nodes have added that did not happen, or have kept out of one of the records."""
    ledger, heard = _Ledger(), 0
    for move in moves(subject, story):
        for chapter in story.chapters[heard : move.number]:
            ledger.hear(chapter)
        heard = move.number
        sent = new_in(move.run.messages, move.before.messages)
        added = new_in(move.run.record.added, move.before.record.added)
        by = f"node {move.node.name!r}"
        if sent is not None and added is not None and ledger.own(sent) != ledger.own(added):
            found = f"{by} adds other messages to the conversation than to what the run has added"
            yield Violation("history", found, move.number)
        problems = [*ledger.problems(move), *ledger.untold(move, (*(sent or ()), *(added or ())))]
        if sent is None:
            problems += ledger.turned(move)
        for problem in dict.fromkeys(problems):
            yield Violation("answers", f"{problem}, by {by}", move.number)
    yield from _unread(story)


def _unread(story: Story[S]) -> Iterator[Violation]:
    """Yield what somebody said meanwhile that was not read once, and does not wait."""
    said = Counter([one.event.message for one in story.chapters if isinstance(one.event, Queued)])
    run = story.run
    known = Counter(
        [*run.record.added, *run.inbox.steering, *run.inbox.follow_ups] if said and run else ()
    )
    for message, times in said.items():
        if known[message] != times:
            found = f"{message.content!r} was said {times} time(s), and read {known[message]}"
            yield Violation("history", found, len(story.chapters))


@final
@dataclass(frozen=True, slots=True)
class _Came:
    """What came of a call: a `content` of None may be told in any words."""

    status: ResultStatus
    content: str | tuple[UserPart, ...] | None

    def fits(self, result: ToolResult) -> bool:
        """Whether a result tells of it."""
        if self.content is not None:
            return (self.status, self.content) == (result.status, result.content)
        # How a tool failed is not said by the tool: only that it did.
        return result.status == self.status or (self.status == "error" and result.status != "ok")

    def __str__(self) -> str:
        return self.status if self.content is None else _told(self.status, self.content)


@final
@dataclass
class _Ledger:
    """What came of each call, by its key, of each tool at all, and what was handed in."""

    came: dict[str, _Came] = field(default_factory=dict[str, _Came])
    by_tool: set[tuple[str, object]] = field(default_factory=set[tuple[str, object]])
    given: set[Message] = field(default_factory=set[Message])
    denied: set[str] = field(default_factory=set[str])
    pending: Mapping[int, Effect] = field(default_factory=dict[int, Effect])

    def hear(self, chapter: Chapter[Any]) -> None:
        """Keep what an event says of a call, and what somebody hands in."""
        pending, self.pending = self.pending, chapter.run.pending
        match chapter.event, chapter.answered:
            case Cancelled(after_step=False, unbegun=unbegun), _:
                for one in pending.values():
                    if isinstance(one, CallTool | StartRun) and one.id not in unbegun:
                        self._note(one.key, "", _Came("unknown", None))
            case ToolReturned(status=status, content=content), CallTool(key=key, call=call):
                # It may have run: whoever made it run says so, perhaps after asking a person.
                said = None if status == "unknown" else content
                self._note(key, call.name, _Came(status, said))
            case ChildEnded(status=status, content=content), StartRun(key=key, agent=agent):
                self._note(key, agent, _Came(status, content))
            case EffectFailed(), CallTool(key=key) | StartRun(key=key):
                self._note(key, "", _Came("error", None))
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

    def own(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the messages that nobody has handed in."""
        return tuple([one for one in messages if one not in self.given])

    def problems(self, move: Move[S]) -> Iterator[str]:
        """Yield what is not true of the results in a turn."""
        for key, result, had in _changed(move.before.turn, move.run.turn):
            came, told = self.came.get(key), _answer(key, result)
            if result in self.given:
                continue
            if had is not None and had not in self.given:
                yield f"{told}, and {_told(had.status, had.content)} stood there before"
            if came is not None and not came.fits(result):
                yield f"{told}, and {came} came of it"
            elif came is None and result.status == "ok" and (why := self._why_not(move, key)):
                yield f"{told}, and {why}"

    def untold(self, move: Move[S], new: Sequence[Message]) -> Iterator[str]:
        """Yield what is not true of new messages."""
        turn = move.before.turn
        reply = None if turn.reply is None else turn.reply.message
        held = {one.key: one for one in turn.results if one is not None}
        # What an agent that takes over has answered is the run's answer, too.
        texts = [one.text for one in held.values()]
        for one in new:
            if one in self.given:
                continue
            if isinstance(one, ToolResult):
                yield from self._in_history(one, held.get(one.key))
            elif isinstance(one, AssistantMessage) and one != reply and one.text not in texts:
                yield f"{one.text!r:.{SHORT}} is told in a model's name, and none has said it"

    def turned(self, move: Move[S]) -> Iterator[str]:
        """Yield the failures of a conversation that was rewritten which read as successes now."""
        had = {one.key: one for one in move.before.messages if isinstance(one, ToolResult)}
        for one in move.run.messages:
            if not isinstance(one, ToolResult) or one.status != "ok" or one in self.given:
                continue
            before, came = had.get(one.key), self.came.get(one.key)
            if before is None or before.status == "ok" or (came is not None and came.fits(one)):
                continue
            was = _told(before.status, before.content)
            yield f"{_answer(one.key, one)}, and {was} stood there before"

    def _why_not(self, move: Move[S], key: str) -> str:
        """Return why a call cannot have gone well; empty if it can."""
        if key in self.denied:
            return "a person has refused it"
        place, turns = call_place(key), (move.before.turn, move.run.turn)
        verdicts = [
            turn.verdicts[place]
            for turn in turns
            if turn.number == move.run.turn.number and place < len(turn.verdicts)
        ]
        refused = any(one is not None and one.kind in REFUSED for one in verdicts)
        if refused:
            return "the gate has refused it"
        # A node of one's own may answer in a tool's place, from a cache for example.
        runs = any(isinstance(one, Execute) for one in unwrapped([move.node]))
        return "nothing has run it" if runs else ""

    def _in_history(self, result: ToolResult, held: ToolResult | None) -> Iterator[str]:
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

    def _note(self, key: str, tool: str, came: _Came) -> None:
        self.came[key] = came
        self.by_tool.add((tool, came.content))


def _changed(before: Turn, after: Turn) -> Iterator[tuple[str, ToolResult, ToolResult | None]]:
    """Yield the results that a turn has and has not had, by their keys, and what stood there."""
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


def _told(status: ResultStatus, content: str | tuple[UserPart, ...]) -> str:
    said = repr(content)
    return f"{status} {said if len(said) <= SHORT else f'{said[: SHORT - 1]}…'}"
