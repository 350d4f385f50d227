"""Composed graphs, wherever their process dies: order, budgets, and nothing that runs twice."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from graphloop.effects import CallModel, StartRun
from graphloop.events import ChildEnded
from graphloop.graph import END, Edges, NodeGraph
from graphloop.nodes import Append, Child, Critique, Limit
from graphloop.nodes.joins import JOINS, BranchJoin, is_decided
from graphloop.outcomes import Answered, Final, Go, Resend, Stop, Unplanned
from graphloop.own_nodes.compose import fallback, loop_until, map_over, parallel, retry
from graphloop.replay import replay
from graphloop.run import EndReason
from graphloop.spending import Budget, Spent
from graphloop.testing.sim import ChildAnswer, Simulation, World, simulate
from graphloop.tools.outcome import ToolOutcome
from graphloop.values import Reply, ResultStatus, Usage, UserMessage, evolve
from tests.strategies import QUESTION, SETUP, call, reply

BUDGET = Budget(tokens=1_000, usd=10.0, tool_calls=20)
SETTLED = {EndReason.COMPLETED, EndReason.ERROR, EndReason.BUDGET, EndReason.STOP_CONDITION}


def within(budget: Budget, part: float) -> Spent:
    """Return what a child spends that keeps to its budget."""
    tokens = int((budget.tokens or 0) * part)
    calls = int((budget.tool_calls or 0) * part)
    return Spent(1, calls, Usage(tokens), (budget.usd or 0.0) * part)


class Children:
    """A world of children: each fails or answers by its agent's name and how often it came.

    Args:
        failing: which agents fail, and how often.
        part: how much of its budget each spends.
        parking: the agents that wait for somebody.
    """

    def __init__(
        self, failing: dict[str, int], part: float = 0.1, parking: frozenset[str] = frozenset()
    ) -> None:
        self.failing = failing
        self.part = part
        self.parking = parking
        self.seen: dict[str, tuple[str, int]] = {}
        self.numbers: Counter[str] = Counter()

    def child(self, effect: StartRun) -> ChildAnswer | None:
        """Answer always the same for one key: a process that died hears nothing else."""
        if effect.agent in self.parking:
            return None
        if effect.key not in self.seen:
            self.numbers[effect.agent] += 1
            self.seen[effect.key] = (effect.agent, self.numbers[effect.agent])
        agent, number = self.seen[effect.key]
        bad = number <= self.failing.get(agent, 0)
        status: ResultStatus = "error" if bad else "ok"
        return (f"{agent} {'broke' if bad else 'said'}", status, within(effect.budget, self.part))

    def world(self, answer: Reply | None = None) -> World:
        """Return the world; a model, where one is asked, says this."""
        said_ = reply("hm") if answer is None else answer
        return World(model=lambda _: said_, tool=lambda _: ToolOutcome("", "ok"), child=self.child)


def ended_once(simulation: Simulation[None]) -> None:
    """Check that no child was started after it had ended, and that each ended once."""
    assert not simulation.repeated
    ends = Counter(one.effect for one in simulation.events if isinstance(one, ChildEnded))
    assert not ends or 1 == max(ends.values())


def kept_to(simulation: Simulation[None]) -> None:
    """Check that the run has not spent more than it may."""
    spent = simulation.run.spent
    assert spent.usage.total_tokens <= (BUDGET.tokens or 0)
    assert spent.tool_calls <= (BUDGET.tool_calls or 0)
    assert spent.cost_usd <= (BUDGET.usd or 0) + 1e-9


def side_by_side(join: BranchJoin, at_once: int) -> NodeGraph[None]:
    """Return four branches of three agents."""
    fan = parallel("a", "b", "c", "a", join=join, concurrency=at_once)
    append = Append()
    edges: Edges[None] = {fan: {Answered: append, ...: END}, append: {...: END}}
    return NodeGraph("side-by-side", fan, edges)


@given(
    st.sampled_from(JOINS),
    st.integers(1, 5),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 2)),
    st.floats(0, 1),
    st.integers(0, 2**16),
    st.sets(st.integers(1, 12)),
)
def test_branches_survive_crashes_and_keep_to_the_budget(
    join: BranchJoin,
    at_once: int,
    failing: dict[str, int],
    part: float,
    seed: int,
    crashes: set[int],
) -> None:
    """Wherever the process dies: nothing runs twice, and the answers stand in their order."""
    children = Children(failing, part)
    setup = evolve(SETUP, budget=BUDGET)

    simulation = simulate(
        side_by_side(join, at_once),
        QUESTION,
        children.world(),
        None,
        setup=setup,
        seed=seed,
        crash_after=crashes,
    )

    run = simulation.run
    ended_once(simulation)
    kept_to(simulation)
    assert run.ended
    assert run.ending is not None
    assert run.ending.reason in SETTLED
    assert ["a 1", "b", "c", "a 2"] == [one.name for one in run.turn.branches]
    assert all(one.status is not None or not one.effect for one in run.turn.branches)
    assert run == replay(side_by_side(join, at_once), simulation.events)
    if run.ending.reason is EndReason.COMPLETED and join in {"collect", "fail_fast"}:
        text = run.record.steps[-1].text
        places = [text.index(f"## {one.name}\n") for one in run.turn.branches]
        assert sorted(places) == places


@given(st.sampled_from(JOINS), st.integers(1, 5), st.integers(0, 2**16))
def test_a_branch_that_parks_keeps_what_its_siblings_have_said(
    join: BranchJoin, at_once: int, seed: int
) -> None:
    """Whoever answers it finds the others' answers where they were; none is asked again."""
    children = Children({}, parking=frozenset({"b"}))
    graph, setup = side_by_side(join, at_once), evolve(SETUP, budget=BUDGET)

    simulation = simulate(graph, QUESTION, children.world(), None, setup=setup, seed=seed)

    run = simulation.run
    ended_once(simulation)
    if run.ended:
        assert is_decided(run.turn.branches, join)
        return
    (waiting,) = run.pending.values()
    assert isinstance(waiting, StartRun)
    assert "b" == waiting.agent
    said_before = [one for one in run.turn.branches if one.status is not None]
    after = replay(graph, [*simulation.events, ChildEnded(run.at, waiting.id, "b said")])
    assert said_before == [one for one in after.turn.branches if one in said_before]
    begun = {one.effect for one in run.turn.branches}
    assert all(number not in begun for number in after.pending)


