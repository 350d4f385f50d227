"""GL12: what is proven never breaks, what is violated has a witness, and nothing is just passed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from graphloop.contract import Cap, Contract, Moves
from graphloop.effects import Effect
from graphloop.events import Event
from graphloop.graph import END, Edges, NodeGraph
from graphloop.node_protocol import Kind, Leave, Reaction
from graphloop.outcomes import Answered, Calls, Done, Go, Outcome, outcome_name
from graphloop.proofs.proof_graph import ProofGraph
from graphloop.proofs.report import Finding, Unknown
from graphloop.proofs.temporal import RuleDecision, decided, temporal
from graphloop.replay import journal_happenings
from graphloop.rules import Rules, TemporalRule
from graphloop.rules.automata import Happening, approved_call, entered, ran, returned, taken
from graphloop.run import Run
from tests.sizes import sized
from tests.strategies import Adversary, adversaries, loop
from tests.temporal_reference import PASTS, breaches, owes, rule_lists

OUTCOMES: tuple[type[Outcome], ...] = (Calls, Answered, Done, Go)
NODE_WORDS = (
    "node:a",
    "node:b",
    "node:c",
    "node:END",
    "outcome:a.calls",
    "outcome:calls",
    "outcome:b.answered",
)
WORDS = (*NODE_WORDS, "tool:x", "tool:*", "approval:x", "approval:*")
LOOP_WORDS = (
    "node:prepare_step",
    "node:model_call",
    "node:gate",
    "node:execute",
    "node:append",
    "node:stop_check",
    "node:END",
    "outcome:stop_check.go",
    "outcome:execute.held",
    "outcome:extend.retry",
    "tool:read",
    "approval:read",
)
KINDS: tuple[Kind, ...] = ("pure", "pure", "model", "gate", "execute")
STEPS_MAX = 40


@dataclass(frozen=True)
class Spot:
    """A node that promises what it is told to."""

    name: str
    outcomes: frozenset[type[Outcome]]
    kind: Kind
    promise: tuple[Contract, ...] = ()

    @property
    def contract(self) -> Contract | None:
        return self.promise[0] if self.promise else None

    def __hash__(self) -> int:
        return hash(self.name)

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        return Leave(run, min(self.outcomes, key=outcome_name)())

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        return self.enter(run)


moves: st.SearchStrategy[frozenset[Moves]] = st.frozensets(st.sampled_from(["turn", "reply"]))
caps = st.builds(Cap, st.integers(0, 3), moves, moves | st.just(frozenset[Moves]()))


@st.composite
def contracts(draw: st.DrawFn, outcomes: Sequence[type[Outcome]]) -> tuple[Contract, ...]:
    """Draw what a node promises, or that it promises nothing."""
    if draw(st.integers(0, 4)) == 0:
        return ()
    one = st.sampled_from(outcomes)
    may: st.SearchStrategy[frozenset[Moves]] = st.frozensets(
        st.sampled_from(["turn", "reply", "again", "close", "perhaps"]), max_size=2
    )
    return (
        Contract(
            caps=draw(st.dictionaries(one, caps, max_size=2)),
            moves=draw(st.dictionaries(one, moves | may, max_size=3)),
            tools=draw(st.sampled_from([False, False, False, True])),
            asks=draw(st.sampled_from([False, False, False, True])),
        ),
    )


@st.composite
def graphs(draw: st.DrawFn, *, capped: bool = True) -> NodeGraph[None]:
    """Draw a graph of up to four nodes, of which some promise something."""
    names = "abcd"[: draw(st.integers(1, 4))]
    spots: dict[str, Spot] = {}
    for name in names:
        outcomes = OUTCOMES[: draw(st.integers(1, 3))]
        kind = draw(st.sampled_from(KINDS))
        promise = draw(contracts(outcomes)) if capped else (Contract(),)
        spots[name] = Spot(name, frozenset(outcomes), kind, promise)
    targets = st.sampled_from([*names, "END"])
    edges: Edges[None] = {
        spot: {
            outcome: END if to == "END" else spots[to]
            for outcome in sorted(spot.outcomes, key=OUTCOMES.index)
            for to in [draw(targets)]
        }
        for spot in spots.values()
    }
    return NodeGraph("g", spots["a"], edges)


def acts(graph: NodeGraph[None], name: str) -> bool:
    """Whether tools may run at a place."""
    node = graph.nodes.get(name)
    if not isinstance(node, Spot):
        return False
    promised = node.contract
    told = promised is None or promised.tools or promised.asks
    return told or node.kind in {"gate", "execute"}


@dataclass
class Bound:
    """One promised bound as a node would keep it: with a counter that is the truth."""

    cap: Cap
    count: int = 0
    again: bool = False

    @property
    def allows(self) -> bool:
        if self.cap.counts:
            return self.count <= self.cap.times
        return self.count < self.cap.times


class Walker:
    """A run by the book: it takes any way that the nodes' promises leave it."""

    def __init__(self, graph: NodeGraph[None], seed: int) -> None:
        self.graph = graph
        self.rng = random.Random(seed)  # noqa: S311 - a walk must be repeatable
        self.bounds = {
            (name, outcome): Bound(cap)
            for name, node in graph.nodes.items()
            if isinstance(node, Spot) and node.contract is not None
            for outcome, cap in node.contract.caps.items()
        }

    def walk(self) -> tuple[list[Happening], bool]:
        """Return what happens, and whether the run came to its end."""
        at, trace = self.graph.start, [*self.rng.choice(PASTS), entered(self.graph.start)]
        for _ in range(STEPS_MAX):
            trace += self.tools(at)
            ways = [one for one in self.graph.table[at].items() if self.allowed(at, one[0])]
            if not ways:
                return trace, False
            outcome, target = self.rng.choice(ways)
            self.leave(at, outcome)
            trace += [taken(at, outcome_name(outcome)), entered(target)]
            if target == "END":
                return trace, True
            at = target
        return trace, False

    def tools(self, at: str) -> list[Happening]:
        if not acts(self.graph, at):
            return []
        some = [made(name) for made in (ran, approved_call) for name in "xz"]
        some += [returned(name, well=well) for well in (True, False) for name in "xz"]
        return self.rng.choices(some, k=self.rng.randrange(3))

    def allowed(self, at: str, outcome: type[Outcome]) -> bool:
        bound = self.bounds.get((at, outcome))
        return bound is None or bound.allows

    def leave(self, at: str, outcome: type[Outcome]) -> None:
        node = self.graph.nodes[at]
        assert isinstance(node, Spot)
        if (own := self.bounds.get((at, outcome))) is not None and not own.cap.counts:
            own.count += 1
        for bound in self.bounds.values():
            self.move(bound, node.contract, outcome)

    def move(self, bound: Bound, contract: Contract | None, outcome: type[Outcome]) -> None:
        """Move what the visit moves for sure, and what it may move if the dice say so."""
        if contract is None:
            if (bound.cap.resets or bound.cap.counts) and self.rng.random() < 0.5:
                bound.count = 0
            return
        may = contract.may_move(outcome)
        if may & bound.cap.resets and self.rng.random() < 0.5:
            bound.count = 0
        if "again" in may and self.rng.random() < 0.5:
            bound.again = True
        is_moved = contract.moved(outcome) & bound.cap.counts
        if is_moved or (may & bound.cap.counts and self.rng.random() < 0.5):
            bound.count += 0 if bound.again else 1
            bound.again = False


