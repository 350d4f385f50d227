"""part_kinds: the fields of each part of a stream; `parts` keeps their order.

Later versions may add kinds and fields, and rename none: callers
ignore those that they do not know. Deltas are parts too, defined in `providers.base`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

from msgspec import Struct

from ..providers import Delta
from ..run import EndReason, Run
from ..values import FinishReason, Message, ToolResult, Usage

__all__ = [
    "BudgetExceeded",
    "CallState",
    "CompactionPart",
    "Cost",
    "ErrorPart",
    "Finish",
    "MessageInjected",
    "ObjectDelta",
    "Part",
    "RunStart",
    "StepFinish",
    "StepRetry",
    "StepStart",
    "SubAgent",
    "ToolApprovalRequest",
    "ToolCallPart",
    "ToolResultPart",
    "ToolState",
    "VerifyPart",
    "Warned",
    "finish_of",
]

CallState: TypeAlias = Literal[
    "awaiting-approval", "awaiting-result", "executing", "complete", "error", "dropped"
]

PartialObject: TypeAlias = object
"""A JSON value; the field `object` hides the name of its own type."""


class RunStart(Struct, frozen=True, tag_field="type", tag="run-start", gc=False):
    """The run has started, or is resumed."""

    run_id: str
    type: ClassVar[Literal["run-start"]] = "run-start"


class StepStart(Struct, frozen=True, tag_field="type", tag="step-start", gc=False):
    """A model turn starts; turns count from 0, without gaps."""

    step_index: int
    type: ClassVar[Literal["step-start"]] = "step-start"


class StepRetry(Struct, frozen=True, tag_field="type", tag="step-retry", gc=False):
    """The model is asked again in this turn: the deltas of the turn so far are void."""

    step_index: int
    reason: FinishReason
    type: ClassVar[Literal["step-retry"]] = "step-retry"


class CompactionPart(Struct, frozen=True, tag_field="type", tag="compaction", gc=False):
    """The conversation became shorter for this turn; tokens are estimates."""

    step_index: int
    tokens_before: int
    tokens_after: int
    messages_before: int
    messages_after: int
    type: ClassVar[Literal["compaction"]] = "compaction"


class MessageInjected(Struct, frozen=True, tag_field="type", tag="message-injected", gc=False):
    """A message from outside is now in the conversation, and the model will read it.

    The origin `caller` is the caller of an iterated run.
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
    """The cost of the run so far, and of this model call, in US dollars."""

    step_index: int
    cost_usd: float
    delta_usd: float
    type: ClassVar[Literal["cost"]] = "cost"


class ToolCallPart(Struct, frozen=True, tag_field="type", tag="tool-call", gc=False):
    """A call is complete; `key` is graphloop's own, `tool_call_id` the provider's.

    A later part of the same key replaces it: the caller has replaced the conversation.
    """

    key: str
    tool_call_id: str
    tool_name: str
    arguments: str
    type: ClassVar[Literal["tool-call"]] = "tool-call"


class ToolState(Struct, frozen=True, tag_field="type", tag="tool-state", gc=False):
    """The state of a call.

    A denied call never gets to `executing`, nor does a client tool's call, whose result comes from
    outside. A call is `dropped` when the caller replaces the conversation without it. An error may
    mean that the call was `denied`, or that its outcome is `unknown`. While a call runs,
    `arguments` are those of an approver, as JSON text; empty for the call's own.
    """

    key: str
    tool_name: str
    state: CallState
    denied: bool = False
    unknown: bool = False
    arguments: str = ""
    type: ClassVar[Literal["tool-state"]] = "tool-state"


class ToolApprovalRequest(
    Struct, frozen=True, tag_field="type", tag="tool-approval-request", gc=False
):
    """A person must decide about this call, before `expires_at` if that is set.

    `unknown` asks again about an approved call that may have run. `agents` are the agents that the
    call is in, outermost first. In a child run, `key` is the child's own, and the key of the answer
    is `"/".join((*path, key))` with the `path` of the `sub-agent` part around it.
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
    """The result of a call: live, as each tool ends; the history keeps the request's order.

    Of several results of one key the last counts: the caller may override the tool's. The phase
    `resume` is that of calls in the conversation handed in, before the first turn.
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
    """A snapshot of the final answer while the model writes it, not yet checked."""

    object: PartialObject
    type: ClassVar[Literal["object-delta"]] = "object-delta"


class Warned(Struct, frozen=True, tag_field="type", tag="warning", gc=False):
    """An option of the caller cannot take full effect."""

    message: str
    type: ClassVar[Literal["warning"]] = "warning"


class BudgetExceeded(Struct, frozen=True, tag_field="type", tag="budget-exceeded", gc=False):
    """This limit of the budget has ended the run, which had reached `value`."""

    which: str
    limit: float
    value: float
    type: ClassVar[Literal["budget-exceeded"]] = "budget-exceeded"


class Finish(Struct, frozen=True, tag_field="type", tag="finish", gc=False):
    """The run is over, or parked: the last part. `usage` and `cost_usd` are the whole run's.

    The usage is None where no server reported it, the cost where the price of a call is unknown.
    """

    finish_reason: FinishReason | None
    end_reason: EndReason
    stopped_by: tuple[str, ...]
    usage: Usage | None
    cost_usd: float | None = None
    type: ClassVar[Literal["finish"]] = "finish"


class ErrorPart(Struct, frozen=True, tag_field="type", tag="error"):
    """The run failed: this is the last part, without a finish."""

    error: Exception
    type: ClassVar[Literal["error"]] = "error"


class SubAgent(Struct, frozen=True, tag_field="type", tag="sub-agent"):
    """A part of a child run, in one wrapper at any depth; a child that ended shows a finish.

    `path` holds the keys of the calls (or nodes) that lead to the child, outermost first, and
    `agents` the names of the agents they run.
    """

    path: tuple[str, ...]
    agents: tuple[str, ...]
    part: Part
    type: ClassVar[Literal["sub-agent"]] = "sub-agent"


Part: TypeAlias = (
    Delta
    | RunStart
    | StepStart
    | StepRetry
    | CompactionPart
    | MessageInjected
    | StepFinish
    | Cost
    | ToolCallPart
    | ToolState
    | ToolApprovalRequest
    | ToolResultPart
    | VerifyPart
    | ObjectDelta
    | SubAgent
    | Warned
    | BudgetExceeded
    | Finish
    | ErrorPart
)


def finish_of(run: Run[Any]) -> Finish:
    """Return the last part of a run that has ended or is parked."""
    ending, spent = run.ending, run.spent
    return Finish(
        run.record.steps[-1].finish_reason if run.record.steps else None,
        ending.reason if ending is not None and run.ended else EndReason.PARKED,
        ending.stopped_by if ending is not None else (),
        spent.told_usage,
        None if spent.unpriced_calls else spent.cost_usd,
    )
