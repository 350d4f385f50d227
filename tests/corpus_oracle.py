"""An oracle for small topologies that knows no proof: it runs them, in every world it can think of.

The kernel is asked what each possible answer leads to, breadth first. Runs that are alike in all
that decides how they go on are explored once; what grows without end (the conversation, the record)
is left out of that. What goes wrong is told from the table, the events and the run alone, and
whatever is told has been executed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, TypeAlias

import networkx as nx

from graphloop.contract import contract_of
from graphloop.conversation.repair import open_calls
from graphloop.effects import (
    AskHuman,
    CallModel,
    CallTool,
    CheckCalls,
    Effect,
    Invoke,
    StartRun,
)
from graphloop.errors import GraphError
from graphloop.events import (
    AnswerChecked,
    CallbackReturned,
    CallCheck,
    CallsChecked,
    Cancelled,
    Changes,
    ChildEnded,
    Decided,
    EffectFailed,
    Event,
    Failure,
    ModelReplied,
    Started,
    StopRequested,
    ToolReturned,
)
from graphloop.graph import NodeGraph
from graphloop.node_protocol import Kind, Leave, Node, Reaction
from graphloop.outcomes import Outcome, outcome_name
from graphloop.run import Run
from graphloop.spending import Budget, Spent
from graphloop.step import TRANSITIONS_MAX, Step, begin, step
from graphloop.values import FinishReason, Message, Usage, UserMessage, evolve
from tests.strategies import call, reply, said, setup

__all__ = ["DECIDED", "UNDECIDED", "Seen", "explored"]

DECIDED: Final = ("GL1", "GL2", "GL3", "GL4", "GL5", "GL11", "GL13")
"""The codes that an execution can show."""

UNDECIDED: Final = {
    "GL6": "which fields a node reads and writes is promised, and no run shows it",
    "GL7": "what children write side by side is promised by contracts, and no run shows it",
    "GL8": "a node that only promises its join does not join",
    "GL9": "budgets and gates of promised children are compared, and never run",
    "GL10": "a node that promises to run tools and to ask does neither",
    "GL12": "the corpus has no rules",
}
"""The codes that no execution of these files can show, and why."""

ROUNDS: Final = 30
"""How often a cycle is gone round to show that nothing bounds it; clean ones stop before."""

NEVER_RUN: Final = frozenset(
    {
        FinishReason.LENGTH,
        FinishReason.REFUSAL,
        FinishReason.CONTENT_FILTER,
        FinishReason.CONTEXT_WINDOW,
    }
)
SPENT: Final = 5_000
"""A reply that uses as much has spent the budget."""

SETUPS: Final = tuple(
    evolve(setup(client=False), budget=Budget(tokens=SPENT, tool_calls=most)) for most in (None, 1)
)
CONVERSATIONS: Final[tuple[tuple[Message, ...], ...]] = (
    (UserMessage("go"),),
    (UserMessage("go"), said(call("read", "a"), call("read", "b"))),
    (UserMessage("x" * 40_000),),
)
LONG: Final = 99
REPLIES: Final = (
    reply("done"),
    reply(call("read", "a")),
    reply(finish=FinishReason.PAUSE),
    reply("half", call("read", "a", "{"), finish=FinishReason.LENGTH),
    reply(),
    reply("no", finish=FinishReason.REFUSAL),
    reply("full", finish=FinishReason.CONTEXT_WINDOW),
)
VERDICTS: Final = tuple(
    reply(call("verdict", "v", f'{{"accepted": {word}, "feedback": "no"}}'))
    for word in ("true", "false")
)
FAILURES: Final = (Failure("ServerError", "down"), Failure("ContextOverflow", "full"))

Told: TypeAlias = list[tuple[str, str, Run[Any]]]


@dataclass(frozen=True)
class Noted:
    """A node that tells who enters it, and how it is left."""

    node: Node[Any, Outcome]
    told: Told = field(repr=False)

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def kind(self) -> Kind:
        return self.node.kind

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        return self.node.outcomes

    def enter(self, run: Run[Any], /) -> Reaction[Any, Outcome]:
        self.told.append((self.name, "", run))
        return self._noted(self.node.enter(run))

    def on(self, run: Run[Any], event: Event, answered: Effect | None, /) -> Reaction[Any, Outcome]:
        return self._noted(self.node.on(run, event, answered))

    def _noted(self, reaction: Reaction[Any, Outcome]) -> Reaction[Any, Outcome]:
        if isinstance(reaction, Leave):
            self.told.append((self.name, outcome_name(type(reaction.outcome)), reaction.run))
        return reaction


@dataclass(frozen=True)
class Spot:
    """A run somewhere, and what is known of it beside: which turn a gate has let through."""

    run: Run[Any]
    gated: int | None = None
    ran: bool = False

    @cached_property
    def key(self) -> Hashable:
        """What decides how it goes on; runs that are alike in this are explored once."""
        run, turn = self.run, self.run.turn
        first = run.messages[0] if run.messages else None
        finish = None if turn.reply is None else turn.reply.finish_reason
        return (
            (run.node, tuple(type(one).__name__ for one in run.pending.values())),
            (turn.number < 0, turn.retries, turn.fallbacks, turn.asked, turn.compacted, finish),
            tuple(one and one.kind for one in turn.verdicts),
            (len(turn.calls), tuple(one and one.status for one in turn.results)),
            (bool(turn.notes), turn.waiting, turn.beyond_budget),
            None if run.ending is None else run.ending.reason,
            (run.setup.budget.tripped(run.spent), run.setup.budget.tool_calls),
            (
                run.spent.tool_calls > 0,
                isinstance(first, UserMessage) and len(first.content) > LONG,
                bool(run.record.added),
            ),
            tuple(sorted({**run.counters.rejections, **run.counters.by_node}.items())),
            (self.gated == turn.number, self.ran),
        )


@dataclass
class Seen:
    """What the executions of a topology have shown: by code, in words; and whether that is all."""

    codes: dict[str, str] = field(default_factory=dict[str, str])
    complete: bool = False
    spots: int = 0

    def show(self, code: str, what: str) -> None:
        self.codes.setdefault(code, what)


class _Explorer:
    def __init__(self, graph: NodeGraph[Any], state: object, spots_max: int) -> None:
        self.told: Told = []
        nodes = {name: Noted(node, self.told) for name, node in graph.nodes.items()}
        self.graph: NodeGraph[Any] = NodeGraph.__new__(type(graph))
        vars(self.graph).update(vars(graph), nodes=nodes)
        self.plain, self.state, self.most = graph, state, spots_max
        self.promised = {name: contract_of(node) for name, node in graph.nodes.items()}
        self.seen = Seen()
        self.entered: set[str] = set()
        self.found: dict[Hashable, Spot] = {}
        # Each line of the explored graph, with the places of the answers that lead along it.
        self.lines: dict[Hashable, dict[Hashable, list[int]]] = {}

    def explore(self) -> Seen:
        todo: deque[Spot] = deque()
        for given in SETUPS:
            for messages in CONVERSATIONS:
                started = Started(0.0, "r", self.graph.name, messages, given, None)
                spot = self._after(Spot(_nowhere(started)), started)
                if spot is not None and self._is_new(spot):
                    todo.append(spot)
        while todo and len(self.found) < self.most:
            here = todo.popleft()
            for place, event in enumerate(_answers(here.run)):
                spot = self._after(here, event)
                if spot is None:
                    continue
                self.lines[here.key].setdefault(spot.key, []).append(place)
                if self._is_new(spot):
                    todo.append(spot)
        self.seen.complete, self.seen.spots = not todo, len(self.found)
        self._reached()
        self._circles()
        return self.seen

    def _is_new(self, spot: Spot) -> bool:
        key = spot.key
        if key in self.found:
            return False
        self.found[key], self.lines[key] = spot, {}
        return True

    def _after(self, spot: Spot, event: Event) -> Spot | None:
        """Return where an event leads; None if it cannot happen, or breaks the run."""
        self.told.clear()
        try:
            if isinstance(event, Started):
                taken = begin(self.graph, event, self.state)
            else:
                taken = step(self.graph, spot.run, event)
        except GraphError as error:
            # What was passed is judged all the same.
            self._judged(spot)
            self.seen.show(_code_of(str(error)), str(error))
            return None
        except (ValueError, AssertionError):
            return None
        if taken.run.was_stopped and len(self.told) > TRANSITIONS_MAX // 2:
            # The engine has ended it; its table leads it nowhere.
            self.seen.show("GL13", f"a stopped run goes in a circle by {self.told[-1][0]!r}")
            return None
        return self._looked_at(self._judged(spot), taken)

    def _judged(self, spot: Spot) -> Spot:
        """Judge what was passed, node by node."""
        gated, ran = spot.gated, spot.ran
        for name, word, run in self.told:
            node, turn = self.plain.nodes[name], run.turn
            promised = self.promised[name]
            owed = bool(turn.calls) and not _is_cut(run)
            if not word:
                self.entered.add(name)
                runs = node.kind == "execute" or (promised is not None and promised.tools)
                if runs and gated != turn.number:
                    self.seen.show("GL2", f"{name} is entered, and no gate has spoken")
                if node.kind == "execute" and ran:
                    self.seen.show("GL3", f"{name} is entered with calls that have run")
                if node.kind == "model" and owed:
                    self.seen.show("GL3", f"{name} puts another reply in place of open calls")
            elif node.kind == "model" or word in {"calls", "approval_needed"}:
                gated, ran = None, ran and node.kind != "model"
            elif node.kind == "gate" and word == "settled":
                gated = turn.number
            elif node.kind == "execute" and word == "done":
                ran = owed
            elif node.kind == "append":
                ran = False
        return Spot(spot.run, gated, ran)

    def _looked_at(self, spot: Spot, taken: Step[Any]) -> Spot:
        run = taken.run
        for effect in taken.effects:
            if isinstance(effect, CallTool) and _is_cut(run):
                self.seen.show("GL3", "a call runs that was cut off")
            if isinstance(effect, CallModel) and open_calls(effect.request.messages):
                self.seen.show("GL3", "a model is asked with calls that nobody has answered")
        if run.ended and run.turn.calls and not _is_cut(run):
            self.seen.show("GL3", "the run is over with calls that nobody has answered")
        return Spot(run, spot.gated, spot.ran)

    def _reached(self) -> None:
        """Look for nodes that no run arrives at, and for runs that cannot end any more."""
        if not self.seen.complete:
            return
        if missing := set(self.plain.nodes) - self.entered:
            self.seen.show("GL1", f"no run arrives at {sorted(missing)}")
        back: nx.DiGraph[Hashable] = nx.DiGraph(
            [(to, one) for one, row in self.lines.items() for to in row]
        )
        back.add_edges_from(("END", key) for key, spot in self.found.items() if spot.run.ended)
        back.add_node("END")
        able = nx.descendants(back, "END")  # pyright: ignore[reportUnknownMemberType]
        if trapped := [key for key in self.found if key not in able]:
            self.seen.show("GL1", f"from {self.found[trapped[0]].run.node!r} no run comes to END")

    def _circles(self) -> None:
        """Go round each cycle that was seen, again and again."""
        whole: nx.DiGraph[Hashable] = nx.DiGraph(
            [(one, to) for one, row in self.lines.items() for to in row]
        )
        tried: set[tuple[object, ...]] = set()
        for part in nx.strongly_connected_components(whole):
            inside = whole.subgraph(part)
            for one, to in inside.edges:
                around = [one, *nx.shortest_path(inside, to, one)]  # pyright: ignore[reportUnknownMemberType]
                for place in self.lines[one][to]:
                    said_so = (place, *[self.found[key].run.node for key in around])
                    if said_so not in tried and "GL4" not in self.seen.codes:
                        tried.add(said_so)
                        self._go_round(around, place)

    def _go_round(self, around: Sequence[Hashable], first: int) -> None:
        lines = list(pairwise(around))
        places = [first, *(self.lines[one][to][0] for one, to in lines[1:])]
        spot = self.found[around[0]]
        for _ in range(ROUNDS):
            for place, (_, to) in zip(places, lines, strict=True):
                after = self._after(spot, list(_answers(spot.run))[place])
                if after is None or after.key != to:
                    return
                spot = after
        names = [self.found[key].run.node for key in around]
        self.seen.show("GL4", f"went round {ROUNDS} times: {names}")


def explored(graph: NodeGraph[Any], state: object = None, spots_max: int = 2_000) -> Seen:
    """Return what executions of a graph show, and of the graphs that its nodes bring as children.

    Args:
        graph: the topology.
        state: the state that its runs begin with.
        spots_max: how many places are explored at most.
    """
    seen = _Explorer(graph, state, spots_max).explore()
    for node in graph.nodes.values():
        promised = contract_of(node)
        for child in () if promised is None else promised.children:
            if child.graph is not None:
                inner = explored(child.graph, None, spots_max)
                for code, what in inner.codes.items():
                    seen.show(code, f"{child.name}: {what}")
    return seen


def _code_of(error: str) -> str:
    """Return the code of what the kernel, or a node, says of a graph that it cannot go on in."""
    if "no turn is open" in error:
        return "GL3"
    if "has started or has its result" in error:
        return "GL3"
    return "GL4" if "without waiting" in error else "GL5"


def _nowhere(started: Started) -> Run[Any]:
    return Run(id="r", node="", state=None, setup=started.setup, at=0.0)


def _is_cut(run: Run[Any]) -> bool:
    said_last = run.turn.reply
    return said_last is not None and said_last.finish_reason in NEVER_RUN


def _answers(run: Run[Any]) -> Iterator[Event]:
    """Yield what may happen next."""
    if not run.pending:
        return
    effect, at = run.pending[min(run.pending)], run.at + 1
    yield from _answers_to(effect, at)
    yield Cancelled(at, "stopped")


def _answers_to(effect: Effect, at: float) -> Iterator[Event]:  # noqa: C901 - one case an effect
    match effect:
        case CallModel(request=request):
            forced = request.tool_choice.mode == "tool"
            for one in VERDICTS if forced else REPLIES:
                yield ModelReplied(at, effect.id, one, 0.0)
            for one in REPLIES[:2]:
                yield ModelReplied(at, effect.id, evolve(one, usage=Usage(SPENT)), 0.0)
            yield from (EffectFailed(at, effect.id, one) for one in FAILURES)
        case CheckCalls(calls=calls):
            for asked in {0, 1, len(calls)}:
                checks = [CallCheck("", place < asked) for place in range(len(calls))]
                yield CallsChecked(at, effect.id, tuple(checks))
        case AskHuman():
            yield from (Decided(at, effect.id, word) for word in (True, False))
        case CallTool():
            yield ToolReturned(at, effect.id, "fine")
        case StartRun():
            yield ChildEnded(at, effect.id, "42", "ok", Spent())
            yield ChildEnded(at, effect.id, "bad", "error", Spent())
        case Invoke():
            for answer in (
                AnswerChecked(True),
                AnswerChecked(False, "no", True),
                Changes(),
                StopRequested(),
            ):
                yield CallbackReturned(at, effect.id, answer)
        case _:
            return
