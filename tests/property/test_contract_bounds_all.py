"""Contract 8: every hard bound holds at once, whatever models, tools and people do.

The model never wants to stop: it always calls, always pauses, is always wrong, is always denied,
hands its work to others. The bounds hold over the whole tree of runs.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from graphloop import Agent, AnswerInfo, EndReason, Graph, Tool, ToolContext, budget
from graphloop.nodes.extend import RETRIES_MAX
from graphloop.replay import replay, replay_steps
from graphloop.run import Run
from graphloop.spending import Budget
from graphloop.step import Step
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.tools.schema import parameters_of
from graphloop.values import FinishReason, OpaquePart, Reply
from tests.agents import ticking
from tests.sizes import sized
from tests.strategies import call, reply

PROMPT = '{"prompt": "help"}'
CUT = reply(call(arguments='{"x": '), finish=FinishReason.LENGTH)
PAUSED = reply(OpaquePart("{}"), finish=FinishReason.PAUSE)

moves = st.sampled_from(
    [
        reply("done"),
        reply(call()),
        reply(*[call()] * 9),
        reply(call("fail"), call()),
        reply(call("fail")),
        reply(call("act")),
        reply(call("act"), call("act"), call()),
        reply(call("nowhere")),
        reply(call(arguments="{")),
        reply(call("helper", "", PROMPT)),
        reply(call("helper", "", PROMPT), call("helper", "", PROMPT), call()),
        reply(*[call("helper", "", PROMPT)] * 7),
        reply(call("final_answer")),
        reply(call("final_answer", "", '{"n": 1}')),
        reply(),
        CUT,
        PAUSED,
    ]
)


class Number(BaseModel):
    """The form of an answer that nobody gives."""

    n: int


@dataclass(frozen=True)
class Bounds:
    """All hard bounds of one run."""

    steps: int = 6
    denials: int = 3
    errors: int = 3
    redrives: int = 1
    typed: bool = False
    budget: Budget = field(default_factory=Budget)
    approved: bool = False


budgets = st.builds(
    Budget,
    st.none() | st.integers(1, 90),
    st.none() | st.floats(0.5, 6.0),
    st.none() | st.floats(1.0, 60.0),
    st.none() | st.integers(1, 12),
    st.none() | st.integers(1, 5),
)
bounds = st.builds(
    Bounds,
    st.integers(1, 6),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 2),
    st.booleans(),
    budgets,
    st.booleans(),
)


class Trial:
    """An agent and its helper under some bounds, and all that their tools did."""

    def __init__(self, top: Sequence[Reply], below: Sequence[Reply], bounds: Bounds) -> None:
        self.ran: Counter[str] = Counter()
        self.bounds = bounds
        self.store = MemoryStore()
        tools = (
            Tool(name="read", parameters=PARAMETERS, execute=self.read),
            Tool(name="fail", parameters=PARAMETERS, execute=self.fail),
            Tool(name="act", parameters=PARAMETERS, execute=self.read, needs_approval=True),
        )
        helper = Agent(ScriptedModel(list(below) * 200, label="helper's"), tools=tools, max_steps=4)
        self.helper = helper.graph
        self.agent = Agent(
            ScriptedModel(list(top) * 200),
            tools=[*tools, helper.as_tool(name="helper", description="Helps.")],
            max_steps=bounds.steps,
            max_consecutive_denials=bounds.denials,
            max_consecutive_tool_errors=bounds.errors,
            budget=budget(
                tokens=bounds.budget.tokens,
                usd=bounds.budget.usd,
                seconds=bounds.budget.seconds,
                tool_calls=bounds.budget.tool_calls,
                agent_calls=bounds.budget.agent_calls,
            )
            if bounds.budget != Budget()
            else None,
            output_type=Number if bounds.typed else None,
            done_when=never_done,
            max_done_retries=bounds.redrives,
            approve_tool_call=lambda _: bounds.approved,
            price=lambda _: 0.5,
            store=self.store,
            clock=ticking(),
        )

    async def read(self, arguments: dict[str, object], context: ToolContext) -> str:
        """Do something that counts."""
        self.ran[f"{context.run_id}:{context.key}"] += 1
        return "read"

    async def fail(self, arguments: dict[str, object], context: ToolContext) -> str:
        """Fail."""
        self.ran[f"{context.run_id}:{context.key}"] += 1
        raise OSError("disk")

    def graph_of(self, run_id: str) -> Graph[None]:
        """Return the graph of a run."""
        return self.helper if "/" in run_id else self.agent.graph

    def journals(self) -> dict[str, list[Step[None]]]:
        """Run to the end, and return the steps of all runs."""

        async def run() -> dict[str, list[Step[None]]]:
            stream = self.agent.stream("go", run_id="r")
            await stream.consume()
            return {
                one: list(replay_steps(self.graph_of(one), await self.store.load(one)))
                for one in await self.store.runs()
            }

        return asyncio.run(run())


def never_done(info: AnswerInfo) -> bool:
    """Never be content."""
    return False


PARAMETERS = parameters_of({"type": "object"}, "every tool")


@settings(max_examples=sized(15))
@given(
    top=st.lists(moves, min_size=1, max_size=4),
    below=st.lists(moves, min_size=1, max_size=3),
    bounds=bounds,
)
@example(top=[reply(call("helper", "", PROMPT))], below=[reply(call())], bounds=Bounds())
@example(
    top=[reply(*[call()] * 9)], below=[reply(call())], bounds=Bounds(budget=Budget(tool_calls=5))
)
@example(top=[reply(call("act"))], below=[reply("x")], bounds=Bounds(steps=6, denials=2))
@example(top=[reply("no")], below=[reply("x")], bounds=Bounds(steps=6, redrives=2, typed=True))
def test_no_bound_of_a_run_is_ever_exceeded(
    top: list[Reply], below: list[Reply], bounds: Bounds
) -> None:
    """A bound that bends once is no bound: people put money behind it."""
    trial = Trial(top, below, bounds)

    journals = trial.journals()

    root = journals["r"][-1].run
    assert root.ended
    assert root.ending is not None
    assert bounds.steps >= len(root.record.steps)
    assert bounds.denials >= root.counters.denials
    assert all(bounds.errors >= count for count in root.counters.tool_errors.values())
    assert bounds.redrives >= root.counters.rejections.get("done_when", 0)
    for run_id, steps in journals.items():
        assert_no_turn_begins_once_a_budget_is_reached(run_id, steps)
    assert_tools_within(bounds.budget, trial.ran, root)
    assert_models_within(bounds, journals)
    assert_agents_within(bounds.budget, journals, root)
    known = trial.agent.bound().model_calls
    assert known is None or root.spent.model_calls <= known
    assert (known is None) is (bounds.budget.agent_calls is None)


def assert_no_turn_begins_once_a_budget_is_reached(
    run_id: str, steps: Sequence[Step[None]]
) -> None:
    """Assert that whoever has spent all asks for nothing more; one turn may exceed it."""
    for before, taken in pairwise(steps):
        new_turn = taken.run.turn.number > before.run.turn.number
        if new_turn and not taken.run.ended:
            tripped = taken.run.setup.budget.tripped(taken.run.spent)
            assert not tripped, (
                f"{run_id}: turn {taken.run.turn.number} begins in spite of {tripped}"
            )


def assert_tools_within(allowed: Budget, ran: Counter[str], root: Run[None]) -> None:
    """Assert that the number of tool calls, of all runs together, is never exceeded."""
    assert all(count == 1 for count in ran.values())
    assert sum(ran.values()) <= root.spent.tool_calls
    if allowed.tool_calls is not None:
        assert sum(ran.values()) <= allowed.tool_calls


def assert_agents_within(
    allowed: Budget, journals: dict[str, list[Step[None]]], root: Run[None]
) -> None:
    """Assert that the number of child runs, at any depth, is never exceeded."""
    assert len(journals) - 1 == root.spent.agent_calls
    if allowed.agent_calls is not None:
        assert root.spent.agent_calls <= allowed.agent_calls


def assert_models_within(bounds: Bounds, journals: dict[str, list[Step[None]]]) -> None:
    """Assert that no run asks its model more often than its turns and their retries allow."""
    for run_id, steps in journals.items():
        asked = sum(type(one.event).__name__ == "ModelReplied" for one in steps)
        most = bounds.steps if run_id == "r" else 4
        assert asked <= most * (1 + RETRIES_MAX)


@given(move=moves, bounds=bounds)
def test_a_model_that_never_changes_its_mind_ends_with_a_reason(
    move: Reply, bounds: Bounds
) -> None:
    """And the result names all that stopped it."""
    trial = Trial([move], [move], bounds)

    run = trial.journals()["r"][-1].run

    assert run.ending is not None
    quiet = {
        EndReason.COMPLETED,
        EndReason.LENGTH,
        EndReason.EMPTY_RESPONSE,
        EndReason.ERROR,
        EndReason.INCOMPLETE,
    }
    assert run.ending.stopped_by or run.ending.reason in quiet
    assert run == replay(trial.agent.graph, asyncio.run(trial.store.load("r")))
