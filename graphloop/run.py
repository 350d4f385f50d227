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

from .effects import Effect
from .events import Failure, Setup
from .history import History
from .values import (
    FinishReason,
    Message,
    Reply,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Usage,
    UserMessage,
    evolve,
)

__all__ = ["EndReason", "Ending", "Run", "Spent", "StepResult", "Turn", "Verdict", "evolve"]

S = TypeVar("S")


class EndReason(StrEnum):
    """Why a run ended (CONTRACT §9 #27): always told, never inferred from the finish reason."""

    COMPLETED = "completed"
    MAX_STEPS = "max_steps"
    MAX_PAUSES = "max_pauses"
    STOP_CONDITION = "stop_condition"
    TOOL_ERRORS = "tool_errors"
    LENGTH = "length"
    CONTEXT_WINDOW = "context_window"
    EMPTY_RESPONSE = "empty_response"
    INCOMPLETE = "incomplete"
    REFUSAL = "refusal"
    CONTENT_FILTER = "content_filter"
    ABORTED = "aborted"
    ERROR = "error"
    PARKED = "parked"


class Ending(Struct, frozen=True, gc=False):
    """Why a run ended, everything that stopped it, and the failure if there was one."""

    reason: EndReason
    stopped_by: tuple[str, ...] = ()
    failure: Failure | None = None


class Verdict(Struct, frozen=True, gc=False):
    """What a gate decided about one call; `arguments` replaces the call's when not empty."""

    kind: Literal["run", "deny", "invalid", "unknown"]
    reason: str = ""
    arguments: str = ""


class Spent(Struct, frozen=True, gc=False):
    """What a run has used so far. `unpriced_calls` counts model calls of unknown price."""

    model_calls: int = 0
    tool_calls: int = 0
    usage: Usage = Usage()
    cost_usd: float = 0.0
    unpriced_calls: int = 0


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


class Turn(Struct, frozen=True):
    """The turn in progress: what is offered, what the model said, what became of its calls.

    `number` counts from 0; -1 stands for "before the first turn". `results` has one slot a call.
    `unissued` are the indexes of calls that wait for a free place. `notes` are messages to append
    after the reply (a critic's feedback).
    """

    number: int = -1
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    model: str = ""
    max_tokens: int | None = None
    retries: int = 0
    reply: Reply | None = None
    calls: tuple[ToolCall, ...] = ()
    verdicts: tuple[Verdict | None, ...] = ()
    results: tuple[ToolResult | None, ...] = ()
    unissued: tuple[int, ...] = ()
    notes: tuple[UserMessage, ...] = ()
    usage: Usage = Usage()


class Run(Struct, Generic[S], frozen=True, kw_only=True):
    """One execution of a graph, as it stands after `seq` events.

    `pending` holds the effects that were wished for and not yet answered, by id; `node` is the
    name of the node that waits for them, or "END". `messages` is what the model is sent, `added`
    what this run added, whatever became of `messages` meanwhile. `tool_errors` counts, by tool, the
    consecutive steps in which the tool only failed.
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
    spent: Spent = Spent()
    tool_errors: Mapping[str, int] = field(default_factory=dict[str, int])
    ending: Ending | None = None

    @property
    def ended(self) -> bool:
        """Whether the run is over; only then is `ending` final."""
        return self.node == "END"
