"""Stream parts: what a run looks like from outside, made from its steps.

Names and order are CONTRACT §2.2 and §2.3. The parts of a turn come in this order: step-start,
deltas, step-finish, cost, then for each call tool-call and its states and result. A successful
stream ends with one finish, a failed one with one error. New kinds may be added: ignore unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Generic, Literal, TypeAlias, TypeVar

from msgspec import Struct

from ..effects import AskHuman, CallModel, CallTool
from ..events import ModelReplied, Started
from ..graph import Graph
from ..providers.base import Delta
from ..run import EndReason, Run, StepResult
from ..step import Step
from ..values import FinishReason, ToolCall, ToolResult, Usage, call_key

__all__ = [
    "Cost",
    "ErrorPart",
    "Finish",
    "Part",
    "PartView",
    "RunStart",
    "StepFinish",
    "StepRetry",
    "StepStart",
    "ToolApprovalRequest",
    "ToolCallPart",
    "ToolResultPart",
    "ToolState",
    "Warned",
]

S = TypeVar("S")


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
    """A call is complete; `key` is graphloop's own, `tool_call_id` the provider's."""

    key: str
    tool_call_id: str
    tool_name: str
    arguments: str
    type: ClassVar[Literal["tool-call"]] = "tool-call"


class ToolState(Struct, frozen=True, tag_field="type", tag="tool-state", gc=False):
    """Where a call stands.

    A call that may not run never gets to `executing`, nor does a client tool's, which awaits its
    result from outside.
    """

    key: str
    tool_name: str
    state: Literal["awaiting-approval", "awaiting-result", "executing", "complete", "error"]
    denied: bool = False
    type: ClassVar[Literal["tool-state"]] = "tool-state"


class ToolApprovalRequest(
    Struct, frozen=True, tag_field="type", tag="tool-approval-request", gc=False
):
    """A human must decide about this call."""

    key: str
    tool_call_id: str
    tool_name: str
    arguments: str
    type: ClassVar[Literal["tool-approval-request"]] = "tool-approval-request"


class ToolResultPart(Struct, frozen=True, tag_field="type", tag="tool-result", gc=False):
    """A call is answered: live, as each tool ends; the history keeps the request's order."""

    result: ToolResult
    type: ClassVar[Literal["tool-result"]] = "tool-result"


class Warned(Struct, frozen=True, tag_field="type", tag="warning", gc=False):
    """Something the caller asked for cannot take full effect."""

    message: str
    type: ClassVar[Literal["warning"]] = "warning"


class Finish(Struct, frozen=True, tag_field="type", tag="finish", gc=False):
    """The run is over, or parked: the last part. `usage` is the whole run's."""

    finish_reason: FinishReason | None
    end_reason: EndReason
    stopped_by: tuple[str, ...]
    usage: Usage
    type: ClassVar[Literal["finish"]] = "finish"


class ErrorPart(Struct, frozen=True, tag_field="type", tag="error"):
    """The run failed: the last part, and no finish follows."""

    error: Exception
    type: ClassVar[Literal["error"]] = "error"


Part: TypeAlias = (
    Delta
    | RunStart
    | StepStart
    | StepRetry
    | StepFinish
    | Cost
    | ToolCallPart
    | ToolState
    | ToolApprovalRequest
    | ToolResultPart
    | Warned
    | Finish
    | ErrorPart
)


class PartView(Generic[S]):
    """Turns the steps of one run into parts. Deltas pass beside it.

    Args:
        graph: what the run runs.
        resumed: the run as it stands where the view begins; None at its very start.
    """

    def __init__(self, graph: Graph[S], resumed: Run[S] | None = None) -> None:
        self._graph = graph
        self._turn = -1
        self._asked: int | None = None
        self._answered: set[str] = set()
        if resumed is not None:
            self._turn = resumed.turn.number
            self._answered = {result.key for result in resumed.turn.results if result is not None}
            if self.shows_deltas(resumed):
                self._asked = max(resumed.pending, default=None)

    def shows_deltas(self, run: Run[S]) -> bool:
        """Whether what a model says now is the run's own answer, not a critic's."""
        node = self._graph.nodes.get(run.node)
        return node is not None and node.kind == "model"

    def see(self, taken: Step[S]) -> Iterator[Part]:
        """Yield the parts of one step."""
        event, run = taken.event, taken.run
        if isinstance(event, Started):
            yield RunStart(event.run_id)
        elif isinstance(event, ModelReplied) and event.effect == self._asked:
            yield from self._replied(event, run)
        yield from self._results(run)
        for effect in taken.effects:
            match effect:
                case CallModel(id=effect_id) if self.shows_deltas(run):
                    self._asked = effect_id
                    if self._turn != run.turn.number:
                        self._turn = run.turn.number
                        yield StepStart(self._turn)
                case AskHuman(key=key, call=call):
                    yield ToolState(key, call.name, "awaiting-approval")
                    yield ToolApprovalRequest(key, call.id, call.name, call.arguments)
                case CallTool(key=key, call=call, client=client):
                    yield ToolState(key, call.name, "awaiting-result" if client else "executing")
                case _:
                    pass

    def _closed(self, run: Run[S]) -> StepResult | None:
        """Return the record of the turn that was last begun, once there is one."""
        latest = run.steps[-1] if run.steps else None
        return latest if latest is not None and latest.index == self._turn else None

    def _replied(self, event: ModelReplied, run: Run[S]) -> Iterator[Part]:
        index, reply, closed = self._turn, event.reply, self._closed(run)
        if closed is None and run.turn.reply is None:
            yield StepRetry(index, reply.finish_reason)
            calls: tuple[ToolCall, ...] = ()
        else:
            usage = run.turn.usage if closed is None else closed.usage
            yield StepFinish(index, reply.finish_reason, usage)
            calls = reply.message.calls
        if event.cost_usd is not None:
            yield Cost(index, run.spent.cost_usd, event.cost_usd)
        self._answered.clear()
        for place, call in enumerate(calls):
            yield ToolCallPart(call_key(index, place), call.id, call.name, call.arguments)

    def _results(self, run: Run[S]) -> Iterator[Part]:
        """Yield the results that are new in this step."""
        closed = self._closed(run)
        for result in run.turn.results if closed is None else closed.tool_results:
            if result is not None and result.key not in self._answered:
                self._answered.add(result.key)
                yield ToolResultPart(result)
                state: Literal["error", "complete"] = "error" if result.is_error else "complete"
                yield ToolState(result.key, result.name, state, result.status == "denied")
