"""part_kinds: what each part of a stream says; the order they come in is `parts`'s to keep.

Names are those of CONTRACT §2.2. Kinds and fields may be added and none is renamed: ignore what
you do not know. Deltas are parts too; the seam to the providers defines them.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

from msgspec import Struct

from ..run import EndReason, Run
from ..values import FinishReason, Message, ToolResult, Usage

__all__ = [
    "BudgetExceeded",
    "CompactionPart",
    "Cost",
    "ErrorPart",
    "Finish",
    "MessageInjected",
    "ObjectDelta",
    "RunStart",
    "StepFinish",
    "StepRetry",
    "StepStart",
    "ToolApprovalRequest",
    "ToolCallPart",
    "ToolResultPart",
    "ToolState",
    "VerifyPart",
    "Warned",
    "finish_of",
]

PartialObject: TypeAlias = object
"""JSON as Python has it; the name is for a field that is called `object` itself."""


class RunStart(Struct, frozen=True, tag_field="type", tag="run-start", gc=False):
    """The run has begun, or is taken up again."""

    run_id: str
    type: ClassVar[Literal["run-start"]] = "run-start"


class StepStart(Struct, frozen=True, tag_field="type", tag="step-start", gc=False):
    """A model turn begins; turns count from 0, without gaps."""

    step_index: int
    type: ClassVar[Literal["step-start"]] = "step-start"


class StepRetry(Struct, frozen=True, tag_field="type", tag="step-retry", gc=False):
    """The turn is asked again: what it has streamed so far is void."""

    step_index: int
    reason: FinishReason
    type: ClassVar[Literal["step-retry"]] = "step-retry"


class CompactionPart(Struct, frozen=True, tag_field="type", tag="compaction", gc=False):
    """The conversation was made shorter for this turn; tokens are estimates."""

    step_index: int
    tokens_before: int
    tokens_after: int
    messages_before: int
    messages_after: int
    type: ClassVar[Literal["compaction"]] = "compaction"


class MessageInjected(Struct, frozen=True, tag_field="type", tag="message-injected", gc=False):
    """A message from outside is now in the conversation, and the model will read it.

    `caller` stands for what the caller of an iterated run had put in.
    """

    message: Message
    origin: Literal["steering", "follow_up", "caller"]
    type: ClassVar[Literal["message-injected"]] = "message-injected"


class StepFinish(Struct, frozen=True, tag_field="type", tag="step-finish", gc=False):
    """The model's part of a turn is complete; `usage` is this turn's."""

    step_index: int
    finish_reason: FinishReason
    usage: Usage
    type: ClassVar[Literal["step-finish"]] = "step-finish"


class Cost(Struct, frozen=True, tag_field="type", tag="cost", gc=False):
    """What the run has cost so far, and this model call of it, in US dollars."""

    step_index: int
    cost_usd: float
    delta_usd: float
    type: ClassVar[Literal["cost"]] = "cost"


class ToolCallPart(Struct, frozen=True, tag_field="type", tag="tool-call", gc=False):
    """A call is complete; `key` is graphloop's own, `tool_call_id` the provider's.

    One more of the same key replaces it: the caller has put another conversation in its place.
    """

    key: str
    tool_call_id: str
    tool_name: str
    arguments: str
    type: ClassVar[Literal["tool-call"]] = "tool-call"


class ToolState(Struct, frozen=True, tag_field="type", tag="tool-state", gc=False):
    """Where a call stands.

    A call that may not run never gets to `executing`, nor does a client tool's, which awaits its
    result from outside. A call is `dropped` when the caller put another conversation in its place.
    An error may be that the call was `denied`, or that its outcome is `unknown`. While it runs,
    `arguments` are those that an approver has put in place of its own, as JSON text; else empty.
    """

    key: str
    tool_name: str
    state: Literal[
        "awaiting-approval", "awaiting-result", "executing", "complete", "error", "dropped"
    ]
    denied: bool = False
    unknown: bool = False
    arguments: str = ""
    type: ClassVar[Literal["tool-state"]] = "tool-state"


class ToolApprovalRequest(
    Struct, frozen=True, tag_field="type", tag="tool-approval-request", gc=False
):
    """A human must decide about this call, before `expires_at` if it is told.

    `unknown` asks once more about a call that was approved and may have run. `agents` are the
    agents that the call is in, outermost first; in a child run, `key` is the child's own, and the
    answer's key is `"/".join((*path, key))` with the `path` of the `sub-agent` part around it.
    """

    key: str
    tool_call_id: str
    tool_name: str
    arguments: str
    expires_at: float | None = None
    unknown: bool = False
    agents: tuple[str, ...] = ()
    type: ClassVar[Literal["tool-approval-request"]] = "tool-approval-request"


class ToolResultPart(Struct, frozen=True, tag_field="type", tag="tool-result", gc=False):
    """A call is answered: live, as each tool ends; the history keeps the request's order.

    Of results of one key the last one counts: the caller may override what a tool said. The phase
    `resume` is that of calls which the run was handed in with, before its first turn.
    """

    result: ToolResult
    phase: Literal["turn", "resume"] = "turn"
    type: ClassVar[Literal["tool-result"]] = "tool-result"


class VerifyPart(Struct, frozen=True, tag_field="type", tag="verify", gc=False):
    """A check has judged the final answer; `attempt` counts its judgements from 1."""

    check: str
    attempt: int
    accepted: bool
    feedback: str
    type: ClassVar[Literal["verify"]] = "verify"


class ObjectDelta(Struct, frozen=True, tag_field="type", tag="object-delta", gc=False):
    """The final answer as far as it is written: a snapshot, checked against no schema yet."""

    object: PartialObject
    type: ClassVar[Literal["object-delta"]] = "object-delta"


class Warned(Struct, frozen=True, tag_field="type", tag="warning", gc=False):
    """Something the caller asked for cannot take full effect."""

    message: str
    type: ClassVar[Literal["warning"]] = "warning"


class BudgetExceeded(Struct, frozen=True, tag_field="type", tag="budget-exceeded", gc=False):
    """The run has ended by this limit of its budget: `value` was reached where `limit` was set."""

    which: str
    limit: float
    value: float
    type: ClassVar[Literal["budget-exceeded"]] = "budget-exceeded"


class Finish(Struct, frozen=True, tag_field="type", tag="finish", gc=False):
    """The run is over, or parked: the last part. `usage` and `cost_usd` are the whole run's.

    The usage is None where no server told it, the cost where the price of a call is not known.
    """

    finish_reason: FinishReason | None
    end_reason: EndReason
    stopped_by: tuple[str, ...]
    usage: Usage | None
    cost_usd: float | None = None
    type: ClassVar[Literal["finish"]] = "finish"


class ErrorPart(Struct, frozen=True, tag_field="type", tag="error"):
    """The run failed: the last part, and no finish follows."""

    error: Exception
    type: ClassVar[Literal["error"]] = "error"


def finish_of(run: Run[Any]) -> Finish:
    """Return the last part of a run that has ended, or that is parked."""
    ending, spent = run.ending, run.spent
    return Finish(
        run.record.steps[-1].finish_reason if run.record.steps else None,
        ending.reason if ending is not None and run.ended else EndReason.PARKED,
        ending.stopped_by if ending is not None else (),
        spent.told_usage,
        None if spent.unpriced_calls else spent.cost_usd,
    )
