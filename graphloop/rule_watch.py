"""Rule watch: enforces the temporal rules of a run while the kernel follows the table.

The state of each rule is a part of the run, so journals, forks and replays restore it. The rules
work outside of the kernel and of the nodes: for a run with rules, the kernel asks `WatchedNodes` in
place of the graph's nodes.

When a run leaves a gate, each allowed call counts as run: in request order, and right after its
approval. So two calls of a turn cannot both use the last run that a rule allows. A call that passed
no gate counts when a node requests its effect. A call that a person runs again counts again. A call
counts as returned at the event that answers its effect. Rules ignore the loop's own tools.

A conversation that a caller passes in with unanswered calls or results continues an earlier run. So
the calls in such a conversation count as run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, Generic, TypeVar

from msgspec import Struct

from .effects import AskHuman, CallTool, Effect, StartRun
from .events import ChildEnded, Decided, EffectFailed, Event, ToolReturned
from .graph import NodeGraph
from .node_protocol import Leave, Node, Reacting, Reaction, Wait
from .outcomes import Aborted, Outcome, outcome_name
from .rules import (
    Happening,
    Monitor,
    Rules,
    TemporalRule,
    Wanted,
    approved_call,
    describe_rule,
    earlier,
    entered,
    judged,
    past_call,
    ran,
    refusal,
    returned,
    taken,
)
from .run import RuleState, Run, evolve
from .turn import CallVerdict
from .values import ToolResult, UserMessage, call_key, call_place

__all__ = [
    "WatchedNode",
    "WatchedNodes",
    "before_the_run",
    "let_through",
    "lets_through",
    "on_effects",
    "on_leaving",
    "on_returning",
    "restrained",
    "run_again",
    "watch_begin",
]

S = TypeVar("S")


def watch_begin(
    run: Run[S], rules: tuple[TemporalRule, ...], states: tuple[int, ...] = ()
) -> Run[S]:
    """Start the monitor of `rules`; it counts the run's past calls and the entry into its node.

    The last rules continue in `states`, the states that they had at the end of an earlier run.
    """
    run = evolve(run, watch=RuleState(Monitor.of(Rules(rules)).continued(states)))
    counted = set(run.watch.counted)
    return _with_rules(run, [*before_the_run(run), entered(run.node)], counted)


class WatchedNodes(dict[str, Reacting[S, Outcome]]):
    """The nodes of a graph by name; each also enforces the rules of a run as it reacts.

    Each is made when the kernel asks for it, because an event passes few of a graph's nodes.
    """

    def __init__(self, graph: NodeGraph[S]) -> None:
        super().__init__()
        self._graph = graph

    def __missing__(self, name: str) -> Reacting[S, Outcome]:
        """Return the watched node of this name."""
        return WatchedNode(self._graph, self._graph.nodes[name])


class WatchedNode(Struct, Generic[S], frozen=True):
    """A node of a graph that updates the rules of a run at each reaction, and enforces them."""

    graph: NodeGraph[S]
    node: Node[S, Outcome]

    def enter(self, run: Run[S], /) -> Reaction[S, Outcome]:
        """React as the node does, to the arrival of a run."""
        return self._count_effects(self.node.enter(run), None, None)

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, Outcome]:
        """React as the node does, to an event after which the rules have been updated."""
        heard = _deny_forbidden_repeat(run, event, answered)
        run = _with_rules(run, on_returning(run, event, answered), set(run.watch.counted))
        return self._count_effects(self.node.on(run, heard, answered), event, answered)

    def _count_effects(
        self, reaction: Reaction[S, Outcome], event: Event | None, answered: Effect | None
    ) -> Reaction[S, Outcome]:
        """Return the reaction with the rules updated; the kernel refuses one of a wrong type."""
        match reaction:
            case Leave(run=Run() as run, outcome=outcome):
                return Leave(self._leave_node(run, type(outcome)), outcome)
            case Wait(run=Run() as run, effects=tuple() as effects):
                # The kernel drops the effects of a stopped run.
                if effects and run.was_stopped:
                    return reaction
                counted = set(run.watch.counted)
                started = on_effects(run, effects, counted=counted)
                told = [*run_again(event, answered, run), *started]
                return Wait(_with_rules(run, told, counted), effects)
            case _:
                return reaction

    def _leave_node(self, run: Run[S], outcome: type[Outcome]) -> Run[S]:
        """Count the leave, deny calls of a gate that would break a rule, and return the run."""
        node, counted = self.node.name, set(run.watch.counted)
        target = self.graph.table[node].get(outcome)
        if target is None:
            return run
        lets = lets_through(self.graph, node, target)
        if lets:
            run = restrained(run, run.watch.monitor, counted)
        left = on_leaving(
            run, node=node, outcome=outcome, target=target, lets=lets, counted=counted
        )
        return _with_rules(run, left, counted)


def lets_through(graph: NodeGraph[S], node: str, target: str) -> bool:
    """Whether a transition leads from a gate to a node that is not a gate, or to END."""
    after = graph.nodes.get(target)
    return graph.nodes[node].kind == "gate" and (after is None or after.kind != "gate")


def _deny_forbidden_repeat(run: Run[S], event: Event, answered: Effect | None) -> Event:
    """Return the event; a person's approval of a rerun becomes a denial if a rule forbids it."""
    if not isinstance(event, Decided) or not isinstance(answered, AskHuman) or not answered.unknown:
        return event
    rule = run.watch.monitor.forbids(answered.call.name, approved=True)
    return event if rule is None else evolve(event, approved=False)


