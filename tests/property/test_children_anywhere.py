"""Wherever child runs are driven, and in whatever order: the same results, usage and effects."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphloop import Agent, ToolContext, tool
from graphloop.effects import Place
from graphloop.run import Run
from graphloop.stores import MemoryStore
from graphloop.values import Message, ToolCall, Usage
from graphloop.workers import Worker
from tests.planned_model import Line, PlannedModel, call
from tests.sizes import sized

FLOORS = 2
LEGS_MAX = 400

Family = tuple[tuple["Family", ...] | None, ...]
"""The turns of a run: of each, its child runs, or None for a note."""

LEAF: Family = (None,)
SHAPES: st.SearchStrategy[Family] = st.recursive(
    st.just(LEAF),
    lambda family: st.lists(
        st.one_of(st.none(), st.lists(family, min_size=1, max_size=3).map(tuple)),
        min_size=1,
        max_size=2,
    ).map(tuple),
    max_leaves=6,
)


def plan_of(family: Family, name: str, floor: int = 0) -> dict[str, list[Line]]:
    """Return what each model says in a family, by the prompt of its run."""
    plans: dict[str, list[Line]] = {name: []}
    for turn, children in enumerate(family):
        calls: list[ToolCall] = [call("note", text=f"{name} {turn}")]
        for at, child in enumerate(children or ()):
            if floor < FLOORS:
                prompt = f"{name}.{turn}.{at}"
                calls.append(call("helper", prompt=prompt))
                plans |= plan_of(child, prompt, floor + 1)
        plans[name].append(calls)
    plans[name].append(f"{name} is done.")
    return plans


def agent_of(
    plans: Mapping[str, Sequence[Line]], places: Sequence[Place], done: list[str]
) -> Agent:
    """Return the root agent, with an agent as a tool on each floor below."""

    @tool
    def note(text: str, context: ToolContext) -> str:
        """Note a text."""
        done.append(f"{context.run_id} {context.key} {text}")
        return f"{text} is noted"

    agent = Agent(PlannedModel(plans.__getitem__), tools=[note], name="boss")
    for place in places:
        helper = agent.as_tool(name="helper", description="Helps.", place=place)
        agent = Agent(PlannedModel(plans.__getitem__), tools=[note, helper], name="boss")
    return agent


@dataclass(frozen=True)
class Came:
    """What a family has come to: the messages and usage of each run, and the effects."""

    runs: Mapping[str, tuple[Sequence[Message], Usage, int]]
    done: Sequence[str]

    @classmethod
    def of(cls, runs: Mapping[str, Run[None]], done: Sequence[str]) -> Came:
        told = {
            run_id: ([*run.messages], run.spent.usage, run.spent.agent_calls)
            for run_id, run in runs.items()
        }
        return cls(told, sorted(done))


async def states(agent: Agent, store: MemoryStore) -> dict[str, Run[None]]:
    return {run_id: await agent.runs(store).replay(run_id) for run_id in await store.runs()}


async def beside(plans: Mapping[str, Sequence[Line]]) -> Came:
    """Return what a family comes to whose children are all beside their parents."""
    done, store = list[str](), MemoryStore()
    places: tuple[Place, ...] = ("here", "here")
    agent = agent_of(plans, places, done)
    await agent.runs(store).submit("go", run_id="r")
    await agent.runs(store).resume("r")
    return Came.of(await states(agent, store), done)


async def anywhere(
    plans: Mapping[str, Sequence[Line]], places: Sequence[Place], choice: Sequence[int]
) -> Came:
    """Return what a family comes to; `choice` says which of the runs that wait goes on."""
    done, store = list[str](), MemoryStore()
    agent = agent_of(plans, places, done)
    worker = Worker([agent], store)
    await agent.runs(store).submit("go", run_id="r")
    for leg in range(LEGS_MAX):
        waiting = await store.ready({"boss"}, 99)
        if not waiting:
            assert {one.status for one in await store.overview()} == {"done"}
            return Came.of(await states(agent, store), done)
        chosen = waiting[choice[leg % len(choice)] % len(waiting)]
        assert await worker.drive(chosen) in ("over", "parked")
    raise AssertionError("it does not end")


@given(
    SHAPES,
    st.lists(st.sampled_from(["here", "anywhere"]), min_size=FLOORS, max_size=FLOORS),
    st.lists(st.integers(0, 9), min_size=1, max_size=9),
)
@example(((((LEAF,),), LEAF),), ["anywhere"] * 2, [0, 1])
@settings(max_examples=sized(ci=40, nightly=1_000), deadline=None)
def test_the_place_of_a_child_changes_nothing(
    family: Family, places: list[Place], choice: list[int]
) -> None:
    """Neither what a run says, nor what it costs, nor what it does."""
    plans = plan_of(family, "go")

    assert asyncio.run(beside(plans)) == asyncio.run(anywhere(plans, places, choice))