def assert_way(graph: NodeGraph[None], one: RuleDecision) -> list[Happening]:
    """Assert that what a decision walked is in the table; return what happens on it."""
    trace, at = [entered(graph.start)], graph.start
    for way in one.path:
        assert (at, way.target) == (way.source, graph.table[at][way.outcome])
        trace += [taken(at, way.word), entered(way.target)]
        at = way.target
    assert at == one.node
    return trace


def assert_broken(rule: TemporalRule, trace: list[Happening]) -> None:
    assert breaches(rule, trace) or (trace[-1].words == ("node:END",) and owes(rule, trace))


@given(graphs(), rule_lists(WORDS), st.integers(0, 2**20))
@settings(max_examples=sized(80), deadline=None)
def test_what_is_proven_holds_on_every_walk(
    graph: NodeGraph[None], rules: Rules, seed: int
) -> None:
    """The one promise of a checker: it never says proven wrongly."""
    decisions = decided(ProofGraph(graph), rules)

    for number in range(12):
        trace, ended = Walker(graph, seed + number).walk()
        for one in decisions:
            if one.status == "proven":
                assert not breaches(one.rule, trace)
                assert not (ended and owes(one.rule, trace))


@given(graphs(), rule_lists(WORDS))
@settings(max_examples=sized(50), deadline=None)
def test_each_violation_has_a_witness_that_runs_no_tool(
    graph: NodeGraph[None], rules: Rules
) -> None:
    """A witness must be a way that runs can go, whatever the model calls."""
    ground = ProofGraph(graph)

    for one in decided(ground, rules):
        if one.status == "violated":
            assert_broken(one.rule, assert_way(graph, one))
            assert_kept(graph, one)


