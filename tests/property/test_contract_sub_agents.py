"""§3.10, D01-D10: a child run is a run: it parks, dies, is resumed, is paid for, and is bounded.

Every leg of a run is a process of its own here: new agents and new drivers over the same disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import get_args

from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphloop import END, Agent, EndReason, Graph, RunResult, budget
from graphloop.agent.options import AgentOptions
from graphloop.errors import RunFailed
from graphloop.events import Cancelled, ChildEnded, Event, ModelReplied, Started, ToolReturned
from graphloop.nodes import Append, Parallel
from graphloop.nodes.joins import BranchJoin
from graphloop.nodes.parallel import Branch
from graphloop.replay import replay
from graphloop.stores.base import Store
from graphloop.stores.memory import MemoryStore
from graphloop.values import Usage
from tests.agent_tree import Ledger, Plans, batch, tree
from tests.mortal_store import Died, Fate, MortalStore
from tests.planned_model import Line, PlannedModel
from tests.property.test_contract_approvals import on_disk
from tests.property.test_contract_pairing import assert_paired
from tests.sizes import sized

ROUNDS_MAX = 60
CALLS = ("note", "pay", "client")


def lines(names: Sequence[str]) -> st.SearchStrategy[list[Line]]:
    """Return plans of one or two batches of these calls."""
    calls = st.lists(st.sampled_from(names), min_size=1, max_size=3)
    return st.lists(calls.map(lambda some: batch(*some)), min_size=1, max_size=2)


def crowd(names: Sequence[str]) -> st.SearchStrategy[list[Line]]:
    """Return plans of large batches, of which the last is said for ever."""
    calls = st.lists(st.sampled_from(names), min_size=1, max_size=9)
    said = st.lists(calls.map(lambda some: batch(*some)), min_size=1, max_size=3)
    return said.map(lambda some: [*some, *[some[-1]] * 5])


plans: st.SearchStrategy[Plans] = st.fixed_dictionaries(
    {
        "go": lines([*CALLS, "kid", "kid"]),
        "kid": lines([*CALLS, "leaf", "leaf"]),
        "leaf": lines(CALLS),
    }
)
crowds: st.SearchStrategy[Plans] = st.fixed_dictionaries(
    {
        "go": crowd(["kid", "kid", "note", "pay"]),
        "kid": crowd(["leaf", "leaf", "note", "client"]),
        "leaf": lines(CALLS),
    }
)
FAMILY: Plans = {
    "go": [batch("note", "kid", "kid")],
    "kid": [batch("note", "leaf"), batch("pay")],
    "leaf": [batch("pay", "client"), batch("note")],
}


def _without(one: Line, names: set[str]) -> Line:
    return one if isinstance(one, str) else [call for call in one if call.name not in names]


async def journals(store: Store) -> dict[str, Sequence[Event]]:
    """Return all that was journaled, by run."""
    return {one: await store.load(one) for one in await store.runs()}


def used(every: dict[str, Sequence[Event]]) -> Usage:
    """Return what all models of all runs have used."""
    total = Usage()
    for events in every.values():
        for event in events:
            if isinstance(event, ModelReplied):
                total += event.reply.usage
    return total


async def answered_in_rounds(
    agent: Callable[[], Agent], picks: Sequence[int], *, begun: bool = False
) -> tuple[RunResult, dict[str, bool]]:
    """Run to the end, answering some of what is pending in each round; return the verdicts too."""
    verdicts: dict[str, bool] = {}
    result = await (agent().resume("r") if begun else agent().generate("go", run_id="r"))
    for number in range(ROUNDS_MAX):
        if result.end_reason is not EndReason.PARKED:
            return result, verdicts
        pick = picks[number % len(picks)]
        first = pick % len(result.pending)
        some = result.pending[first : first + 1 + pick % 2]
        asked = [one for one in some if one.kind == "approval"]
        decided = {one.key: (pick + at) % 3 > 0 for at, one in enumerate(asked)}
        verdicts |= decided
        result = await agent().resume(
            "r",
            approvals=decided,
            tool_results={one.key: "theirs" for one in some if one.kind == "client_tool"},
        )
    raise AssertionError(f"still parked after {ROUNDS_MAX} rounds: {result.pending}")


@settings(max_examples=sized(6))
@given(plan=plans, picks=st.lists(st.integers(0, 9), min_size=1, max_size=6), file=st.booleans())
@example(plan=FAMILY, picks=[1, 2], file=True)
def test_answers_find_their_way_down_and_nothing_runs_twice(
    plan: Plans, picks: list[int], file: bool
) -> None:
    """D09, §9 #24, #41: at any depth, in any order, some now and the others later."""

    async def work(store: Store) -> None:
        ledger = Ledger()
        result, verdicts = await answered_in_rounds(lambda: tree(ledger, plan, store), picks)

        every = await journals(store)
        assert EndReason.COMPLETED is result.end_reason
        assert all(count == 1 for count in ledger.done.values())
        approved = {key for key, one in verdicts.items() if one}
        paid = {_path(run, key) for run, key in ledger.done}
        assert approved <= paid
        assert not paid & {key for key, one in verdicts.items() if not one}
        assert ledger.names["pay"] == len(approved)
        assert used(every) == result.total_usage
        returned = [one for events in every.values() for one in events]
        assert result.run.spent.tool_calls == sum(isinstance(one, ToolReturned) for one in returned)
        assert_paired(tuple(result.run.messages))

    on_disk(work, file=file)


