"""Run: one execution at one instant, as a frozen value.

Everything that decides how a run goes on is in here, so that a run can be journaled, replayed,
forked and compared. Nothing changes a run but `step`, and nothing in it is ever changed in place:
`evolve` makes the next one.

A stop voids all that is pending. `interrupted` gives each call that may have run its result, so no
node takes it for a call that is still to run, wherever the table leads from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from typing import Generic, TypeVar, cast, final, overload

from msgspec import Struct, field

from .effects import CallTool, Effect, StartRun
from .events import Cancelled, Failure, Setup
from .rules import Monitor
from .spending import Spent
from .turn import StepResult, Turn
from .values import Message, ToolResult, UserMessage, call_key, evolve

__all__ = [
    "INTERRUPTED",
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
    "evolve",
    "interrupted",
    "with_conversation",
    "with_count",
    "with_messages",
]

S = TypeVar("S")
T = TypeVar("T")

BLOCK = 32


@final
class History(Sequence[T], Generic[T]):
    """An immutable sequence with O(1) append (amortised) and O(log n) access.

    A run is a value, and every step makes a new one, which must not copy the messages. Versions
    share full blocks of 32 items, which are a history in their turn: `append` copies at most a
    block of each level. (Two branches of one run would race for the end of a shared list.)
    """

    __slots__ = ("_blocks", "_size", "_tail")

    def __init__(self, items: Iterable[T] = ()) -> None:
        every = tuple(items)
        full = [every[end - BLOCK : end] for end in range(BLOCK, len(every) + 1, BLOCK)]
        self._blocks: History[tuple[T, ...]] | None = History(full) if full else None
        self._tail: tuple[T, ...] = every[len(full) * BLOCK :]
        self._size = len(every)

    def append(self, *items: T) -> History[T]:
        """Return a history that also holds `items`, in order; this one is unchanged."""
        if not items:
            return self
        blocks, tail = self._blocks, self._tail + items
        if len(tail) >= BLOCK:
            more = History(tail)
            blocks = blocks.append(*more._blocks or ()) if blocks else more._blocks
            tail = more._tail
        longer: History[T] = object.__new__(type(self))
        longer._blocks = blocks
        longer._tail = tail
        longer._size = self._size + len(items)
        return longer

    def starts_with(self, older: History[T]) -> bool:
        """Whether `older` is the beginning of this history.

        Histories grown from one another share their blocks, and tuples compare shared items by
        identity: this looks at blocks, not at messages.
        """
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
        if isinstance(index, slice):
            start, stop, stride = index.indices(len(self))
            if stride == 1:
                return self._between(start, stop)
            return tuple(self[at] for at in range(start, stop, stride))
        size = self._size
        if -len(self._tail) <= index < 0:
            return self._tail[index]
        at = index + size if index < 0 else index
        if not 0 <= at < size:
            raise IndexError(f"index {index} is outside a history of {size} items")
        block, offset = divmod(at, BLOCK)
        if self._blocks is None or block == size // BLOCK:
            return self._tail[offset]
        return self._blocks[block][offset]

    def _between(self, start: int, stop: int) -> tuple[T, ...]:
        """Return a run of items by looking at their blocks only."""
        first, last = start // BLOCK, (stop + BLOCK - 1) // BLOCK
        spans = () if self._blocks is None else self._blocks[first:last]
        if last > self._size // BLOCK:
            spans = (*spans, self._tail)
        items = tuple(chain.from_iterable(spans))
        return items[start - first * BLOCK : max(start, stop) - first * BLOCK]

    def __iter__(self) -> Iterator[T]:
        for block in self._blocks or ():
            yield from block
        yield from self._tail

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        other = cast("History[object]", other)  # isinstance cannot tell the item type.
        return self._tail == other._tail and self._blocks == other._blocks

    def __hash__(self) -> int:
        return hash((self._blocks, self._tail))

    def __repr__(self) -> str:
        # Bounded: a run's repr ends up in tracebacks, and asyncio makes one at the end of `run`.
        return f"<History of {len(self)} items>"


class EndReason(StrEnum):
    """Why a run ended: always said, never inferred from the finish reason."""

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
    """Why a run ended, everything that stopped it, and the failure if there was one.

    `said` is the text of a reply that was cut off when the run was stopped.
    """

    reason: EndReason
    stopped_by: tuple[str, ...] = ()
    failure: Failure | None = None
    said: str = ""

    @property
    def was_stopped(self) -> bool:
        """Whether a caller, or a timeout, broke the run off: it starts nothing more."""
        return self.reason in {EndReason.ABORTED, EndReason.TIMEOUT}


class Measured(Struct, frozen=True, gc=False):
    """How large the conversation is: `tokens` of its first `messages`, as a model reported."""

    messages: int = 0
    tokens: int = 0


class Inbox(Struct, frozen=True, gc=False):
    """Messages of a caller that came while the run went on, and that no model has read.

    Attributes:
        steering: read at the next turn.
        follow_ups: read once the run would end.
        stopping: why the run is to stop after this turn; None if it is not.
    """

    steering: tuple[UserMessage, ...] = ()
    follow_ups: tuple[UserMessage, ...] = ()
    stopping: str | None = None


class Counters(Struct, frozen=True):
    """The counts by which the nodes of a run stop it.

    Attributes:
        tool_errors: by tool, the turns in which it only failed since it last succeeded.
        denials: the turns in which all calls were denied since a call last succeeded.
        rejections: by check, how often an answer was sent back.
        by_node: by node, how often it did what it may do so often.
        measured: how large the conversation is.
    """

    tool_errors: Mapping[str, int] = field(default_factory=dict[str, int])
    denials: int = 0
    rejections: Mapping[str, int] = field(default_factory=dict[str, int])
    by_node: Mapping[str, int] = field(default_factory=dict[str, int])
    measured: Measured = Measured()


class RuleState(Struct, frozen=True):
    """Where the temporal rules of a run stand, and the keys of the calls that they know of."""

    monitor: Monitor = Monitor()
    counted: frozenset[str] = frozenset()


class Record(Struct, frozen=True):
    """The turns, messages and warnings of a run; no node decides by when they came.

    Attributes:
        started_at: when the run began, in seconds since the epoch.
        steps: the turns that have ended.
        added: the messages that this run added, whatever became of the conversation since.
        approved: the number of a turn, and the text that a person approved as its answer.
        warnings: facts that the caller should know.
    """

    started_at: float = 0.0
    steps: History[StepResult] = field(default_factory=History[StepResult])
    added: History[Message] = field(default_factory=History[Message])
    approved: tuple[int, str] | None = None
    warnings: tuple[str, ...] = ()


class Run(Struct, Generic[S], frozen=True, kw_only=True):
    """An execution of a graph, as it stands after `seq` events.

    Attributes:
        id: the run's id.
        node: the node that waits for the pending effects, or "END".
        state: the user's state.
        setup: the means of the run, and the bounds it cannot leave.
        at: when the last event happened, in seconds since the epoch.
        seq: how many events the run has taken.
        messages: the conversation as the model is sent it.
        turn: the turn in progress.
        pending: the effects that are not answered yet, by id.
        next_effect: the id of the next effect.
        started: the ids of pending effects that may have happened already.
        spent: what the run and its children have spent.
        inbox: the messages that no model has read.
        counters: the counts of the run.
        watch: where its temporal rules stand.
        record: its turns, its messages and its warnings.
        ending: why it ends; final once `node` is "END".
    """

    id: str
    node: str
    state: S
    setup: Setup
    at: float
    seq: int = 1
    messages: History[Message] = field(default_factory=History[Message])
    turn: Turn = Turn()
    pending: Mapping[int, Effect] = field(default_factory=dict[int, Effect])
    next_effect: int = 1
    started: frozenset[int] = frozenset()
    spent: Spent = Spent()
    inbox: Inbox = Inbox()
    counters: Counters = field(default_factory=Counters)
    watch: RuleState = RuleState()
    record: Record = field(default_factory=Record)
    ending: Ending | None = None

    @property
    def ended(self) -> bool:
        """Whether the run is over; only then is `ending` final."""
        return self.node == "END"

    @property
    def measured(self) -> Measured:
        """How large the conversation is, unless it was made shorter since."""
        known = self.counters.measured
        return known if known.messages <= len(self.messages) else Measured()

    @property
    def abandoned(self) -> frozenset[int]:
        """The ids of the pending child runs that nothing waits for: the driver ends them."""
        return frozenset(self.pending) if self.turn.abandoned else frozenset()

    @property
    def was_stopped(self) -> bool:
        """Whether it ends because a caller, or a timeout, broke it off."""
        return self.ending is not None and self.ending.was_stopped


def ended_by(run: Run[S], ending: Ending | None) -> Run[S]:
    """Return the run as one that is about to end by this, or None: by nothing yet.

    A run that was stopped stays so, whatever its table does with it afterwards.
    """
    return run if run.ending is not None and run.was_stopped else evolve(run, ending=ending)


def with_messages(run: Run[S], *messages: Message) -> Run[S]:
    """Return the run with messages at the end of its conversation, recorded as its own."""
    record = evolve(run.record, added=run.record.added.append(*messages))
    return evolve(run, messages=run.messages.append(*messages), record=record)


def with_conversation(run: Run[S], messages: Iterable[Message]) -> Run[S]:
    """Return the run with another conversation, which no model has measured yet."""
    counters = evolve(run.counters, measured=Measured())
    return evolve(run, messages=History(messages), counters=counters)


def with_count(run: Run[S], counter: str, count: int) -> Run[S]:
    """Return the run with one of its nodes' counters set."""
    by_node = {**run.counters.by_node, counter: count}
    return evolve(run, counters=evolve(run.counters, by_node=by_node))


