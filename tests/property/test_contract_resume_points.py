"""Contract 4 and 14: every moment at which a process can die, and every event it can be resumed at.

Not only between two events: before and after each is on the disk, and in the middle of each tool;
with children, approvals and client tools; and with all counters.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphloop import Agent, AnswerInfo, EndReason, RunResult, Tool, ToolContext, allow, deny
from graphloop.events import EffectsStarted, Event, Resumed
from graphloop.parts.kinds import ToolResultPart
from graphloop.replay import replay, replay_steps
from graphloop.run import Run
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.tools.options import EffectPolicy
from graphloop.values import Reply, ToolCall, ToolResult, evolve
from tests.agents import CLIENT, any_read
from tests.mortal_store import Died, Fate, MortalStore
from tests.planned_model import Line, PlannedModel, call
from tests.property.test_contract_pairing import assert_paired
from tests.runs import changed
from tests.sizes import sized
from tests.strategies import call as any_call
from tests.strategies import model_moves, reply

ONCE = frozenset({"send", "pay"})
MOMENTS_MAX = 400
"""More moments than any of these runs has."""


class World:
    """What tools have done, in every process; a model finds its plan here."""

    def __init__(self) -> None:
        self.fate = Fate()
        self.ran: Counter[str] = Counter()
        self.plans: Mapping[str, Sequence[Line]] = {}

    def enter(self, plans: Mapping[str, Sequence[Line]]) -> None:
        """Begin again, with other plans."""
        self.plans = plans
        self.ran.clear()

    def plan(self, prompt: str) -> Sequence[Line]:
        """Return the plan of whoever was told this."""
        return self.plans[prompt]

    async def do(self, arguments: dict[str, object], context: ToolContext) -> str:
        """Do something, with a moment to die at before and after it."""
        fate = self.fate
        fate.moment()
        self.ran[f"{context.run_id}:{context.key}"] += 1
        await asyncio.sleep(0)
        fate.moment()
        return f"did {arguments}"

    def agent(self, disk: MemoryStore) -> Agent:
        """Return the agent as a new process makes it."""
        model, store = PlannedModel(self.plan), MortalStore(disk, self.fate)
        return Agent(model, tools=[*OWN, HELPER], store=store, clock=lambda: 0.0)


WORLD = World()
"""The world that the tools are in: they are made once, for to compile a schema takes time."""


def tool(name: str, effect: EffectPolicy, *, gated: bool = False) -> Tool[..., object]:
    """Return a tool of the world."""
    parameters = {"type": "object"}
    return Tool(
        name=name, parameters=parameters, execute=WORLD.do, effect=effect, needs_approval=gated
    )


OWN = (
    tool("note", "idempotent"),
    tool("send", "at_most_once"),
    tool("pay", "at_most_once", gated=True),
    CLIENT,
)
HELPER = Agent(PlannedModel(WORLD.plan, "helper's"), tools=OWN).as_tool(
    name="helper", description="Helps."
)
GRAPH = WORLD.agent(MemoryStore()).graph

PLANS: dict[str, dict[str, Sequence[Line]]] = {
    "tools side by side": {"go": [[call("note"), call("send"), call("note")], "done"]},
    "one tool after the other": {"go": [[call("send")], [call("note")], "done"]},
    "a gate": {"go": [[call("pay"), call("note"), call("send")], "done"]},
    "a client tool": {"go": [[call("client"), call("send")], "done"]},
    "a helper": {
        "go": [[call("helper", prompt="help"), call("send"), call("note")], "done"],
        "help": [[call("send"), call("note")], "helped"],
    },
    "a helper with a gate": {
        "go": [[call("helper", prompt="help"), call("send")], "done"],
        "help": [[call("pay"), call("client")], "helped"],
    },
    "two helpers": {
        "go": [[call("helper", prompt="help"), call("helper", prompt="help")], "done"],
        "help": [[call("note")], [call("pay")], "helped"],
    },
}


async def to_the_end(agent: Agent, disk: MemoryStore) -> RunResult:
    """Take a run to its end, approving whatever is asked for the first time."""
    begun = "r" in await disk.runs()
    result = await (agent.resume("r") if begun else agent.generate("go", run_id="r"))
    while result.pending:
        approvals = {
            one.key: one.decline() if one.unknown else one.approve()
            for one in result.pending
            if one.kind == "approval"
        }
        results = {one.key: "theirs" for one in result.pending if one.kind == "client_tool"}
        result = await agent.resume("r", approvals=approvals, tool_results=results)
    return result


def histories(disk: MemoryStore) -> dict[str, Run[None]]:
    """Return all runs of a store."""

    async def load() -> dict[str, Run[None]]:
        return {one: replay(GRAPH, await disk.load(one)) for one in await disk.runs()}

    return asyncio.run(load())


def lived(plans: Mapping[str, Sequence[Line]], deaths: Sequence[int]) -> dict[str, Run[None]]:
    """Return what came of a run whose processes died after so many moments each, but the last."""
    disk = MemoryStore()
    WORLD.enter(plans)
    for after in deaths:
        WORLD.fate = Fate(after)
        try:
            asyncio.run(to_the_end(WORLD.agent(disk), disk))
        except Died:
            continue
        break
    WORLD.fate = Fate()
    result = asyncio.run(to_the_end(WORLD.agent(disk), disk))
    assert EndReason.COMPLETED is result.end_reason
    return histories(disk)


def assert_the_same(
    plans: Mapping[str, Sequence[Line]], calm: Mapping[str, Run[None]], deaths: Sequence[int]
) -> bool:
    """Assert that a run with deaths comes to the calm one's; return whether it does exactly."""
    found = lived(plans, deaths)

    unknown = 0
    assert calm.keys() == found.keys()
    for run_id, run in found.items():
        assert_paired(tuple(run.record.added))
        for expected, message in zip(calm[run_id].record.added, run.record.added, strict=True):
            if isinstance(message, ToolResult) and message.name in ONCE:
                assert WORLD.ran[f"{run_id}:{message.key}"] <= 1
                if message.status == "unknown":
                    unknown += 1
                    continue
            assert expected == message
        if not unknown:
            assert counters(calm[run_id]) == counters(run)
    return not unknown


