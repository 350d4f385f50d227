"""Tables of one's own keep the promises too: bounds, single executions, honest endings."""

from __future__ import annotations

import asyncio

import pytest

from graphloop import END, Agent, Edges, EndReason, Graph, ToolChoice, tool
from graphloop.driver import in_flight
from graphloop.errors import ContextOverflow, Overloaded
from graphloop.nodes import Append, Critique, Execute, Gate, ModelCall, PrepareStep, StopCheck
from graphloop.outcomes import (
    AnsweredCalls,
    Calls,
    Final,
    Go,
    Ready,
    Rejected,
    Resend,
    Settled,
)
from graphloop.providers.script import Entry
from graphloop.stores.jsonl import JsonlStore
from graphloop.testing import ScriptedModel
from graphloop.values import ModelRequest, Reply
from tests.strategies import call, reply


def table(*, executes_twice: bool = False) -> Graph[None]:
    """Return a loop with a critic whose rows for trouble are left to `...`."""
    prepare, draft, gate = PrepareStep(), ModelCall(), Gate()
    execute, again = Execute(), Execute(name="again")
    append, critique, stop = Append(), Critique("Good?"), StopCheck(max_steps=4)
    edges: Edges[None] = {
        prepare: {Ready: draft, ...: END},
        draft: {Calls: gate, ...: append},
        gate: {Settled: execute, ...: append},
        execute: {...: again if executes_twice else append},
        append: {Final: critique, AnsweredCalls: stop, Resend: stop, ...: END},
        critique: {Rejected: append, ...: END},
        stop: {Go: prepare, ...: END},
    }
    return Graph("mine", prepare, {**edges, again: {...: append}} if executes_twice else edges)


def test_turns_without_a_reply_count_as_turns() -> None:
    """A model that overflows and a critic that rejects would otherwise go on for ever."""
    asked = 0

    def overflow_or_reject(request: ModelRequest) -> Reply:
        nonlocal asked
        asked += 1
        if request.tools:
            return reply(call("verdict", arguments='{"accepted": false, "feedback": "no"}'))
        raise ContextOverflow("too long")

    model = ScriptedModel([overflow_or_reject] * 50)

    result = asyncio.run(table().run(None, model=model, prompt="go"))

    assert EndReason.MAX_STEPS is result.end_reason
    assert 8 == asked


def test_a_call_that_has_its_result_never_runs_again() -> None:
    """Whatever way a table leads to an execute node, and however often."""
    ran: list[int] = []

    @tool
    def count(number: int) -> str:
        """Count."""
        ran.append(number)
        return str(number)

    model = ScriptedModel(
        [
            {"calls": [{"name": "count", "arguments": {"number": 1}}]},
            "done",
            {"calls": [{"name": "verdict", "arguments": {"accepted": True, "feedback": ""}}]},
        ]
    )

    result = asyncio.run(
        table(executes_twice=True).run(None, model=model, prompt="go", tools=[count])
    )

    assert [1] == ran
    assert ["1"] == [one.text for one in result.steps[0].tool_results]


def test_a_failure_led_to_append_is_still_a_failure() -> None:
    """A row of `...` must not turn an error into an answer."""
    model = ScriptedModel([Overloaded("busy")])

    with pytest.raises(Overloaded, match="busy"):
        asyncio.run(table().run(None, model=model, prompt="go"))


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ToolChoice("none"), []),
        (ToolChoice("tool", "other"), ["other"]),
        (ToolChoice(), ["any", "other"]),
    ],
)
def test_a_tool_choice_holds_even_where_the_server_ignores_it(
    choice: ToolChoice, expected: list[str]
) -> None:
    """Several servers call what they like (WIRES, "Every wire" 9): check what came."""
    ran: list[str] = []

    @tool(name="any")
    def first() -> str:
        """Run."""
        ran.append("any")
        return "ok"

    @tool
    def other() -> str:
        """Run."""
        ran.append("other")
        return "ok"

    model = ScriptedModel([reply(call("any", arguments=""), call("other", arguments="")), "done"])

    Agent(model, tools=[first, other], tool_choice=choice).generate_sync("go")

    assert expected == sorted(ran)


def test_other_tasks_have_their_turn_beside_a_run_that_never_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Timers, signals and other runs must not stand still while plain functions run."""
    monkeypatch.setattr(in_flight, "SHARE_S", -1.0)  # As if every event had taken long.

    async def scenario() -> tuple[int, int]:
        ticks = 0
        loop = asyncio.get_running_loop()

        def tick() -> None:
            nonlocal ticks
            ticks += 1
            loop.call_soon(tick)

        @tool
        def nothing() -> str:
            """Return at once."""
            return "ok"

        loop.call_soon(tick)
        script: list[Entry] = [*([reply(call("nothing", arguments=""))] * 5), "done"]
        result = await Agent(ScriptedModel(script), tools=[nothing]).generate("go")
        return ticks, len(result.steps)

    ticks, steps = asyncio.run(scenario())

    assert 6 == steps
    assert ticks >= 2 * 5  # After the calls are checked, and after they have run.


async def test_a_graph_s_parked_run_is_resumed_by_its_id(tmp_path: object) -> None:
    """A topology of one's own waits for people like the standard one."""

    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    accepted: Entry = {
        "calls": [{"name": "verdict", "arguments": {"accepted": True, "feedback": ""}}]
    }
    model = ScriptedModel([reply(call("pay", arguments="")), "done", accepted])
    store = JsonlStore(str(tmp_path))

    parked = await table().run(
        None, model=model, prompt="go", tools=[pay], store=store, run_id="mine"
    )
    assert EndReason.PARKED is parked.end_reason
    ended = await table().resume(
        "mine", model=model, tools=[pay], store=store, approvals={"c0.0": True}
    )
    assert "done" == ended.text