def _path(run_id: str, key: str) -> str:
    """Return a call's key as the root's caller knows it."""
    path = run_id.partition("/")[2]
    return f"{path}/{key}" if path else key


@settings(max_examples=sized(8))
@given(plan=plans, moment=st.integers(0, 60))
@example(plan=FAMILY, moment=9)
def test_a_tree_that_dies_anywhere_ends_as_if_it_had_not(plan: Plans, moment: int) -> None:
    """Property 14, with children: what they have done and said is not done and said again."""
    asks_nobody: Plans = {
        prompt: [_without(line, {"pay", "client"}) for line in some]
        for prompt, some in plan.items()
    }

    async def run_on(disk: MemoryStore, ledger: Ledger, fate: Fate) -> RunResult:
        agent = tree(ledger, asks_nobody, MortalStore(disk, fate))
        return await (
            agent.resume("r") if "r" in await disk.runs() else agent.generate("go", run_id="r")
        )

    async def scenario() -> None:
        whole, calm = Ledger(), MemoryStore()
        expected = await run_on(calm, whole, Fate())
        ledger, disk = Ledger(), MemoryStore()
        try:
            result = await run_on(disk, ledger, Fate(moment))
        except Died:
            result = await run_on(disk, ledger, Fate())

        assert all(count == 1 for count in ledger.done.values())
        assert await calm.runs() == await disk.runs()
        before, after = await journals(calm), await journals(disk)
        for run_id, events in after.items():
            replies = [one.reply for one in events if isinstance(one, ModelReplied)]
            assert len(replies) == sum(isinstance(one, ModelReplied) for one in before[run_id])
        assert expected.end_reason is result.end_reason
        assert expected.total_usage == result.total_usage
        assert len(expected.messages) == len(result.messages)

    asyncio.run(scenario())


@settings(max_examples=sized(8))
@given(plan=plans, most=st.integers(1, 8))
def test_all_agents_together_never_exceed_the_budget_s_tool_calls(plan: Plans, most: int) -> None:
    """GL9: parallel children get shares of what is left, and no share is spent twice."""

    async def work(store: Store) -> None:
        ledger = Ledger()

        def agent() -> Agent:
            return tree(ledger, plan, store, root={"budget": budget(tool_calls=most)})

        result, _ = await answered_in_rounds(agent, [1])

        every = await journals(store)
        returned = [one for events in every.values() for one in events]
        assert sum(isinstance(one, ToolReturned) for one in returned) <= most
        assert ledger.done.total() <= result.run.spent.tool_calls <= most

    on_disk(work, file=False)