def planned(most: int, at_once: int) -> NodeGraph[None]:
    """Return a graph that asks a planner, and works on what it says; a bad plan is sent back."""
    planner, limit = Child("planner"), Limit(2)
    work = map_over("worker", max_items=most, concurrency=at_once)
    append, after = Append(), Append("after")
    edges: Edges[None] = {
        planner: {Answered: append, ...: END},
        append: {Final: work, Resend: limit, ...: END},
        work: {Answered: after, Unplanned: append, ...: END},
        limit: {Go: planner, Stop: END},
        after: {...: END},
    }
    return NodeGraph("planned", planner, edges)


@given(
    st.lists(
        st.sampled_from(['["x", "y"]', '["x", "y", "z"]', "no plan", "[]", '["v", "w", "x", "y"]']),
        min_size=3,
        max_size=3,
    ),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(0, 2**16),
    st.sets(st.integers(1, 16)),
)
def test_a_plan_is_worked_on_item_by_item_or_sent_back(
    plans: list[str], most: int, at_once: int, seed: int, crashes: set[int]
) -> None:
    """Never more than may be, never one twice; what is no plan costs its author a turn."""
    children = Children({})
    keys: list[str] = []

    def child(effect: StartRun) -> ChildAnswer | None:
        if effect.agent == "worker":
            return children.child(effect)
        if effect.key not in keys:
            keys.append(effect.key)
        return (plans[keys.index(effect.key)], "ok", within(effect.budget, 0.1))

    world = World(model=lambda _: reply("hm"), tool=lambda _: ToolOutcome("", "ok"), child=child)
    simulation = simulate(
        planned(most, at_once),
        QUESTION,
        world,
        None,
        setup=evolve(SETUP, budget=BUDGET),
        seed=seed,
        crash_after=crashes,
    )

    run = simulation.run
    ended_once(simulation)
    kept_to(simulation)
    good = [len(items) for items in map(plan_of, plans) if items and len(items) <= most]
    assert run.ending is not None
    assert (good[0] if good else 0) == children.numbers["worker"]
    reason = EndReason.COMPLETED if good else EndReason.STOP_CONDITION
    assert reason is run.ending.reason
    if good:
        items = next(one for one in map(plan_of, plans) if one and len(one) <= most)
        assert items == [one.name for one in run.turn.branches]


def plan_of(text: str) -> list[str]:
    """Return the items of a plan of this test."""
    return re.findall(r'"(\w)"', text)


@given(
    st.integers(1, 3),
    st.dictionaries(st.sampled_from("ab"), st.integers(0, 5)),
    st.integers(0, 2**16),
    st.sets(st.integers(1, 12)),
)
def test_attempts_are_counted_across_crashes(
    times: int, failing: dict[str, int], seed: int, crashes: set[int]
) -> None:
    """No process may try more often than all of them together."""
    children = Children(failing)
    node = fallback(retry(Child("a"), times), Child("b"))
    append = Append()
    edges: Edges[None] = {node: {Answered: append, ...: END}, append: {...: END}}

    simulation = simulate(
        NodeGraph("tried", node, edges),
        QUESTION,
        children.world(),
        None,
        setup=evolve(SETUP, budget=BUDGET),
        seed=seed,
        crash_after=crashes,
    )

    ended_once(simulation)
    kept_to(simulation)
    failures = failing.get("a", 0)
    assert min(failures, times) + 1 == children.numbers["a"]
    assert int(failures > times) == children.numbers["b"]
    broke = failures > times and failing.get("b", 0) > 0
    assert simulation.run.ending is not None
    reason = EndReason.ERROR if broke else EndReason.COMPLETED
    assert reason is simulation.run.ending.reason


@given(st.integers(1, 4), st.integers(0, 6), st.integers(0, 2**16), st.sets(st.integers(1, 24)))
def test_a_loop_ends_by_its_check_or_by_its_bound(
    times: int, wrong: int, seed: int, crashes: set[int]
) -> None:
    """The answer is sent back as often as it may be, and not once more."""
    children = Children({})
    writer = Child("writer")

    def judge(effect: CallModel) -> Reply:
        verdicts = sum(isinstance(one, UserMessage) for one in effect.request.messages) - 2
        accepted = "true" if verdicts >= wrong else "false"
        arguments = f'{{"accepted": {accepted}, "feedback": "again"}}'
        return reply(call("verdict", arguments=arguments))

    world = World(model=judge, tool=lambda _: ToolOutcome("", "ok"), child=children.child)
    simulation = simulate(
        NodeGraph("loop", writer, loop_until(writer, Critique("Good?"), times)),
        QUESTION,
        world,
        None,
        setup=evolve(SETUP, budget=Budget(tool_calls=1_000)),
        seed=seed,
        crash_after=crashes,
    )

    ended_once(simulation)
    assert min(wrong, times) + 1 == children.numbers["writer"]
    assert simulation.run.ending is not None
    stopped = ("writer_limit",) if wrong > times else ()
    assert stopped == simulation.run.ending.stopped_by
