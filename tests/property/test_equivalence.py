"""Contract 6: whatever door a run goes through, it is the same run.

Property 6 of CONTRACT's appendix, for whole scenarios: the same random script, with tools, a
helper, gates, parks and answers, buffered, streamed, synchronous, iterated and replayed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Literal, TypeAlias, TypeVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphloop import Agent, AnswerInfo, EndReason, RunResult, Tool, allow, ask, deny
from graphloop.driver import in_flight
from graphloop.events import Event, Resumed, Steered
from graphloop.policy.approvals import Approval
from graphloop.replay import replay
from graphloop.stores.codec import Codec
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import Reply
from tests.agents import CLIENT, any_read, write
from tests.property.test_contract_pairing import assert_paired
from tests.sizes import sized
from tests.strategies import call, model_moves, reply


@pytest.fixture(autouse=True, scope="module")
def no_clock() -> Iterator[None]:
    """Give other tasks the event loop by no clock: it decides how two children interleave."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_flight, "SHARE_S", inf)
        yield


T = TypeVar("T")
Door: TypeAlias = Literal["buffered", "streamed", "synchronous", "iterated"]
Given: TypeAlias = tuple[dict[str, bool | Approval], dict[str, object]]
Outcome: TypeAlias = RunResult | Exception

RUN = "scenario"
LEGS_MAX = 4
PROMPT = '{"prompt": "help"}'

ANYTHING = {"type": "object"}
OWN = (
    Tool(name="read", parameters=ANYTHING, execute=any_read),
    Tool(name="pay", parameters=ANYTHING, execute=any_read, needs_approval=True),
    write,
    CLIENT,
)

moves: st.SearchStrategy[Reply | Exception] = (
    model_moves
    | st.just(ConnectionError("line"))
    | st.sampled_from(
        [
            reply(call("helper", "h", PROMPT), call("read")),
            reply(call("helper", "h", PROMPT), call("helper", "h", PROMPT), call("client")),
            reply(call("pay"), call("helper", "", PROMPT)),
        ]
    )
)
scripts = st.lists(moves, max_size=3).map(tuple)


@dataclass(frozen=True)
class Scenario:
    """What the model and the helper's model say, and what people decide."""

    top: tuple[Reply | Exception, ...]
    below: tuple[Reply | Exception, ...] = ()
    approved: bool = True
    gated: bool = False
    redrives: int = 0
    concurrency: int = 5
    max_steps: int = 6

    def agent(self, store: MemoryStore) -> Agent:
        """Return the agent of this scenario, in a process that knows nothing of others."""
        helper = Agent(model(self.below, "helper's"), tools=OWN, max_steps=self.max_steps)
        gate = allow("read", "pay", "helper", "client") | ask("write") | deny("*")
        return Agent(
            model(self.top, "top"),
            tools=[*OWN, helper.as_tool(name="helper", description="Helps.")],
            store=store,
            gate=gate if self.gated else None,
            done_when=self.is_done if self.redrives else None,
            max_steps=self.max_steps,
            max_tool_concurrency=self.concurrency,
            clock=lambda: 0.0,
        )

    def is_done(self, info: AnswerInfo) -> bool:
        """Say whether the model may be done, by what it is told alone."""
        return info.attempt >= self.redrives

    def answer(self, pending: RunResult) -> Given:
        """Answer everything that a run waits for."""
        asks = [one for one in pending.pending if one.kind == "approval"]
        return (
            {one.key: one.approve() if self.approved else one.decline("no") for one in asks},
            {one.key: "theirs" for one in pending.pending if one.kind == "client_tool"},
        )


def model(script: Sequence[Reply | Exception], label: str) -> ScriptedModel:
    """Return a model that says this, and then "done" for ever."""
    # A fresh error each time: one that is raised again keeps its old traceback.
    fresh = [type(one)(*one.args) if isinstance(one, Exception) else one for one in script]
    return ScriptedModel([*fresh, *[reply("done")] * 40], label=label)


async def through(door: Door, agent: Agent) -> RunResult:
    """Ask an agent through a door."""
    match door:
        case "buffered" | "synchronous":
            return await agent.generate("go", run_id=RUN)
        case "streamed":
            stream = agent.stream("go", run_id=RUN)
            _ = [part async for part in stream.full_stream]
            return await stream.result()
        case "iterated":
            runner = agent.iter("go", run_id=RUN)
            async for turn in runner:
                assert turn.message
            return await runner.until_done()


