"""Run: one execution of a graph at one instant, as a frozen value.

A run holds all data that decides how it continues, so it can be journaled, replayed, forked and
compared. Only `step` applies events to a run. No run changes in place: `evolve` makes a changed
copy. A state is data that a journal can hold, so no run is part of a cycle (`gc=False`).

`ended_by_stop` gives a result to each call that may have run before a stop: none runs again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from typing import Any, Final, Generic, TypeVar, cast, final, overload

from msgspec import Struct

from .effects import CallTool, Effect, StartRun
from .events import Cancelled, Failure, Setup
from .rules import Monitor
from .spending import NOTHING_SPENT, Spent
from .turn import StepResult, Turn
from .values import Message, ToolResult, UserMessage, call_key, evolve

__all__ = [
    "INTERRUPTED",
    "NO_COUNTS",
    "STOPPED",
    "Counters",
    "EndReason",
    "Ending",
    "History",
    "Inbox",
    "Measured",
    "Record",
    "RuleState",
    "Run",
    "Spent",
    "ended_by",
    "ended_by_stop",
    "evolve",
    "with_conversation",
    "with_count",
    "with_messages",
]

S = TypeVar("S")
T = TypeVar("T")

BLOCK = 32
new: Final = object.__new__  # Looked up once, because each append makes a history.


@final
class History(Sequence[T], Generic[T]):
    """An immutable sequence with O(1) append (amortised) and O(log n) access.

    Every step makes a new run, which must not copy all messages. So versions of a history share
    full blocks of 32 items, and the blocks form a history of their own: `append` copies at most
    one block per level. (A shared list would fail: two forks of a run would append to one end.)
    """

    __slots__ = ("_blocks", "_size", "_tail")

    def __init__(self, items: Iterable[T] = ()) -> None:
        known = items if isinstance(items, History) else None
        every = tuple(items) if known is None else known._tail
        full = [every[end - BLOCK : end] for end in range(BLOCK, len(every) + 1, BLOCK)]
        blocks = None if known is None else known._blocks
        self._blocks: History[tuple[T, ...]] | None = History(full) if full else blocks
        self._tail: tuple[T, ...] = every[len(full) * BLOCK :]
        self._size: int = len(every) if known is None else known._size

    def append(self, *items: T) -> History[T]:
        """Return a history with `items` added at its end; this history stays unchanged."""
        return self.extend(items)

    def extend(self, items: tuple[T, ...]) -> History[T]:
        """Return a history with the items of a tuple added, as `append` does for arguments."""
        blocks, tail = self._blocks, self._tail + items
        if len(tail) >= BLOCK:
            more = History(tail)
            blocks = blocks.extend(tuple(more._blocks or ())) if blocks else more._blocks
            tail = more._tail
        longer = new(type(self))
        longer._blocks, longer._tail, longer._size = blocks, tail, self._size + len(items)
        return longer

    def starts_with(self, older: History[T]) -> bool:
        """Whether `older` is the beginning of this history; shared blocks are not read."""
        mine, known = self._blocks, older._blocks
        if not (known is None or known is mine or (mine and mine.starts_with(known))):
            return False
        size = older._size // BLOCK
        tail = self._tail if mine is None or size == len(mine) else mine[size]
        return tail[: len(older._tail)] == older._tail

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if type(index) is int and 0 > index >= -len(self._tail):
            return self._tail[index]  # The latest items are read most often.
        if isinstance(index, slice):
            start, stop, stride = index.indices(len(self))
            if stride == 1:
                return self._between(start, stop)
            return tuple(self[at] for at in range(start, stop, stride))
        at = index + self._size if index < 0 else index
        if not 0 <= at < self._size:
            raise IndexError(f"index {index} is outside a history of {self._size} items")
        block, offset = divmod(at, BLOCK)
        if self._blocks is None or block == self._size // BLOCK:
            return self._tail[offset]
        return self._blocks[block][offset]

    def _between(self, start: int, stop: int) -> tuple[T, ...]:
        """Return the items from `start` to `stop`, reading only the blocks that hold them."""
        first, last = start // BLOCK, (stop + BLOCK - 1) // BLOCK
        spans = () if self._blocks is None else self._blocks[first:last]
        if last > self._size // BLOCK:
            spans = (*spans, self._tail)
        items = tuple(chain.from_iterable(spans))
        return items[start - first * BLOCK : max(start, stop) - first * BLOCK]

    def __iter__(self) -> Iterator[T]:
        return chain(chain.from_iterable(self._blocks or ()), self._tail)

    def __reversed__(self) -> Iterator[T]:
        spans = chain((self._tail,), reversed(self._blocks or ()))
        return chain.from_iterable(map(reversed, spans))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, tuple):
            return tuple(self) == other
        if not isinstance(other, History):
            return NotImplemented
        other = cast("History[object]", other)  # `isinstance` cannot check the item type.
        return self._tail == other._tail and self._blocks == other._blocks

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        # Short, because a run's repr appears in tracebacks and `asyncio.run` makes one at its end.
        return f"<History of {len(self)} items>"


EMPTY: Final[History[Any]] = History()


class EndReason(StrEnum):
    """The reason why a run ended, which is always recorded in the run."""

    COMPLETED = "completed"
    MAX_STEPS = "max_steps"
    MAX_PAUSES = "max_pauses"
    STOP_CONDITION = "stop_condition"
    BUDGET = "budget"
    TOOL_ERRORS = "tool_errors"
    DENIALS = "denials"
    LENGTH = "length"
    CONTEXT_WINDOW = "context_window"
    EMPTY_RESPONSE = "empty_response"
    INCOMPLETE = "incomplete"
    REFUSAL = "refusal"
    CONTENT_FILTER = "content_filter"
    ABORTED = "aborted"
    TIMEOUT = "timeout"
    ERROR = "error"
    PARKED = "parked"


class Ending(Struct, frozen=True, gc=False):
    """Why a run ended, what stopped it, its failure, and the text of a reply that a stop cut."""

    reason: EndReason
    stopped_by: tuple[str, ...] = ()
    failure: Failure | None = None
    said: str = ""

    @property
    def was_stopped(self) -> bool:
        """Whether a caller or a timeout stopped the run, so that it starts no more effects."""
        return self.reason in {EndReason.ABORTED, EndReason.TIMEOUT}


class Measured(Struct, frozen=True, gc=False):
    """The tokens of the first `messages` messages of a conversation, as a model reported them."""

    messages: int = 0
    tokens: int = 0


class Inbox(Struct, frozen=True, gc=False):
    """Messages that a caller sent during the run, and that no model has read.

    Attributes:
        steering: messages for the next turn.
        follow_ups: messages to read when the run would otherwise end.
        stopping: the reason of a stop that takes effect after this turn; None without a stop.
        signals: the ids of the messages that came through a store, also of those read.
    """

    steering: tuple[UserMessage, ...] = ()
    follow_ups: tuple[UserMessage, ...] = ()
    stopping: str | None = None
    signals: frozenset[str] = frozenset()


class Counters(Struct, frozen=True, gc=False):
    """The counts that the nodes of a run compare with their limits.

    Attributes:
        tool_errors: by tool, the number of turns with a failure of the tool since its last success.
        denials: the number of turns since the last successful call in which all calls were denied.
        rejections: by check, the number of answers that the check sent back to the model.
        by_node: by counter name, the counts of nodes with a limit of their own, such as retries.
        pauses: how many of the latest turns the server has paused, in a row.
    """

    tool_errors: Mapping[str, int] = {}
    denials: int = 0
    rejections: Mapping[str, int] = {}
    by_node: Mapping[str, int] = {}
    pauses: int = 0


NO_COUNTS: Final = Counters()


class RuleState(Struct, frozen=True, gc=False):
    """The state of a run's temporal rules, and the keys of the calls that the rules counted."""

    monitor: Monitor = Monitor()
    counted: frozenset[str] = frozenset()