def counters(run: Run[None]) -> object:
    """Return all that a run counts, but for times."""
    return (
        evolve(run.spent, seconds=0.0),
        run.counters.tool_errors,
        run.counters.denials,
        run.counters.rejections,
        run.ending,
        len(run.record.steps),
        run.next_effect,
    )


@pytest.mark.parametrize("name", PLANS)
def test_a_process_may_die_at_any_moment(name: str) -> None:
    """Every one of them, in order, until one comes after the end."""
    plans = PLANS[name]
    calm = lived(plans, [])
    exact = [assert_the_same(plans, calm, [after]) for after in range(moments(plans) + 1)]

    assert len(exact) > 10
    assert sum(exact) > len(exact) / 3


def moments(plans: Mapping[str, Sequence[Line]]) -> int:
    """Return at how many moments an undisturbed run could die."""
    disk = MemoryStore()
    WORLD.enter(plans)
    WORLD.fate = Fate(MOMENTS_MAX)
    asyncio.run(to_the_end(WORLD.agent(disk), disk))
    assert WORLD.fate.after is not None
    return MOMENTS_MAX - WORLD.fate.after


@settings(max_examples=sized(12))
@given(
    name=st.sampled_from(sorted(PLANS)), deaths=st.lists(st.integers(0, 40), min_size=2, max_size=5)
)
@example(name="two helpers", deaths=[20, 1, 1, 1, 1])
def test_processes_may_die_one_after_the_other(name: str, deaths: list[int]) -> None:
    """Also while they recover from the one before."""
    assert_the_same(PLANS[name], lived(PLANS[name], []), deaths)


acts = st.sampled_from(["send", "note", "helper"]).map(
    lambda name: call(name, prompt="help") if name == "helper" else call(name)
)
turns_of_acts = st.lists(st.lists(acts, min_size=1, max_size=3), min_size=1, max_size=3)


async def shown(agent: Agent, disk: MemoryStore, told: dict[str, object]) -> None:
    """Take a run to its end, and note each result of a tool that its reader is shown."""
    begun = "r" in await disk.runs()
    stream = agent.resume_stream("r") if begun else agent.stream("go", run_id="r")
    async for part in stream.full_stream:
        if isinstance(part, ToolResultPart):
            told[part.result.key] = part.result.content


@settings(max_examples=sized(4))
@given(lines=turns_of_acts, helped=turns_of_acts)
@example(lines=[[call("send")], [call("send"), call("note")]], helped=[[call("send")]])
@example(lines=[[call("helper", prompt="help"), call("send")]], helped=[[call("send")]])
def test_a_death_at_any_commit_repeats_no_act_and_loses_no_result(
    lines: list[list[ToolCall]], helped: list[list[ToolCall]]
) -> None:
    """Neither a tool that acts runs twice, nor does a result change that a reader was shown."""
    below = [[one for one in line if one.name != "helper"] for line in helped]
    plans: dict[str, Sequence[Line]] = {
        "go": [*lines, "done"],
        "help": [*[line for line in below if line], "helped"],
    }

    for after in range(moments(plans)):
        disk, told = MemoryStore(), dict[str, object]()
        WORLD.enter(plans)
        WORLD.fate = Fate(after)
        with pytest.raises(Died):
            asyncio.run(shown(WORLD.agent(disk), disk, told))
        WORLD.fate = Fate()
        asyncio.run(to_the_end(WORLD.agent(disk), disk))

        for run_id, run in histories(disk).items():
            for message in run.record.added:
                if isinstance(message, ToolResult) and message.name == "send":
                    times = WORLD.ran[f"{run_id}:{message.key}"]
                    assert times <= 1, (after, run_id)
                    assert times == 1 or message.status == "unknown", (after, run_id)
                if isinstance(message, ToolResult) and run_id == "r" and message.key in told:
                    assert message.content == told[message.key], after