INTERRUPTED = (
    "It is not known whether this call took effect: the run was cancelled while it ran. Check "
    "before calling it again."
)
STOPPED = (
    "The agent was stopped before it had an answer: the run was cancelled. What it has done until "
    "then is done: check before calling it again."
)


def interrupted(run: Run[S], event: Cancelled, spent: Spent) -> Run[S]:
    """Return the run as a stop leaves it.

    Args:
        run: the run as it stood.
        event: the stop.
        spent: what the run has spent, without what is void. A tool or a child run that had started
            counts: it has run, or may have.
    """
    started = [one for at, one in run.pending.items() if at not in event.unbegun]
    tools = sum(isinstance(one, CallTool) for one in started)
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
        turn=_answered(run, event),
        ending=ending,
    )


def _answered(run: Run[S], event: Cancelled) -> Turn:
    """Return the turn with a result of each call that may have run, and had none."""
    turn = run.turn
    void = [run.pending.get(at) for at in event.unbegun]
    surely_not = {turn.place_of(one.key) for one in void if isinstance(one, CallTool | StartRun)}
    agents = {tool.name for tool in turn.tools if tool.kind == "agent"}
    results = list(turn.results or (None,) * len(turn.calls))
    for place, call in enumerate(turn.calls):
        if not turn.started >> place & 1 or results[place] is not None:
            continue
        if place in turn.again or place not in surely_not:
            told = STOPPED if call.name in agents else INTERRUPTED
            key = call_key(turn.number, place)
            results[place] = ToolResult(key, call.id, call.name, told, "unknown")
    return evolve(turn, results=tuple(results)) if any(results) else turn