class Record(Struct, frozen=True, gc=False):
    """The turns, messages and warnings of a run so far.

    Attributes:
        started_at: when the run began, in seconds since the epoch.
        steps: the turns that have ended.
        added: the messages that this run added, kept after compaction and replacement, too.
        approved: an answer that a person approved: the number of its turn, and its text.
        warnings: warnings for the caller.
        chat: the id of the chat whose question the run answers; empty for no chat.
        measured: the last measured size of the conversation.
    """

    started_at: float = 0.0
    steps: History[StepResult] = EMPTY
    added: History[Message] = EMPTY
    approved: tuple[int, str] | None = None
    warnings: tuple[str, ...] = ()
    chat: str = ""
    measured: Measured = Measured()


class Run(Struct, Generic[S], frozen=True, kw_only=True, gc=False):
    """The execution of a graph after its first `seq` events.

    Attributes:
        id: the run's id.
        node: the node that waits for the pending effects, or "END".
        state: the user's state.
        setup: the model, tools, settings, budget and rules of the run.
        at: when the last event happened, in seconds since the epoch.
        seq: the number of events applied so far.
        messages: the conversation in the form that models are sent.
        turn: the turn in progress.
        pending: the effects that are not answered yet, by id.
        next_effect: the id of the next effect.
        started: the ids of pending effects that may already have happened.
        spent: what the run and its children have spent.
        inbox: the caller's messages that no model has read yet.
        counters: the counts that nodes compare with their limits.
        watch: the state of the run's temporal rules.
        record: the turns, messages and warnings of the run so far.
        ending: the reason why the run ends; it can change until `node` is "END".
    """

    id: str
    node: str
    state: S
    setup: Setup
    at: float
    seq: int = 1
    messages: History[Message] = EMPTY
    turn: Turn = Turn()
    pending: Mapping[int, Effect] = {}
    next_effect: int = 1
    started: frozenset[int] = frozenset()
    spent: Spent = NOTHING_SPENT
    inbox: Inbox = Inbox()
    counters: Counters = NO_COUNTS
    watch: RuleState = RuleState()
    record: Record = Record()
    ending: Ending | None = None

    def __repr__(self) -> str:
        return f"<Run {self.id!r}: at {self.node}, event {self.seq}>"

    @property
    def ended(self) -> bool:
        """Whether the run is over; only then is `ending` final."""
        return self.node == "END"

    @property
    def measured(self) -> Measured:
        """The last measured size of the conversation; zero if the conversation is shorter now."""
        known = self.record.measured
        return known if known.messages <= len(self.messages) else Measured()

    @property
    def abandoned(self) -> frozenset[int]:
        """The ids of pending child runs that no node waits for any longer; the driver ends them."""
        return frozenset(self.pending) if self.turn.abandoned else frozenset()

    @property
    def was_stopped(self) -> bool:
        """Whether the run ends because a caller or a timeout stopped it."""
        return self.ending is not None and self.ending.was_stopped


