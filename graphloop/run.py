"""Run: one execution at one instant, as a frozen value.

Everything that decides how a run goes on is in here, so that a run can be journaled, replayed,
forked and compared. Nothing changes a run but `step`, and nothing in it is ever changed in place:
`evolve` makes the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, Literal, TypeVar

from msgspec import Struct, field

from .asks import Answer, Ask
from .effects import Effect
from .events import Failure, Setup
from .history import History
from .policy import Rule
from .spending import Spent
from .temporal.monitor import Monitor
from .values import (
    FinishReason,
    Message,
    Reply,
    ResultStatus,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Usage,
    UserMessage,
    call_place,
    evolve,
)

__all__ = [
    "BranchRun",
    "Dialogue",
    "EndReason",
    "Ending",
    "Exchange",
    "Measured",
    "Queue",
    "Run",
    "Spent",
    "StepResult",
    "Turn",
    "Verdict",
    "ended_by",
    "evolve",
]

S = TypeVar("S")


class EndReason(StrEnum):
    """Why a run ended (CONTRACT §9 #27): always told, never inferred from the finish reason."""

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
        """Whether somebody, or a timeout, broke the run off: nothing more is wanted of it."""
        return self.reason in {EndReason.ABORTED, EndReason.TIMEOUT}


class Verdict(Struct, frozen=True, gc=False):
    """What a gate decided about one call; `arguments` replaces the call's when not empty.

    `held` waits for a human, whom the node named `gate` will ask; `answered` has a result already.
    `asked` says that a human decided, `ttl_s` for how long an approval may be given. Who is asked
    was so at `asked_at`, and said yes `took_s` seconds later.
    """

    kind: Literal["run", "deny", "invalid", "unknown", "held", "answered"]
    reason: str = ""
    arguments: str = ""
    asked: bool = False
    ttl_s: float | None = None
    gate: str = ""
    asked_at: float | None = None
    took_s: float | None = None


class BranchRun(Struct, frozen=True, gc=False):
    """One of several child runs that a node waits for together, and what came of it.

    `agent` is told `prompt`, if there is one. `effect` started it, 0 if nothing has yet; `status`
    is None until it has ended.
    """

    name: str
    agent: str
    prompt: str = ""
    effect: int = 0
    status: ResultStatus | None = None
    content: str = ""


class Exchange(Struct, frozen=True, gc=False):
    """What a node's generator asked, and what it was answered, or how that failed."""

    ask: Ask
    answer: Answer | Failure = None


class Dialogue(Struct, frozen=True):
    """What the generator of the node in hand has asked so far; with it, it is run again.

    `at` is the id of the effect that first called it. `messages` is how long the conversation was
    then, and `usage` what the run had used: it sees the run as it was. `asked` waits for its
    answer.
    """

    at: int
    messages: int
    usage: Usage
    exchanges: tuple[Exchange, ...] = ()
    asked: Ask | None = None


class StepResult(Struct, frozen=True, gc=False):
    """One turn as it is reported: the model's reply and the results of its calls.

    `messages` are the messages this turn added; `usage` is this turn alone, retried attempts
    included; `tool_results` are aligned with `tool_calls`.
    """

    index: int
    text: str
    reasoning: str
    tool_calls: tuple[ToolCall, ...]
    tool_results: tuple[ToolResult, ...]
    finish_reason: FinishReason
    raw_finish_reason: str
    usage: Usage
    model: str
    messages: tuple[Message, ...]
    metadata: str = ""


class Queue(Struct, frozen=True, gc=False):
    """The calls of one tool that wait for room: their places in the turn, in request order."""

    tool: ToolSpec
    places: tuple[int, ...]


class Turn(Struct, frozen=True):
    """The turn in progress: what is offered, what the model said, what became of its calls.

    Attributes:
        number: counts from 0; -1 stands for "before the first turn".
        retries: how often the turn was asked again.
        fallbacks: how many models have failed in it.
        asked: whether a model has answered, or failed for good.
        cut: the reply that was cut at its token limit, while the turn is asked again for more.
        compacted: whether the history was made shorter for it.
        dropped: whether the caller put a conversation of its own in place of the reply.
        beyond_budget: the limits of the budget that a call was refused for, with no call left.
        given: places of the calls that were answered in a conversation that was handed in.
        results: one slot a call.
        started: the places of the calls that the kernel has let start, one bit a place.
        waiting: the calls that wait for room.
        again: places of the calls that are to run once more: nobody knows whether they have run.
        gated: the rules of the gates that have spoken of the calls; they hold of edits, too.
        notes: messages to append after the reply and its results (feedback, what a caller adds).
        branches: the child runs that answer together in the model's place.
    """

    number: int = -1
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    model: str = ""
    max_tokens: int | None = None
    retries: int = 0
    fallbacks: int = 0
    asked: bool = False
    compacted: bool = False
    dropped: bool = False
    beyond_budget: tuple[str, ...] = ()
    given: frozenset[int] = frozenset()
    reply: Reply | None = None
    calls: tuple[ToolCall, ...] = ()
    verdicts: tuple[Verdict | None, ...] = ()
    results: tuple[ToolResult | None, ...] = ()
    started: int = 0
    waiting: tuple[Queue, ...] = ()
    again: frozenset[int] = frozenset()
    gated: tuple[tuple[Rule, ...], ...] = ()
    notes: tuple[Message, ...] = ()
    branches: tuple[BranchRun, ...] = ()
    usage: Usage = Usage()
    cut: Reply | None = None

    def place_of(self, key: str) -> int | None:
        """Return the place of the turn's call of this key; None for what a node wished for."""
        turn, _, tail = key.rpartition(".")
        if turn != f"c{self.number}" or not tail.isdecimal():
            return None
        place = int(tail)
        return place if place < len(self.calls) and tail == str(place) else None

    def has_call(self, key: str) -> bool:
        """Whether this is the key of one of the turn's calls."""
        return self.place_of(key) is not None

    def without_reply(self) -> Turn:
        """Return the turn as if its model had said nothing: no calls, nor what came of them."""
        return evolve(self, reply=None, calls=(), verdicts=(), results=())

    def waits_for(self, key: str) -> bool:
        """Whether this is the key of one of the turn's calls, which has no result yet."""
        return self.has_call(key) and not (self.results and self.results[call_place(key)])


class Measured(Struct, frozen=True, gc=False):
    """How large the conversation is: `tokens` of its first `messages`, as a model reported."""

    messages: int = 0
    tokens: int = 0


class Run(Struct, Generic[S], frozen=True, kw_only=True):
    """One execution of a graph, as it stands after `seq` events.

    `pending` holds the effects that were wished for and not yet answered, by id; `node` is the
    name of the node that waits for them, or "END". `messages` is what the model is sent, `added`
    what this run added, whatever became of `messages` meanwhile. `begun` holds the ids of pending
    effects that may have happened already. `steering` and `follow_ups` are what somebody said and
    the model has not read; `stopping` is why the run is to stop after this turn. `tool_errors`
    counts, by tool, the consecutive steps in which the tool only failed, `denials` those in which
    calls were only denied, `rejections`, by check, how often the answer was sent back, `counts`, by
    node, how often it did what it may do so often. `unwanted` holds the ids of pending child runs
    that nobody waits for any more: a driver ends them. `watch` is where the temporal rules stand,
    and `counted` the keys of the calls that they know of. `dialogue` is what the node in hand has
    asked, if it is one that asks several things in a row. `warnings` are for the caller. `approved`
    is the number of a turn and the text that a person has approved as its answer.
    """

    id: str
    graph: str
    node: str
    state: S
    setup: Setup
    at: float
    started_at: float
    seq: int = 1
    messages: History[Message] = field(default_factory=History[Message])
    added: History[Message] = field(default_factory=History[Message])
    turn: Turn = Turn()
    steps: History[StepResult] = field(default_factory=History[StepResult])
    pending: Mapping[int, Effect] = field(default_factory=dict[int, Effect])
    next_effect: int = 1
    begun: frozenset[int] = frozenset()
    unwanted: frozenset[int] = frozenset()
    spent: Spent = Spent()
    steering: tuple[UserMessage, ...] = ()
    follow_ups: tuple[UserMessage, ...] = ()
    stopping: str | None = None
    tool_errors: Mapping[str, int] = field(default_factory=dict[str, int])
    denials: int = 0
    rejections: Mapping[str, int] = field(default_factory=dict[str, int])
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    watch: Monitor = Monitor()
    counted: frozenset[str] = frozenset()
    measured: Measured = Measured()
    dialogue: Dialogue | None = None
    warnings: tuple[str, ...] = ()
    approved: tuple[int, str] | None = None
    ending: Ending | None = None

    @property
    def ended(self) -> bool:
        """Whether the run is over; only then is `ending` final."""
        return self.node == "END"

    @property
    def was_stopped(self) -> bool:
        """Whether it ends because somebody, or a timeout, broke it off: nothing more is wanted."""
        return self.ending is not None and self.ending.was_stopped


def ended_by(run: Run[S], ending: Ending | None) -> Run[S]:
    """Return the run as one that is about to end by this, or None: by nothing yet.

    A run that was stopped stays so, whatever its table does with it afterwards.
    """
    return run if run.was_stopped else evolve(run, ending=ending)