def _with_rules(run: Run[S], happened: Iterable[Happening], counted: set[str]) -> Run[S]:
    # `happened` is lazy and adds keys to `counted`, so `counted` is complete only after the loop.
    monitor = run.watch.monitor
    for happening in happened:
        monitor = monitor.after(happening)
    return evolve(run, watch=RuleState(monitor, frozenset(counted)))


NOT_RUN: Final = frozenset({"invalid", "unknown_tool", "denied", "not_run"})
"""The result statuses of calls that have not run."""


def before_the_run(run: Run[S]) -> Iterator[Happening]:
    """Yield the past calls of the conversation that a run begins with, as rules see them.

    A child run yields nothing, nor does a conversation that ends with a user message. Otherwise,
    calls before the last user message count against limits only: that message may have been
    steering.
    """
    messages = run.messages
    if run.setup.depth or not len(messages) or isinstance(messages[-1], UserMessage):
        return
    asked = max((at for at, one in enumerate(messages) if isinstance(one, UserMessage)), default=-1)
    for at, one in enumerate(messages):
        if not isinstance(one, ToolResult) or one.status in NOT_RUN or one.name in run.setup.own:
            continue
        if at < asked:
            yield earlier(one.name)
        else:
            yield from past_call(one.name, well=one.status == "ok")


def let_through(run: Run[S], counted: Collection[str]) -> dict[str, Wanted]:
    """Return the calls that a gate newly allows when a run leaves it, by key, in request order.

    Args:
        run: the run that leaves the gate.
        counted: the keys of calls that were allowed before, perhaps by another gate.
    """
    turn = run.turn
    results = turn.results or (None,) * len(turn.calls)
    return {
        key: Wanted(call.name, verdict.asked)
        for place, (call, verdict) in enumerate(zip(turn.calls, turn.verdicts, strict=False))
        if verdict is not None and verdict.kind == "run" and results[place] is None
        if call.name not in run.setup.own
        if (key := call_key(turn.number, place)) not in counted
    }


def restrained(run: Run[S], monitor: Monitor, counted: Collection[str]) -> Run[S]:
    """Return a run that leaves a gate; allowed calls that a temporal rule forbids are denied."""
    wanted = let_through(run, counted)
    denied = {
        call_place(key): CallVerdict("deny", refusal(rule), by=describe_rule(rule))
        for key, rule in zip(wanted, judged(monitor, wanted.values()), strict=True)
        if rule is not None
    }
    if not denied:
        return run
    verdicts = tuple([denied.get(at, one) for at, one in enumerate(run.turn.verdicts)])
    return evolve(run, turn=evolve(run.turn, verdicts=verdicts))


def on_leaving(
    run: Run[S], *, node: str, outcome: type[Outcome], target: str, lets: bool, counted: set[str]
) -> Iterator[Happening]:
    """Yield the occurrences that rules count in a transition: allowed calls, exit and entry.

    If `lets` is true, the transition allows calls, and adds their keys to `counted`.
    """
    if lets and not issubclass(outcome, Aborted):
        for key, wanted in let_through(run, counted).items():
            counted.add(key)
            yield from _ran_tool(wanted)
    yield taken(node, outcome_name(outcome))
    yield entered(target)


def on_effects(run: Run[S], effects: Iterable[Effect], *, counted: set[str]) -> Iterator[Happening]:
    """Yield the start of each tool effect that no gate allowed, and add its key to `counted`."""
    for effect in effects:
        tool = _counted_tool(run, effect)
        if tool and isinstance(effect, CallTool | StartRun) and effect.key not in counted:
            counted.add(effect.key)
            yield ran(tool)


def on_returning(run: Run[S], event: Event, answered: Effect | None) -> Iterator[Happening]:
    """Yield the return of a tool if the event answers the effect of a tool call.

    Args:
        run: the run that waited for the effect.
        event: the event that the run has received.
        answered: the effect that the event answers.
    """
    if answered is None or not (tool := _counted_tool(run, answered)):
        return
    if isinstance(event, ToolReturned | ChildEnded):
        yield returned(tool, well=event.status == "ok")
    elif isinstance(event, EffectFailed):
        yield returned(tool, well=False)


def run_again(event: Event | None, answered: Effect | None, after: Run[S]) -> Iterator[Happening]:
    """Yield a call's approval and start, as rules count them, if a person lets it run again.

    Args:
        event: the event, after which its node still waits; None as a run arrives at a node.
        answered: the effect that the event answers.
        after: the waiting run after the event.
    """
    if not isinstance(event, Decided) or not isinstance(answered, AskHuman):
        return
    if not event.approved or not answered.unknown:
        return
    if call_place(answered.key) in after.turn.again:
        yield from _ran_tool(Wanted(answered.call.name, asked=True))


def _ran_tool(wanted: Wanted) -> Iterator[Happening]:
    if wanted.asked:
        yield approved_call(wanted.tool)
    yield ran(wanted.tool)


def _counted_tool(run: Run[S], effect: Effect) -> str:
    """Return the name of the tool whose call an effect runs; empty if rules do not count it."""
    if isinstance(effect, CallTool):
        return "" if effect.call.name in run.setup.own else effect.call.name
    if isinstance(effect, StartRun):
        return effect.agent if run.turn.has_call(effect.key) else ""
    return ""