def ended_by(run: Run[S], ending: Ending | None) -> Run[S]:
    """Return the run with this ending, or without one (None); the ending of a stop stays."""
    return run if run.ending is not None and run.was_stopped else evolve(run, ending=ending)


def with_messages(run: Run[S], *messages: Message) -> Run[S]:
    """Return the run with messages appended to its conversation and to its record."""
    record = evolve(run.record, added=run.record.added.extend(messages))
    return evolve(run, messages=run.messages.extend(messages), record=record)


def with_conversation(run: Run[S], messages: Iterable[Message]) -> Run[S]:
    """Return the run with a new conversation, whose size in tokens is not known yet."""
    record = evolve(run.record, measured=Measured())
    return evolve(run, messages=History(messages), record=record)


def with_count(run: Run[S], counter: str, count: int) -> Run[S]:
    """Return the run with a node's counter set to `count`."""
    by_node = {**run.counters.by_node, counter: count}
    return evolve(run, counters=evolve(run.counters, by_node=by_node))


INTERRUPTED = (
    "It is not known whether this call took effect: the run was cancelled while it ran. Check "
    "before calling it again."
)
STOPPED = (
    "The agent was stopped before it had an answer: the run was cancelled. Its effects until then "
    "have happened: check before calling it again."
)


def ended_by_stop(run: Run[S], event: Cancelled, spent: Spent) -> Run[S]:
    """Return the stopped run with its ending; `spent` then has all started calls, too."""
    started = [one for at, one in run.pending.items() if at not in event.unstarted]
    calls = [one.call.name for one in started if isinstance(one, CallTool)]
    tools = sum(name not in run.setup.own for name in calls)
    agents = sum(isinstance(one, StartRun) and run.turn.has_call(one.key) for one in started)
    ending = Ending(EndReason.ABORTED, (event.reason,) if event.reason else (), said=event.said)
    if event.timeout:
        ending = Ending(EndReason.TIMEOUT, ("step_timeout_s",), said=event.said)
    return evolve(
        run,
        seq=run.seq + 1,
        at=event.at,
        pending={},
        started=frozenset(),
        spent=spent + event.spent + Spent(tool_calls=tools, agent_calls=agents),
        turn=_mark_unknown(run, event),
        ending=ending,
    )


def _mark_unknown(run: Run[S], event: Cancelled) -> Turn:
    """Return the turn with an `unknown` result for each call that may have run and had none."""
    turn = run.turn
    void = [run.pending.get(at) for at in event.unstarted]
    surely_not = {turn.place_of(one.key) for one in void if isinstance(one, CallTool | StartRun)}
    agents = {tool.name for tool in turn.tools if tool.kind == "agent"}
    results = list(turn.results or (None,) * len(turn.calls))
    for place, call in enumerate(turn.calls):
        key = call_key(turn.number, place)
        if key not in turn.started or results[place] is not None:
            continue
        if place in turn.again or place not in surely_not:
            told = STOPPED if call.name in agents else INTERRUPTED
            results[place] = ToolResult(key, call.id, call.name, told, "unknown")
    return evolve(turn, results=tuple(results)) if any(results) else turn
