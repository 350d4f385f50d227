"""part_kinds: the fields of each part of a stream; `parts` decides the order of the parts.

Later versions may add kinds and fields, and rename none: callers must ignore unknown kinds and
fields. Deltas are parts too, defined in `providers.base`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from msgspec import Struct

from ..graph import NodeGraph
from ..providers import Delta, Live
from ..run import EndReason, Run
from ..step import Step
from ..tools import ToolProgress
from ..values import FinishReason, Message, ToolResult, Usage

__all__ = [
    "BudgetExceeded",
    "CallState",
    "ChildSeen",
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
"""A JSON value; this alias is needed where a field named `object` hides the built-in type."""


class RunStart(Struct, frozen=True, tag_field="type", tag="run-start", gc=False):
    """The run has started, or has been resumed."""

    run_id: str
    type: ClassVar[Literal["run-start"]] = "run-start"


class StepStart(Struct, frozen=True, tag_field="type", tag="step-start", gc=False):
    """A model turn starts; turns count from 0, without gaps."""

    step_index: int
    type: ClassVar[Literal["step-start"]] = "step-start"


class StepRetry(Struct, frozen=True, tag_field="type", tag="step-retry", gc=False):
    """The model is asked again in this turn, so the deltas of the turn so far are void."""

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
    """A message from outside the run is now in the conversation, and the model will read it.

    The origin `caller` means that the caller of an iterated run added it; the other origins name
    the queue of the message.
    """

    message: Message
    origin: Literal["steering", "follow_up", "caller"]
    type: ClassVar[Literal["message-injected"]] = "message-injected"


class StepFinish(Struct, frozen=True, tag_field="type", tag="step-finish", gc=False):
    """The model's reply in a turn is complete; `usage` is the usage of this turn."""

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
    """A tool call is complete; `key` is graphloop's own, `tool_call_id` the provider's id.

    If the caller replaces the conversation, a later part with the same key replaces this one.
    """

    key: str
    tool_call_id: str
    tool_name: str
    arguments: str
    type: ClassVar[Literal["tool-call"]] = "tool-call"


class ToolState(Struct, frozen=True, tag_field="type", tag="tool-state", gc=False):
    """The new state of a tool call.

    A denied call is never `executing`. Nor is a call of a client tool, since its result comes from
    outside. A call is `dropped` when the caller replaces the conversation by one without the call.
    In the state `error`, the call may have been `denied`, or its effect may be `unknown`. In the
    state `executing`, `arguments` is the JSON text that an approver edited; empty without an edit.
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

    `unknown` means that the call was approved before and may have run. `agents` are the agents
    around the call, outermost first. In a child run, `key` is the call's key in that child, and an
    approval needs the key `"/".join((*path, key))`, with the `path` of the enclosing `sub-agent`.
    `takes` is the JSON Schema text of the answer where a node or a running tool asks, else empty.
    `server` is the name of the foreign server that runs the tool, else empty.
    """

    key: str
    tool_call_id: str
    tool_name: str
    arguments: str
    expires_at: float | None = None
    unknown: bool = False
    agents: tuple[str, ...] = ()
    takes: str = ""
    server: str = ""
    type: ClassVar[Literal["tool-approval-request"]] = "tool-approval-request"


class ToolResultPart(Struct, frozen=True, tag_field="type", tag="tool-result", gc=False):
    """The result of a call, as soon as its tool ends; the history keeps the order of requests.

    If several results have one key, the last one is valid: the caller may override a result. The
    phase is `resume` for calls of the initial conversation, before the first turn.
    """

    result: ToolResult
    phase: Literal["turn", "resume"] = "turn"
    type: ClassVar[Literal["tool-result"]] = "tool-result"


class VerifyPart(Struct, frozen=True, tag_field="type", tag="verify", gc=False):
    """A check has reviewed the final answer; `attempt` counts the reviews of this check from 1."""

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
    """The budget limit `which` has ended the run; `value` is the amount that the run reached."""

    which: str
    limit: float
    value: float
    type: ClassVar[Literal["budget-exceeded"]] = "budget-exceeded"


class Finish(Struct, frozen=True, tag_field="type", tag="finish", gc=False):
    """The last part of a run that ended or parked; `usage` and `cost_usd` cover the whole run.

    `usage` is None if no server reported it, `cost_usd` if the price of a model call is unknown.
    """

    finish_reason: FinishReason | None
    end_reason: EndReason
    stopped_by: tuple[str, ...]
    usage: Usage | None
    cost_usd: float | None = None
    type: ClassVar[Literal["finish"]] = "finish"


class ErrorPart(Struct, frozen=True, tag_field="type", tag="error"):
    """The last part of a failed run; such a run has no `Finish`."""

    error: Exception
    type: ClassVar[Literal["error"]] = "error"


class SubAgent(Struct, frozen=True, tag_field="type", tag="sub-agent"):
    """A part of a child run, wrapped once at any depth of nesting; an ended child sends a finish.

    `path` holds the keys of the calls (or nodes) that lead to the child, outermost first. `agents`
    holds the names of the agents that these calls or nodes run.
    """

    path: tuple[str, ...]
    agents: tuple[str, ...]
    part: Part
    type: ClassVar[Literal["sub-agent"]] = "sub-agent"


Part: TypeAlias = (
    Delta
    | ToolProgress
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


class ChildSeen(Protocol):
    """A step or a delta of a child run, or of a run nested in that child."""

    @property
    def key(self) -> str:
        """The child's key in its parent: the key of a call or of a node."""
        ...

    @property
    def agent(self) -> str:
        """The name of the agent that the child runs."""
        ...

    @property
    def graph(self) -> NodeGraph[Any]:
        """The child's graph."""
        ...

    @property
    def seen(self) -> Step[Any] | Live | ToolProgress | ChildSeen:
        """The child's step or delta, or a `ChildSeen` of the child's own child."""
        ...
