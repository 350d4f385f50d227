"""What a Gate of a graph has let pass holds of all that it starts, as the gate of an agent does.

They did not: an agent that was called as a tool ran what the graph that called it denies, and of a
gate with conditions only those were handed down, so everything else was denied below.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from graphloop import Agent, Graph, RunResult, tool
from graphloop.loop import Standard, standard_edges
from graphloop.nodes import Gate
from graphloop.policy.policy import allow, deny
from graphloop.providers.script import Entry
from graphloop.testing import ScriptedModel
from tests.topology_files import desk

RAN: list[tuple[str, int]] = []


@tool
async def pay(amount: int) -> str:
    """Pay."""
    RAN.append(("pay", amount))
    return "paid"


@tool
async def look(amount: int) -> str:
    """Look."""
    RAN.append(("look", amount))
    return "seen"


def much(arguments: Mapping[str, Any], context: object) -> bool:
    """Whether much is paid."""
    return bool(arguments["amount"] > 10)


def called(*calls: tuple[str, dict[str, object]]) -> Entry:
    """Return a reply that calls tools."""
    return {"calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}


def worker(*, takes_over: bool = False) -> Any:
    """Return an agent as a tool that looks, and pays twice."""
    calls = called(("look", {"amount": 1}), ("pay", {"amount": 5}), ("pay", {"amount": 50}))
    agent = Agent(ScriptedModel([calls, "done"]), name="worker", tools=[look, pay])
    return agent.as_tool(description="works", takes_over=takes_over)


def run(rules: str, *, takes_over: bool = False) -> RunResult:
    """Return the result of a file whose model calls the worker."""
    prompt: dict[str, object] = {} if takes_over else {"prompt": "work"}
    model = ScriptedModel([called(("worker", prompt)), "over"])
    RAN.clear()
    graph = desk(rules, worker(takes_over=takes_over), when=much)
    return asyncio.run(graph.run(None, model=model, prompt="go"))


@pytest.mark.parametrize("takes_over", [False, True])
@pytest.mark.parametrize(
    ("rules", "ran"),
    [
        ("[{allow: '*'}]", [("look", 1), ("pay", 5), ("pay", 50)]),
        ("[{deny: pay}, {allow: '*'}]", [("look", 1)]),
        ("[{deny: pay, when: much}, {allow: '*'}]", [("look", 1), ("pay", 5)]),
        ("[{allow: worker}]", []),
        (
            "[{allow: [worker, pay], when: much}, {allow: [worker, look]}]",
            [("look", 1), ("pay", 50)],
        ),
    ],
)
def test_the_rules_of_a_files_gate_hold_of_what_its_calls_start(
    rules: str, ran: list[tuple[str, int]], takes_over: bool
) -> None:
    """With their conditions, and with nothing beside them."""
    run(rules, takes_over=takes_over)

    assert ran == RAN


def test_who_is_asked_above_is_asked_below() -> None:
    """The run waits for a person."""
    result = run("[{ask: pay, when: much}, {allow: '*'}]")

    assert [] == RAN
    assert ["pay"] == [one.name for one in result.pending]


def test_the_rules_of_a_gate_node_in_python_hold_too() -> None:
    """Whoever wrote the table."""
    nodes = Standard(gate=Gate(rules=(deny("pay") | allow("*")).rules))
    graph: Graph[None] = Graph("desk", nodes.prepare, standard_edges(nodes))
    model = ScriptedModel([called(("worker", {"prompt": "work"})), "over"])
    RAN.clear()

    asyncio.run(graph.run(None, model=model, prompt="go", tools=[worker()]))

    assert [("look", 1)] == RAN