CROWD: Plans = {"go": [batch(*["kid"] * 9)] * 9, "kid": [batch(*["leaf"] * 9)] * 9}


@settings(max_examples=sized(6))
@given(
    plan=crowds,
    most=st.integers(1, 8),
    moment=st.integers(0, 80),
    picks=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    steps=st.integers(1, 4),
)
@example(plan=CROWD, most=5, moment=0, picks=[1], steps=3)
@example(plan=CROWD, most=5, moment=30, picks=[1], steps=3)
def test_all_agents_together_keep_to_the_budget_s_agent_calls(
    plan: Plans, most: int, moment: int, picks: list[int], steps: int
) -> None:
    """GL9, and the bound: in any reply, at any depth, parked, or after a process has died."""

    async def work(disk: Store) -> None:
        ledger, fate = Ledger(), Fate(moment)
        assert isinstance(disk, MemoryStore)

        def agent() -> Agent:
            return tree(
                ledger,
                plan,
                MortalStore(disk, fate),
                root={"budget": budget(agent_calls=most), "max_steps": steps},
                kid={"max_steps": steps},
            )

        try:
            result, _ = await answered_in_rounds(agent, picks)
        except Died:
            fate = Fate()
            result, _ = await answered_in_rounds(agent, picks, begun="r" in await disk.runs())

        every = await journals(disk)
        returned = [one for events in every.values() for one in events]
        known = agent().bound().model_calls
        assert known is not None
        assert len(every) - 1 == result.run.spent.agent_calls <= most
        assert sum(isinstance(one, ModelReplied) for one in returned) <= known
        if any(one.status == "not_run" for step in result.steps for one in step.tool_results):
            assert "budget.agent_calls" in result.stopped_by

    on_disk(work, file=False)


@settings(max_examples=sized(8))
@given(
    plan=crowds,
    most=st.integers(1, 8),
    join=st.sampled_from(get_args(BranchJoin)),
    concurrency=st.integers(1, 3),
)
@example(plan=CROWD, most=5, join="first", concurrency=3)
def test_runs_that_nodes_begin_side_by_side_share_the_agent_calls(
    plan: Plans, most: int, join: BranchJoin, concurrency: int
) -> None:
    """They are no calls themselves; those that are stopped for the first have called as well."""
    model = PlannedModel(lambda prompt: plan.get(prompt, ()))
    leaf = Agent(model, name="leaf", max_steps=3).as_tool(description="deepest")
    kid = Agent(model, name="kid", tools=[leaf], max_steps=3).as_tool(description="below")
    fan, append = Parallel((Branch("kid", name="a"), Branch("kid", name="b")), join), Append()
    fan = replace(fan, concurrency=concurrency)
    graph: Graph[None] = Graph("fan", fan, {fan: {...: append}, append: {...: END}})
    limit = budget(agent_calls=most)

    async def work(store: Store) -> None:
        with suppress(RunFailed):
            await graph.run(
                None, prompt="kid", agents={"kid": kid}, budget=limit, store=store, run_id="r"
            )
        every = await journals(store)
        called = [one for one in every if one.count("/") > 1]
        replies = [one for events in every.values() for one in events]
        known = graph.run_bound(agents={"kid": kid}, budget=limit).model_calls
        assert known is not None
        assert len(called) == replay(graph, every["r"]).spent.agent_calls <= most
        assert sum(isinstance(one, ModelReplied) for one in replies) <= known

    on_disk(work, file=False)


@settings(max_examples=sized(8))
@given(plan=crowds, most=st.integers(1, 8), after=st.integers(1, 60))
def test_an_abort_counts_every_child_run_that_had_begun(plan: Plans, most: int, after: int) -> None:
    """A parent whose child is stopped goes on with what is left, and must not have it again."""

    async def work(store: Store) -> None:
        ledger = Ledger()
        root: AgentOptions = {"budget": budget(agent_calls=most)}
        stream = tree(ledger, plan, store, root=root).stream("go", run_id="r")
        seen = 0
        async for _ in stream.full_stream:
            seen += 1
            if seen == after:
                stream.abort("enough")
        result = await stream.result()

        began = len(await store.runs()) - 1
        assert began <= most
        if result.end_reason is not EndReason.PARKED:
            assert began <= result.run.spent.agent_calls <= most

    on_disk(work, file=False)