async def again(door: Door, agent: Agent, answers: Given) -> RunResult:
    """Take a parked run up through a door."""
    approvals, results = answers
    if door != "streamed":
        return await agent.resume(RUN, approvals=approvals, tool_results=results)
    stream = agent.resume_stream(RUN, approvals=approvals, tool_results=results)
    _ = [part async for part in stream.full_stream]
    return await stream.result()


def outcomes(door: Door, scenario: Scenario) -> tuple[list[object], list[Event], Outcome]:
    """Return what each leg came to, the journal, and the last result."""
    store = MemoryStore()
    agent = scenario.agent(store)
    legs: list[object] = []
    result = caught(partial(start, door, agent))
    legs.append(told(result))
    while isinstance(result, RunResult) and result.pending and len(legs) < LEGS_MAX:
        answers = scenario.answer(result)
        result = caught(partial(take_up, door, agent, answers))
        legs.append(told(result))
    return legs, list(asyncio.run(store.load(RUN))), result


def start(door: Door, agent: Agent) -> RunResult:
    """Ask from a caller without an event loop."""
    if door == "synchronous":
        return agent.generate_sync("go", run_id=RUN)
    return asyncio.run(through(door, agent))


def take_up(door: Door, agent: Agent, answers: Given) -> RunResult:
    """Answer from a caller without an event loop."""
    if door == "synchronous":
        return agent.resume_sync(RUN, approvals=answers[0], tool_results=answers[1])
    return asyncio.run(again(door, agent, answers))


def caught(drive: Callable[[], RunResult]) -> Outcome:
    """Return a result, or the error in its place."""
    try:
        return drive()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what came of the run
        return error


def told(result: Outcome) -> object:
    """Return what a caller can tell of a leg."""
    if isinstance(result, Exception):
        return type(result), str(result)
    return (
        result.text,
        result.messages,
        result.steps,
        result.end_reason,
        result.stopped_by,
        result.finish_reason,
        result.usage,
        result.total_usage,
        result.pending,
        result.warnings,
    )


def kinds(journal: Sequence[Event], *left_out: type[Event]) -> Counter[str]:
    """Count the events of a journal by their types."""
    return Counter(type(one).__name__ for one in journal if not isinstance(one, left_out))


scenarios = st.builds(
    Scenario,
    scripts,
    scripts,
    st.booleans(),
    st.booleans(),
    st.integers(0, 2),
    st.integers(1, 5),
    st.integers(1, 6),
)
PARKS_BELOW = Scenario(
    (reply(call("helper", "", PROMPT), call("read")),), (reply(call("pay"), call("client")),)
)
FAILS_BELOW = Scenario((reply(call("helper", "", PROMPT)),), (ConnectionError("line"),))


@pytest.mark.parametrize("door", ["streamed", "synchronous"])
@settings(max_examples=sized(12))
@given(scenario=scenarios)
@example(scenario=PARKS_BELOW)
@example(scenario=FAILS_BELOW)
def test_a_scenario_is_one_run_through_every_door(door: Door, scenario: Scenario) -> None:
    """Equal results, leg by leg, and the same events; their order is the clock's where two race."""
    legs, journal, buffered = outcomes("buffered", scenario)

    other_legs, other_journal, other = outcomes(door, scenario)

    assert legs == other_legs
    assert kinds(journal) == kinds(other_journal)
    if isinstance(buffered, RunResult) and isinstance(other, RunResult):
        assert buffered.run == other.run
        assert_paired(tuple(buffered.run.messages))


@settings(max_examples=sized(15))
@given(scenario=scenarios)
@example(scenario=PARKS_BELOW)
@example(scenario=FAILS_BELOW)
def test_an_iterated_run_that_nobody_steers_is_the_run(scenario: Scenario) -> None:
    """To be looked at changes nothing: the journal only says that somebody had a look."""
    legs, journal, _ = outcomes("buffered", scenario)

    other_legs, other_journal, _ = outcomes("iterated", scenario)

    assert legs == other_legs
    assert kinds(journal, Resumed) == kinds(other_journal, Resumed, Steered)


@settings(max_examples=sized(15))
@given(scenario=scenarios)
@example(scenario=PARKS_BELOW)
def test_a_replayed_scenario_is_the_run_that_was(scenario: Scenario) -> None:
    """From its journal's bytes, and without asking anybody."""
    _, journal, result = outcomes("buffered", scenario)
    codec = Codec()
    read = [codec.decode(codec.encode(at, one))[1] for at, one in enumerate(journal, 1)]

    replayed = replay(scenario.agent(MemoryStore()).graph, read)

    assert journal == read
    if isinstance(result, RunResult):
        assert result.run == replayed
    else:
        assert replayed.ending is not None
        assert EndReason.ERROR is replayed.ending.reason
