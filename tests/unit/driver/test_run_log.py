"""The logger `graphloop`: a line a turn, the developer's bugs, and no content."""

from __future__ import annotations

import logging
from itertools import count
from typing import Any

import pytest
from pydantic import BaseModel

from graphloop import Agent, budget, tool
from graphloop.driver import Ports
from graphloop.spending import Budget
from graphloop.testing import ScriptedModel

CANARY = "canary-7f3a"


@tool
async def look(word: str) -> str:
    """Look something up."""
    return f"{CANARY} result {word}"


class Temperature(BaseModel):
    """An answer with a form."""

    celsius: int


@tool
async def crash() -> str:
    """Crash."""
    raise KeyError("Paris")


def agent(*replies: Any, limit: Budget | None = None) -> Agent:
    return Agent(
        ScriptedModel([*replies]),
        tools=[look, crash],
        instructions=f"{CANARY} system",
        clock=count(100.0, 0.5).__next__,
        budget=limit,
    )


async def test_a_run_writes_a_line_a_turn_and_its_end(caplog: pytest.LogCaptureFixture) -> None:
    """An on-call engineer finds a slow or costly turn without a trace tool."""
    call = {"name": "look", "arguments": {"word": f"{CANARY} argument"}}
    usage = {"input_tokens": 100, "output_tokens": 20}
    with caplog.at_level("INFO", "graphloop"):
        await agent(
            {"calls": [call], "usage": usage}, {"text": f"{CANARY} answer", "usage": usage}
        ).generate(f"{CANARY} prompt", run_id="r")

    assert CANARY not in caplog.text
    first = next(one for one in caplog.records if getattr(one, "step", None) == 0)
    assert ("r", "agent", "tool_calls", 100, 20) == (
        first.__dict__["run_id"],
        first.__dict__["agent"],
        first.__dict__["finish"].replace("-", "_"),
        first.__dict__["tokens_in"],
        first.__dict__["tokens_out"],
    )
    assert first.__dict__["seconds"] > 0
    assert [0, 1] == [one.__dict__["step"] for one in caplog.records if hasattr(one, "step")]
    assert "run r agent: completed after 2 steps, 240 tokens" in caplog.messages[-1]
    assert ": tool_calls, 1 call, 100 + 20 tokens" in first.getMessage().replace("-", "_")
    assert {logging.INFO} == {one.levelno for one in caplog.records}


async def test_one_step_is_not_called_steps(caplog: pytest.LogCaptureFixture) -> None:
    """A log is read by people."""
    with caplog.at_level("INFO", "graphloop"):
        await agent({"text": "Hi.", "usage": {"output_tokens": 1}}).generate("Hello", run_id="r")

    assert ", 0 calls, 0 + 1 tokens" in caplog.messages[-2]
    assert "completed after 1 step, 1 token, " in caplog.messages[-1]


async def test_a_bug_of_a_tool_reaches_the_developer(caplog: pytest.LogCaptureFixture) -> None:
    """The model reads the error as text, so only the log can show the line of the bug."""
    await agent({"calls": [{"name": "crash"}]}, "done").generate("go", run_id="r")

    (record,) = caplog.records
    assert (logging.WARNING, "run r: tool 'crash' raised") == (record.levelno, record.message)
    assert 'raise KeyError("Paris")' in caplog.text


async def test_a_budget_that_cannot_count_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A developer who never looks at `result.warnings` believes in a limit that limits nothing."""
    result = await agent("done", limit=budget(usd=0.01)).generate("go", run_id="r")

    assert [f"run r: {one}" for one in result.warnings] == caplog.messages
    assert "cannot count all model calls" in caplog.text


async def test_a_blocked_question_of_a_typed_agent_warns_of_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """That a screen blocks is its work; the end reason tells it, and so does `result.output`."""
    blocked = Agent(ScriptedModel([]), output_type=Temperature, screen=lambda _: False)

    result = await blocked.generate("go", run_id="r")

    assert (result.end_reason, result.warnings, caplog.messages) == ("refusal", (), [])


async def test_nothing_is_computed_when_the_level_is_off() -> None:
    """A line that no handler takes costs nothing: the run has no observer."""
    plain = agent("done")

    await plain.generate("go")

    terms = plain._terms  # pyright: ignore[reportPrivateUsage] - the ports are no public value
    ports: Ports[None] = terms.ports(terms.shared.store())
    assert ports.observers is None


async def test_a_parent_and_its_child_share_one_log(caplog: pytest.LogCaptureFixture) -> None:
    """Two logs of one child would double each line and each sum over the lines."""
    child = Agent(ScriptedModel(["below"]), name="child")
    call = {"name": "helper", "arguments": {"prompt": "x"}}
    with caplog.at_level("INFO", "graphloop"):
        await Agent(
            ScriptedModel([{"calls": [call]}, "done"]),
            tools=[child.as_tool(name="helper", description="Helps.")],
        ).generate("go", run_id="r")

    assert 1 == sum("run r/c0.0 child: completed" in one for one in caplog.messages)
