"""Stream parts: the steps of a run as a caller sees them.

The parts of a turn come in this order: step-start,
compaction, messages from the queues, deltas, step-finish, cost, then tool-call, states and result
of each call. Parts of a child run come in between, each in one `sub-agent`. A successful stream
ends with one finish, a failed stream with one error. Callers ignore kinds that they do not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from ..effects import AskHuman, CallModel, CallTool, Effect, Invoke, StartRun
from ..events import (
    AnswerChecked,
    Answering,
    CallbackReturned,
    ChildEnded,
    EffectFailed,
    EffectsStarted,
    Event,
    ModelReplied,
    Queued,
    Resumed,
    Started,
    Steered,
)
from ..graph import NodeGraph
from ..node_protocol import Kind
from ..providers import Delta, Live, ReasoningDelta, Restarted, TextDelta, ToolCallDelta
from ..run import Run
from ..step import Step
from ..values import (
    FinishReason,
    ToolCall,
    ToolResult,
    UserMessage,
    call_key,
    evolve,
)
from .changes import (
    answer_of,
    calls_of,
    compacted,
    cost_of,
    edit_of,
    exceeded,
    latest_turn,
    new_messages,
    new_notes,
    results_of,
    turn_record,
)
from .kinds import (
    BudgetExceeded,
    CompactionPart,
    Cost,
    ErrorPart,
    Finish,
    MessageInjected,
    ObjectDelta,
    RunStart,
    StepFinish,
    StepRetry,
    StepStart,
    ToolApprovalRequest,
    ToolCallPart,
    ToolResultPart,
    ToolState,
    VerifyPart,
    Warned,
    finish_of,
)

__all__ = [
    "BudgetExceeded",
    "ChildSeen",
    "CompactionPart",
    "Cost",
    "Delta",
    "ErrorPart",
    "Finish",
    "MessageInjected",
    "ObjectDelta",
    "Part",
    "PartView",
    "ReasoningDelta",
    "RunStart",
    "StepFinish",
    "StepRetry",
    "StepStart",
    "SubAgent",
    "TextDelta",
    "ToolApprovalRequest",
    "ToolCallDelta",
    "ToolCallPart",
    "ToolResultPart",
    "ToolState",
    "VerifyPart",
    "Warned",
    "finish_of",
]

S = TypeVar("S")


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


class ChildSeen(Protocol):
    """A step or a delta of a child run, or of a child of that run."""

    @property
    def key(self) -> str:
        """The child's key in its parent: a call's, or a node's."""
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
    def seen(self) -> Step[Any] | Live | ChildSeen:
        """The step, the delta, or the same of the child's own child."""
        ...


