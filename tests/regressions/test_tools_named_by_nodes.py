"""Tools that nodes name: a stop that waits for none, or a choice of none, would do nothing."""

from __future__ import annotations

import asyncio

import pytest

from graphloop import END, Graph
from graphloop.errors import ConfigError
from graphloop.limits.stop import any_of, has_tool_call, not_, step_count_is
from graphloop.nodes import Append, Execute, ModelCall, PrepareStep, StopCheck
from graphloop.outcomes import AnsweredCalls, Calls, Go, Ready
from graphloop.testing import ScriptedModel
from graphloop.values import ToolChoice


def refund(amount: int) -> str:
    """Pay back."""
    return f"{amount} paid back"


def looping(begin: PrepareStep, check: StopCheck) -> Graph[None]:
    """Return a loop without a gate that begins and ends its turns so."""
    ask, execute, append = ModelCall(), Execute(), Append()
    return Graph(
        "loop",
        begin,
        {
            begin: {Ready: ask, ...: END},
            ask: {Calls: execute, ...: append},
            execute: {...: append},
            append: {AnsweredCalls: check, ...: END},
            check: {Go: begin, ...: END},
        },
    )


@pytest.mark.parametrize(
    ("begin", "check", "said"),
    [
        (
            PrepareStep(active_tools=("refnud",)),
            StopCheck(),
            r"node 'prepare_step' of graph 'loop': `active_tools` names 'refnud', .* \(refund\)",
        ),
        (
            PrepareStep(tool_choice=ToolChoice("tool", "refnud")),
            StopCheck(),
            r"node 'prepare_step' of graph 'loop': `tool_choice` names 'refnud'",
        ),
        (
            PrepareStep(tool_choice=ToolChoice("auto", "refund")),
            StopCheck(),
            r"`tool_choice` names 'refund', which has no effect in mode 'auto'",
        ),
        (
            PrepareStep(),
            StopCheck(conditions=(not_(any_of(step_count_is(2), has_tool_call("refnud"))),)),
            r"node 'stop_check' of graph 'loop': `stop.has_tool_call` names 'refnud'",
        ),
    ],
)
def test_nodes_name_tools_of_the_run(begin: PrepareStep, check: StopCheck, said: str) -> None:
    """A stop that never comes costs money, and what is not there is not on offer."""
    model = ScriptedModel(["hi", "hi"])

    with pytest.raises(ConfigError, match=said) as refused:
        asyncio.run(looping(begin, check).run(None, model=model, prompt="x", tools=[refund]))
    assert "Did you mean 'refund'?" in str(refused.value) or "auto" in said
    # Where nothing can be called, there is nothing to wait for, or to choose from.
    assert "hi" == asyncio.run(looping(begin, check).run(None, model=model, prompt="x")).text


def test_tools_that_are_not_there_are_told_at_once() -> None:
    """Of all nodes."""
    begin = PrepareStep(active_tools=("refnud",))
    graph = looping(begin, StopCheck(conditions=(has_tool_call("x"),)))

    with pytest.raises(ConfigError, match=r"'prepare_step'.*; node 'stop_check' of graph 'loop'"):
        graph.run_bound(model=ScriptedModel([]), tools=[refund])
    named = looping(
        PrepareStep(active_tools=("refund",), tool_choice=ToolChoice("tool", "refund")),
        StopCheck(conditions=(has_tool_call("refund"),)),
    )
    assert named.run_bound(model=ScriptedModel([]), tools=[refund])