@settings(max_examples=sized(8))
@given(plan=crowds, most=st.integers(1, 8), after=st.integers(1, 60))
@example(plan=FAMILY, most=8, after=14)
def test_an_abort_counts_every_tool_that_had_begun(plan: Plans, most: int, after: int) -> None:
    """At any depth: what has run is never had again, and what has not is not paid for."""

    async def work(store: Store) -> None:
        ledger = Ledger()
        root: AgentOptions = {"budget": budget(tool_calls=most)}
        stream = tree(ledger, plan, store, root=root).stream("go", run_id="r")
        seen = 0
        async for _ in stream.full_stream:
            seen += 1
            if seen == after:
                stream.abort("enough")
        result = await stream.result()

        assert ledger.done.total() <= most
        if result.end_reason is not EndReason.PARKED:
            assert ledger.done.total() <= result.run.spent.tool_calls <= most

    on_disk(work, file=False)


@settings(max_examples=sized(8))
@given(plan=plans, after=st.integers(1, 40))
@example(plan=FAMILY, after=12)
def test_an_abort_reaches_every_child_and_counts_what_they_have_spent(
    plan: Plans, after: int
) -> None:
    """D07, §9 #18: no orphan goes on, in no process; what was paid for is in the total."""

    async def work(store: Store) -> None:
        ledger = Ledger()
        stream = tree(ledger, plan, store).stream("go", run_id="r")
        seen = 0
        async for _ in stream.full_stream:
            seen += 1
            if seen == after:
                stream.abort("enough")
        result = await stream.result()

        every = await journals(store)
        assert used(every) == result.total_usage
        if result.end_reason is EndReason.ABORTED:
            for run_id, events in every.items():
                assert isinstance(events[0], Started)
                assert _is_over(run_id, events, every), f"{run_id} goes on: {events[-1]}"
            assert_paired(tuple(result.run.messages))

    on_disk(work, file=False)


def _is_over(run_id: str, events: Sequence[Event], every: dict[str, Sequence[Event]]) -> bool:
    """Whether a run was cancelled, or had ended before: its parent heard of it, or was told."""
    last = events[-1]
    if isinstance(last, Cancelled):
        return True
    return isinstance(last, ModelReplied) and not last.reply.message.calls


@settings(max_examples=sized(6))
@given(plan=plans, after=st.integers(1, 30))
def test_an_abort_of_a_run_that_was_parked_reaches_the_children_too(
    plan: Plans, after: int
) -> None:
    """In a new process, which has driven none of them."""

    async def work(store: Store) -> None:
        ledger = Ledger()
        parked = await tree(ledger, plan, store).generate("go", run_id="r")
        if parked.end_reason is not EndReason.PARKED:
            return
        stream = tree(ledger, plan, store).resume_stream("r")
        stream.abort("enough")
        result = await stream.result()

        every = await journals(store)
        assert EndReason.ABORTED is result.end_reason
        assert used(every) == result.total_usage
        assert all(_is_over(one, events, every) for one, events in every.items())

    on_disk(work, file=True)


@settings(max_examples=sized(6))
@given(plan=plans)
def test_every_child_that_began_is_heard_of_exactly_once(plan: Plans) -> None:
    """One `ChildEnded` for each journal of a child, with all that it and its children spent."""

    async def work(store: Store) -> None:
        ledger = Ledger()
        await answered_in_rounds(lambda: tree(ledger, plan, store), [1, 3])

        every = await journals(store)
        for run_id in every:
            heard = [one for one in every[run_id] if isinstance(one, ChildEnded)]
            own = [one for one in every if one.rpartition("/")[0] == run_id]
            assert len(own) == len(heard)
            below = {one: every[one] for one in every if one.startswith(f"{run_id}/")}
            assert used(below) == sum((one.spent.usage for one in heard), Usage())

    on_disk(work, file=False)