class PartView(Generic[S]):
    """Turns the steps of one run into parts; deltas of the run's own model pass beside it.

    The caller takes all parts of a step before those of the next.

    Args:
        graph: the run's graph.
        resumed: the run at the step before the first that the view sees; None at its start.
    """

    def __init__(self, graph: NodeGraph[S], resumed: Run[S] | None = None) -> None:
        self._graph = graph
        self._run = resumed
        self._turn = -1
        self._shown: dict[str, ToolResult] = {}
        self._following: tuple[UserMessage, ...] = ()
        self._children: dict[str, PartView[Any]] = {}
        if resumed is not None:
            self._turn = latest_turn(graph, resumed)
            self._shown = {result.key: result for result in results_of(resumed, self._turn)}

    def shows_deltas(self, run: Run[S]) -> bool:
        """Whether the current model call is the run's own, not a critic's or a summary's."""
        return self._kind(run) == "model"

    def see(self, taken: Step[S]) -> Iterator[Part]:
        """Yield the parts of one step."""
        before, run, event = self._run, taken.run, taken.event
        self._run = run
        if isinstance(event, EffectsStarted | Queued | Resumed):
            return
        if before is None:
            yield RunStart(run.id)
        else:
            yield from self._event(before, event, run)
        yield from self._results(run)
        for message in new_notes(before, event, run):
            yield MessageInjected(message, "caller")
        yield from self._turns(before, event, run)
        for effect in taken.effects:
            yield from self._requested(effect, run)
        if run.ended:
            for limit in exceeded(run):
                yield BudgetExceeded(*limit)

    def see_child(
        self, key: str, agent: str, graph: NodeGraph[Any], seen: Step[Any] | Live | ChildSeen
    ) -> Iterator[SubAgent]:
        """Yield the parts of a step or a delta of a child run, each in its wrapper.

        Args:
            key: the child's key in this run.
            agent: the name of the agent that it runs.
            graph: the child's graph.
            seen: a step or a delta of the child, or of its own child.
        """
        view = self._children.get(key)
        if view is None:
            view = self._children[key] = PartView(graph)
            # A parked child is resumed: its first visible step is not its first step.
            if isinstance(seen, Step) and not isinstance(seen.event, Started):
                view = self._children[key] = PartView(graph, seen.run)
                yield _wrapped(key, agent, RunStart(seen.run.id))
        for part in view._as_child(seen):
            yield _wrapped(key, agent, part)
        if isinstance(seen, Step) and seen.run.ended:
            del self._children[key]
            yield _wrapped(key, agent, finish_of(seen.run))

    def live(self, said: Live) -> Part:
        """Return the part for a delta, or for a restart of the model call."""
        return StepRetry(self._turn, FinishReason.OTHER) if isinstance(said, Restarted) else said

    def _as_child(self, seen: Step[S] | Live | ChildSeen) -> Iterator[Part]:
        """Yield the parts that this run shows to its parent."""
        if isinstance(seen, Step):
            yield from self.see(seen)
        elif not isinstance(seen, TextDelta | ReasoningDelta | ToolCallDelta | Restarted):
            yield from self.see_child(seen.key, seen.agent, seen.graph, seen.seen)
        elif self._run is not None and self.shows_deltas(self._run):
            yield self.live(seen)

    def _kind(self, run: Run[S]) -> Kind | None:
        """Return the kind of the node at which a run waits."""
        node = self._graph.nodes.get(run.node)
        return None if node is None else node.kind

    def _event(self, before: Run[S], event: Event, run: Run[S]) -> Iterator[Part]:
        """Yield the parts of the event itself."""
        asked = before.pending.get(event.effect) if isinstance(event, Answering) else None
        match event, asked:
            case ModelReplied(reply=reply), CallModel() if self.shows_deltas(before):
                cost_usd, calls = event.cost_usd, reply.message.calls
                yield from self._replied(run, reply.finish_reason, cost_usd, calls)
            case ((ChildEnded() | CallbackReturned()), _) if self._kind(before) == "graph":
                yield from self._answered(before, event, run)
            case EffectFailed(), CallModel() if self.shows_deltas(before) and not run.ended:
                full = event.failure.error == "ContextOverflow"
                if full or event.content_seen:
                    reason = FinishReason.CONTEXT_WINDOW if full else FinishReason.OTHER
                    yield StepRetry(self._turn, reason)
            case CallbackReturned(answer=AnswerChecked() as judged), Invoke(callback=check):
                attempt = before.counters.rejections.get(check, 0) + 1
                yield VerifyPart(check, attempt, judged.accepted, judged.feedback)
            case Steered(), _:
                yield from self._steered(before, event, run)
            case _:
                return

    def _replied(
        self,
        run: Run[S],
        finish: FinishReason,
        cost_usd: float | None,
        calls: tuple[ToolCall, ...],
    ) -> Iterator[Part]:
        """Yield the parts of a turn whose answer has arrived."""
        turn, record = self._turn, turn_record(run, self._turn)
        asked_again = record is None and run.turn.reply is None
        if asked_again:
            yield StepRetry(turn, finish)
        else:
            yield StepFinish(turn, finish, run.turn.usage if record is None else record.usage)
        if cost_usd is not None:
            yield Cost(turn, run.spent.cost_usd, cost_usd)
        if not asked_again:
            for place, call in enumerate(calls):
                yield _called(call_key(turn, place), call)

    def _answered(self, before: Run[S], event: Event, run: Run[S]) -> Iterator[Part]:
        """Yield the answer of agents in the model's place, once it is the turn's answer."""
        answer, cost_usd = answer_of(before, run, self._turn), cost_of(event)
        if answer is not None:
            yield TextDelta(answer)
            yield from self._replied(run, FinishReason.STOP, cost_usd, ())
        elif before.turn.branches and cost_usd is not None:
            yield Cost(self._turn, run.spent.cost_usd, cost_usd)

    def _steered(self, before: Run[S], event: Steered, run: Run[S]) -> Iterator[Part]:
        """Yield the parts of a turn whose conversation the caller has replaced."""
        for message in new_messages(before, event):
            yield MessageInjected(message, "caller")
        if event.messages is None or self._turn < 0:
            return
        old, new = before.turn.calls, calls_of(run, self._turn)
        for place, call in enumerate(new):
            if place >= len(old) or old[place] != call:
                yield _called(call_key(self._turn, place), call)
        for place in range(len(new), len(old)):
            key = call_key(self._turn, place)
            if key not in self._shown:
                yield ToolState(key, old[place].name, "dropped")

    def _results(self, run: Run[S]) -> Iterator[Part]:
        """Yield the results that are new in this step."""
        phase: Literal["turn", "resume"] = "resume" if self._turn < 0 else "turn"
        for result in results_of(run, self._turn):
            shown = self._shown.get(result.key)
            if shown is not result and shown != result:
                self._shown[result.key] = result
                yield ToolResultPart(result, phase)
                yield _outcome(result)

    def _turns(self, before: Run[S] | None, event: Event, run: Run[S]) -> Iterator[Part]:
        """Yield the parts at the start of a turn."""
        latest = latest_turn(self._graph, run)
        while self._turn < latest:
            self._turn += 1
            self._shown = {}
            yield StepStart(self._turn)
        sizes = compacted(self._graph, before, event, run)
        if sizes is not None:
            yield CompactionPart(self._turn, *sizes)
        if before is not None:
            yield from self._from_queues(before, run)
        elif isinstance(event, Started):
            for message in event.steering[: len(event.steering) - len(run.inbox.steering)]:
                yield MessageInjected(message, "steering")

    def _from_queues(self, before: Run[S], run: Run[S]) -> Iterator[Part]:
        """Yield the messages that moved from the queues into the conversation."""
        old, new = before.inbox, run.inbox
        following = old.follow_ups[: len(old.follow_ups) - len(new.follow_ups)]
        self._following += following
        waiting = (*old.steering, *following)
        for message in waiting[: len(waiting) - len(new.steering)]:
            origin: Literal["steering", "follow_up"] = "steering"
            if message in self._following:
                origin = "follow_up"
                self._following = tuple([m for m in self._following if m is not message])
            yield MessageInjected(message, origin)

    def _requested(self, effect: Effect, run: Run[S]) -> Iterator[Part]:
        """Yield the new state of the call that an effect is about."""
        match effect:
            case AskHuman(key=key, call=call):
                yield ToolState(key, call.name, "awaiting-approval")
                yield ToolApprovalRequest(
                    key, call.id, call.name, call.arguments, effect.expires_at, effect.unknown
                )
            case CallTool(key=key, call=call, client=client):
                edit = edit_of(run, key)
                yield ToolState(
                    key, call.name, "awaiting-result" if client else "executing", arguments=edit
                )
            case StartRun(key=key, agent=agent) if self._kind(run) == "execute":
                yield ToolState(key, agent, "executing", arguments=edit_of(run, key))
            case _:
                return


def _called(key: str, call: ToolCall) -> ToolCallPart:
    return ToolCallPart(key, call.id, call.name, call.arguments)


def _outcome(result: ToolResult) -> ToolState:
    state: Literal["error", "complete"] = "error" if result.is_error else "complete"
    denied, unknown = result.status == "denied", result.status == "unknown"
    return ToolState(result.key, result.name, state, denied, unknown)


def _wrapped(key: str, agent: str, part: Part) -> SubAgent:
    """Return a part of a child in its wrapper; a wrapped part gets a longer path instead."""
    path: tuple[str, ...] = (key,)
    agents: tuple[str, ...] = (agent,)
    if isinstance(part, SubAgent):
        path, agents, part = (key, *part.path), (agent, *part.agents), part.part
    if isinstance(part, ToolApprovalRequest):
        part = evolve(part, agents=agents)
    return SubAgent(path, agents, part)