def assert_kept(graph: NodeGraph[None], one: RuleDecision) -> None:
    """Assert that nodes which move as much as they may, in the run's favour, can go the way."""
    assert not [
        way
        for way in one.path
        if isinstance(node := graph.nodes[way.source], Spot)
        and node.contract is not None
        and (cap := node.contract.caps.get(way.outcome)) is not None
        and not (cap.counts or cap.resets)
        and sum(other == way for other in one.path) > cap.times
    ]


@given(graphs(capped=False), rule_lists(NODE_WORDS))
@settings(max_examples=sized(50), deadline=None)
def test_rules_about_nodes_are_decided_with_the_shortest_witness(
    graph: NodeGraph[None], rules: Rules
) -> None:
    """Unknown is for what is not in the graph; the shortest witness is the one understood."""
    for one in decided(ProofGraph(graph), rules):
        assert one.status != "unknown"
        length = len(one.path) if one.status == "violated" else 6
        for trace in ways_of(graph, min(length, 6) - 1):
            assert not breaches(one.rule, trace)
            assert not (trace[-1].words == ("node:END",) and owes(one.rule, trace))


def ways_of(graph: NodeGraph[None], length: int) -> list[list[Happening]]:
    """Return what happens on every way of at most so many lines."""
    if length < 0:
        return []
    found = [[entered(graph.start)]]
    todo: list[tuple[str, list[Happening]]] = [(graph.start, found[0])]
    for _ in range(length):
        todo = [
            (to, [*trace, taken(at, outcome_name(outcome)), entered(to)])
            for at, trace in todo
            if at != "END"
            for outcome, to in graph.table[at].items()
        ]
        found += [trace for _, trace in todo]
    return found


@given(adversaries, rule_lists(LOOP_WORDS), st.integers(0, 99), st.none() | st.integers(1, 20))
@settings(max_examples=sized(80), deadline=None)
def test_what_is_proven_of_the_standard_loop_holds_in_every_run_of_it(
    adversary: Adversary, rules: Rules, seed: int, abort: int | None
) -> None:
    """The proof is about the nodes that run, bounds included, not about a picture of them."""
    graph = loop(max_steps=3)
    simulation = adversary.run(graph, seed=seed, abort_after=abort)
    trace = [one for told in journal_happenings(graph, simulation.events) for one in told]

    for one in decided(ProofGraph(graph), rules):
        if one.status == "proven":
            assert not breaches(one.rule, trace)
            assert not (simulation.run.ended and owes(one.rule, trace))


@given(graphs(), rule_lists(WORDS))
@settings(max_examples=sized(30), deadline=None)
def test_every_rule_is_proven_or_found_or_unknown(graph: NodeGraph[None], rules: Rules) -> None:
    """What was not decided is never passed over."""
    ground = ProofGraph(graph)

    results = list(temporal(ground, rules))
    findings = [result for result in results if isinstance(result, Finding)]
    unknowns = [result for result in results if isinstance(result, Unknown)]

    proven = [one for one in decided(ground, rules) if one.status == "proven"]
    assert len(rules) == len(proven) + len(findings) + len(unknowns)
    for one in findings:
        assert len(one.witness) == len(one.outcomes) + 1
        assert all(b in graph.table[a].values() for a, b in pairwise(one.witness))
