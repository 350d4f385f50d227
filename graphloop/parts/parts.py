"""Stream parts: converts the steps of a run into the parts that a caller receives.

The parts of a turn have this order: step-start, compaction, messages from queues, deltas,
step-finish, cost, then tool-call, states and result of each call. Parts of a child run come in
between, each in a `sub-agent`. A successful stream ends with one finish, a failed stream with one
error. Callers must ignore unknown kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Generic, Literal, TypeVar, cast

from ..effects import (
    AskHuman,
    AwaitCaller,
    CallModel,
    CallTool,
    CheckCalls,
    Effect,
    Invoke,
    StartRun,
)
from ..events import (
    AnswerChecked,
    CallbackReturned,
    CallsChecked,
    ChildEnded,
    Decided,
    EffectFailed,
    EffectsStarted,
    Event,
    ModelReplied,
    Queued,
    Resumed,
    Started,
    Steered,
    ToolAsked,
    ToolReturned,
)
from ..graph import NodeGraph
from ..node_protocol import Kind
from ..providers import Live, Restarted, TextDelta, is_live
from ..questions import ask_key, question_of
from ..run import Run
from ..step import Step
from ..tools import ToolProgress
from ..turn import SCREEN, Screening, StepResult
from ..values import FinishReason, ToolCall, ToolResult, UserMessage, call_key, evolve
from .changes import (
    AnyNode,
    answer_of,
    before_first,
    calls_of,
    closed_turn,
    compacted,
    cost_of,
    edit_of,
    exceeded,
    latest_turn,
    let_pass,
    new_messages,
    new_notes,
    new_results,
    still_judging,
    turn_record,
)
from .kinds import (
    CallState,
    ChildSeen,
    CompactionPart,
    Cost,
    MessageInjected,
    Part,
    RunStart,
    StepFinish,
    StepRetry,
    StepStart,
    SubAgent,
    ToolApprovalRequest,
    ToolCallPart,
    ToolResultPart,
    ToolState,
    VerifyPart,
    finish_of,
)

__all__ = ["PartView"]

S = TypeVar("S")

UNSEEN: Final = frozenset({EffectsStarted, Queued, Resumed})
"""Events whose steps yield no parts."""

SILENT: Final = frozenset({Started, CallsChecked, ToolReturned, ToolAsked, Decided})
"""Event types that yield no parts themselves; the changes that they cause in the run do."""

UNSEEN_EFFECTS: Final = frozenset({CallModel, CheckCalls, Invoke, AwaitCaller})
"""Effect types that yield no parts, because they do not concern a single call."""


class PartView(Generic[S]):
    """Converts the steps of one run into parts, and what is no step, such as a model's delta.

    Consume all parts of one step before passing the next step.

    Args:
        graph: the run's graph.
        resumed: the run before the first step that the view sees; None for a new run.

    Attributes:
        is_plain: whether each delta of the model that talks is a part, and the only one.
    """

    def __init__(self, graph: NodeGraph[S], resumed: Run[S] | None = None) -> None:
        self._graph = graph
        self._run = resumed
        self._node = None if resumed is None else graph.nodes.get(resumed.node)
        self._turn = -1
        self._shown: dict[str, ToolResult | None] = {}  # None for a call without a result.
        self._following: tuple[UserMessage, ...] = ()
        self._children: dict[str, PartView[Any]] = {}
        self._unjudged: list[Part] | None = None
        self.is_plain = False
        if resumed is not None:
            self._unjudged = None if resumed.turn.screening is None else []
            self._turn = latest_turn(self._node, resumed)
            closed = turn_record(resumed, self._turn)
            found = new_results(resumed, self._turn, closed, self._shown)
            self._shown = {one.key: one for one in found}

    def resumed(self, run: Run[S]) -> Sequence[Part]:
        """Return the parts for a run that is resumed, and for the calls that now start."""
        calls = [one for one in run.pending.values() if isinstance(one, CallTool)]
        starting = [call for call in calls if not (call.client or call.id in run.started)]
        parts = [part for call in starting for part in self._effect_parts(call, run)]
        return (RunStart(run.id), *parts)

    def see(self, taken: Step[S]) -> Sequence[Part]:
        """Return the parts for one step of the run.

        A step keeps the objects that it does not change, and these yield no parts.
        """
        before, run, event = self._run, taken.run, taken.event
        self._run = run
        if type(event) in UNSEEN:
            return ()
        was_at, self._node = self._node, self._graph.nodes.get(run.node)
        parts: list[Part] = []
        if before is None:
            parts.append(RunStart(run.id))
            before = before_first(event, run)
        if type(event) not in SILENT:
            parts += self._event_parts(before, was_at, event, run)
        if self._unjudged is not None or run.turn.screening is not None:
            parts += self._parts_after_screen(before, event, run)
        is_noted = before.record is not run.record
        closed = closed_turn(before, run) if is_noted else None
        if is_noted or before.turn.results is not run.turn.results:
            parts += self._result_parts(run, closed)
        if is_noted or before.inbox is not run.inbox or not run.turn.asked:
            parts += self._turn_parts(before, was_at, event, run)
        if closed is not None and closed.reply.model == SCREEN:  # It refused what the user said.
            parts.append(TextDelta(closed.text))
            parts.append(StepFinish(closed.index, closed.finish_reason, closed.usage))
        for effect in taken.effects:
            if type(effect) not in UNSEEN_EFFECTS:
                parts += self._effect_parts(effect, run)
        return parts if run.node != "END" else [*parts, *exceeded(run)]

    def show(self, seen: Live | ToolProgress | ChildSeen) -> Sequence[Part]:
        """Return the parts for what is no step: a delta, a tool's report, or a child run's item."""
        if is_live(seen):
            # A model call for a review or a summary is not the run's own.
            talks = self._node is not None and self._node.kind == "model"
            self.is_plain = talks and self._unjudged is None
            if not talks:
                return ()
        elif not isinstance(seen, ToolProgress):
            return [*self.see_child(seen.key, seen.agent, seen.graph, seen.seen)]
        part = StepRetry(self._turn, FinishReason.OTHER) if isinstance(seen, Restarted) else seen
        if self._unjudged is None:
            return (part,)
        self._unjudged.append(part)  # A screen judges beside the call.
        return ()

    def see_child(
        self,
        key: str,
        agent: str,
        graph: NodeGraph[Any],
        seen: Step[Any] | Live | ToolProgress | ChildSeen,
    ) -> Iterator[SubAgent]:
        """Yield the parts for a step, a delta or a report of a child run, each in a `SubAgent`.

        Args:
            key: the child's key in this run.
            agent: the name of the agent that the child runs.
            graph: the child's graph.
            seen: a step or a delta of the child, or of its own child.
        """
        view = self._children.get(key)
        if view is None:
            view = self._children[key] = PartView(graph)
            # The first visible step of a resumed child is not the first step of its run.
            if isinstance(seen, Step) and not isinstance(seen.event, Started):
                view = self._children[key] = PartView(graph, seen.run)
                yield _wrap_child_part(key, agent, RunStart(seen.run.id))
        for part in view.see(seen) if isinstance(seen, Step) else view.show(seen):
            yield _wrap_child_part(key, agent, part)
        if isinstance(seen, Step) and seen.run.ended:
            del self._children[key]
            yield _wrap_child_part(key, agent, finish_of(seen.run))

    def _event_parts(
        self, before: Run[S], was_at: AnyNode | None, event: Event, run: Run[S]
    ) -> Iterable[Part]:
        """Return the parts for the event itself, without those for results and new effects."""
        kind = None if was_at is None else was_at.kind
        match event:
            case ModelReplied() if kind == "model" and before.turn.screening is None:
                calls = event.reply.message.calls
                return self._reply_parts(
                    before, run, event.reply.finish_reason, event.cost_usd, calls
                )
            case ChildEnded() | CallbackReturned() if kind == "graph":
                return self._child_answer_parts(before, event, run)
            case EffectFailed() if _answers_model(before, kind, event.effect) and not run.ended:
                full = event.failure.error == "ContextOverflow"
                reason = FinishReason.CONTEXT_WINDOW if full else FinishReason.OTHER
                return [StepRetry(self._turn, reason)] if full or event.content_seen else ()
            case CallbackReturned(answer=AnswerChecked() as judged):
                check = cast("Invoke", before.pending[event.effect]).callback  # It is answered.
                attempt = before.counters.rejections.get(check, 0) + 1
                return [VerifyPart(check, attempt, judged.accepted, judged.feedback)]
            case Steered():
                return self._steering_parts(before, event, run)
            case _:
                return ()

    def _parts_after_screen(self, before: Run[S], event: Event, run: Run[S]) -> list[Part]:
        """Return the parts that waited for the verdict of a screen, once it has let all pass."""
        waiting = self._unjudged or []
        if not still_judging(before, run):
            self._unjudged = None if run.turn.screening is None else []
        if not let_pass(before, event, run):
            return []
        match before.turn.screening:
            case Screening(answer=ModelReplied(reply=reply, cost_usd=cost_usd)):
                calls = reply.message.calls
                replied = self._reply_parts(before, run, reply.finish_reason, cost_usd, calls)
                return [*waiting, *replied]
            case Screening(answer=EffectFailed(content_seen=True)):
                return [*waiting, StepRetry(self._turn, FinishReason.OTHER)]
            case _:
                return waiting

    def _reply_parts(
        self,
        before: Run[S],
        run: Run[S],
        finish: FinishReason,
        cost_usd: float | None,
        calls: tuple[ToolCall, ...],
    ) -> list[Part]:
        """Return the parts for a reply: step-finish or step-retry, cost, and each tool call."""
        turn = self._turn
        record = None if before.record is run.record else turn_record(run, turn)
        if record is None and run.turn.reply is None:
            parts: list[Part] = [StepRetry(turn, finish)]
            calls = ()
        else:
            usage = run.turn.usage if record is None else record.usage
            parts = [StepFinish(turn, finish, usage)]
        if cost_usd is not None:
            parts.append(Cost(turn, run.spent.cost_usd, cost_usd))
        for place, call in enumerate(calls):
            key = call_key(turn, place)
            self._shown.setdefault(key, None)
            parts.append(_tool_call_part(key, call))
        return parts

    def _child_answer_parts(self, before: Run[S], event: Event, run: Run[S]) -> Iterator[Part]:
        """Yield the parts for an answer that child agents gave in the model's place."""
        answer, cost_usd = answer_of(before, run, self._turn), cost_of(event)
        if answer is not None:
            yield TextDelta(answer)
            yield from self._reply_parts(before, run, FinishReason.STOP, cost_usd, ())
        elif before.turn.branches and cost_usd is not None:
            yield Cost(self._turn, run.spent.cost_usd, cost_usd)

    def _steering_parts(self, before: Run[S], event: Steered, run: Run[S]) -> Iterator[Part]:
        """Yield the parts for a new conversation: its new messages, new calls and dropped calls."""
        for message in new_messages(before, event):
            yield MessageInjected(message, "caller")
        if event.messages is None or self._turn < 0:
            return
        old, new = before.turn.calls, calls_of(run, self._turn)
        for place, call in enumerate(new):
            if place >= len(old) or old[place] != call:
                yield _tool_call_part(call_key(self._turn, place), call)
        for place in range(len(new), len(old)):
            key = call_key(self._turn, place)
            if self._shown.get(key) is None:
                yield ToolState(key, old[place].name, "dropped")

    def _result_parts(self, run: Run[S], closed: StepResult | None) -> list[Part]:
        """Return the parts for results that are new in this step."""
        parts: list[Part] = []
        for result in new_results(run, self._turn, closed, self._shown):
            key, status = result.key, result.status
            self._shown[key] = result
            parts.append(ToolResultPart(result, "resume" if self._turn < 0 else "turn"))
            state: CallState = "complete" if status == "ok" else "error"
            is_denied, is_unknown = status == "denied", status == "unknown"
            parts.append(ToolState(key, result.name, state, is_denied, is_unknown))
        return parts

    def _turn_parts(
        self, before: Run[S], was_at: AnyNode | None, event: Event, run: Run[S]
    ) -> list[Part]:
        """Return the messages after a turn; step-start, compaction and messages of the next."""
        parts: list[Part] = []
        if before.turn.notes or type(event) is Steered:
            parts += [MessageInjected(note, "caller") for note in new_notes(before, event, run)]
        latest = latest_turn(self._node, run)
        while self._turn < latest:
            self._turn += 1
            self._shown = {}
            parts.append(StepStart(self._turn))
        if sizes := compacted(was_at, before, event, run):
            parts.append(CompactionPart(self._turn, *sizes))
        if before.inbox is not run.inbox:
            parts += self._from_queues(before, run)
        return parts

    def _from_queues(self, before: Run[S], run: Run[S]) -> Iterator[Part]:
        """Yield a part for each message that moved from a queue into the conversation."""
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

    def _effect_parts(self, effect: Effect, run: Run[S]) -> Sequence[Part]:
        """Return the parts for the new state of the call that an effect concerns."""
        match effect:
            case CallTool():
                state: CallState = "awaiting-result" if effect.client else "executing"
                edited = edit_of(run, effect.key)
                return (ToolState(effect.key, effect.call.name, state, arguments=edited),)
            case AskHuman(key=key, call=call):
                ask = question_of(run, effect, ask_key(effect), ()).ask
                asked = ask.key, call.id, ask.name, ask.arguments, ask.expires_at, ask.unknown
                return (
                    ToolState(key, call.name, "awaiting-approval"),
                    ToolApprovalRequest(*asked, takes=ask.takes, server=ask.server),
                )
            case StartRun(key=key, agent=agent) if self._node and self._node.kind == "execute":
                return (ToolState(key, agent, "executing", arguments=edit_of(run, key)),)
            case _:
                return ()


def _answers_model(before: Run[Any], kind: Kind | None, effect: int) -> bool:
    """Whether an effect is a call of the run's own model, whose answer no screen keeps."""
    asked = kind == "model" and type(before.pending.get(effect)) is CallModel
    return asked and before.turn.screening is None


def _tool_call_part(key: str, call: ToolCall) -> ToolCallPart:
    return ToolCallPart(key, call.id, call.name, call.arguments)


def _wrap_child_part(key: str, agent: str, part: Part) -> SubAgent:
    """Return a child's part in a `SubAgent`; a part that has a wrapper gets a longer path."""
    path: tuple[str, ...] = (key,)
    agents: tuple[str, ...] = (agent,)
    if isinstance(part, SubAgent):
        path, agents, part = (key, *part.path), (agent, *part.agents), part.part
    if isinstance(part, ToolApprovalRequest):
        part = evolve(part, agents=agents)
    return SubAgent(path, agents, part)