scripts = st.lists(model_moves, max_size=4).map(tuple)


def repeatable(name: str, execute: Callable[..., object], *, gated: bool = False) -> Tool:
    """Return a tool that may run again: at any event, a driver may have died in the middle."""
    return Tool(
        name=name,
        parameters={"type": "object"},
        execute=execute,
        needs_approval=gated,
        effect="idempotent",
    )


def fail(_: dict[str, object]) -> str:
    """Fail to write."""
    raise OSError("disk")


GATED, FREE = repeatable("read", any_read, gated=True), repeatable("read", any_read)
WRITE = repeatable("write", fail)


class Counted:
    """An agent that has something of every counter: errors, denials, rejections, spent."""

    def __init__(self, script: Sequence[Reply], *, denied: bool, gated: bool) -> None:
        # What is said depends on the conversation, not on who was asked before.
        self.script = [*script, *[reply("done")] * 40]
        self.denied = denied
        self.tools = (GATED if gated else FREE, WRITE, CLIENT)

    def agent(self, store: MemoryStore, said: int) -> Agent:
        """Return the agent whose model has said so much already."""
        return Agent(
            ScriptedModel(self.script[said:]),
            tools=self.tools,
            store=store,
            max_steps=6,
            gate=deny("write") | allow("*") if self.denied else None,
            done_when=done,
            clock=lambda: 0.0,
        )


def done(info: AnswerInfo) -> bool:
    """Say no once."""
    return info.attempt > 0


async def finished(agent: Agent, disk: MemoryStore) -> Run[None]:
    """Take a run to its end, answering whatever it waits for."""
    begun = "r" in await disk.runs()
    try:
        stream = agent.resume_stream("r") if begun else agent.stream("go", run_id="r")
        result = await stream.result()
        while result.pending:
            approvals = {one.key: True for one in result.pending if one.kind == "approval"}
            results = {one.key: "theirs" for one in result.pending if one.kind == "client_tool"}
            result = await agent.resume("r", approvals=approvals, tool_results=results)
    except OSError as error:
        raise AssertionError("no model fails here") from error
    return replay(agent.graph, await disk.load("r"))


def asked(events: Sequence[Event]) -> int:
    """Return how often the model has answered."""
    return sum(type(one).__name__ == "ModelReplied" for one in events)


@settings(max_examples=sized(8))
@given(script=scripts, denied=st.booleans(), gated=st.booleans())
@example(script=(reply(any_call("write"), any_call()),) * 4, denied=False, gated=True)
@example(script=(reply(any_call("write")),) * 4, denied=True, gated=False)
def test_a_run_resumed_at_any_of_its_events_is_the_run(
    script: tuple[Reply, ...], denied: bool, gated: bool
) -> None:
    """resume(checkpoint n) and what is left = the whole, for every n, with every counter."""
    world, store = Counted(script, denied=denied, gated=gated), MemoryStore()
    calm = asyncio.run(finished(world.agent(store, 0), store))
    journal = asyncio.run(store.load("r"))

    for count in range(1, len(journal) + 1):
        prefix = MemoryStore()
        asyncio.run(prefix.append_all({"r": journal[:count]}))
        run = asyncio.run(finished(world.agent(prefix, asked(journal[:count])), prefix))

        assert whole(calm) == whole(run)
        resumed = asyncio.run(prefix.load("r"))
        assert list(journal[:count]) == list(resumed[:count])
        assert life(journal) == life(resumed)


def whole(run: Run[None]) -> object:
    """Return all of a run but for how often it was taken up."""
    return changed(run, seq=0, at=0.0, started=frozenset())


def life(journal: Sequence[Event]) -> list[Event]:
    """Return a journal without the lives of its processes."""
    return [one for one in journal if not isinstance(one, Resumed | EffectsStarted)]


def test_each_prefix_of_a_journal_is_a_run_of_its_own() -> None:
    """The n-th checkpoint is the fold of the first n events, and nothing else."""
    world, store = Counted((reply(any_call()),), denied=False, gated=True), MemoryStore()
    agent = world.agent(store, 0)
    asyncio.run(finished(agent, store))
    journal = asyncio.run(store.load("r"))

    for count, taken in enumerate(replay_steps(agent.graph, journal), 1):
        assert taken.run == replay(agent.graph, journal[:count])
