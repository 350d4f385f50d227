"""A child run that is taken up without those above it is held to their gates, as its journal says.

Who forks one, or resumes it by its id, need not know what stands above: the functions of those
gates are not there, so what they could have allowed is asked about or denied.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphloop import Agent, RunResult, allow, ask, deny, tool
from graphloop.providers.script import Entry
from graphloop.testing import ScriptedModel

RAN: list[int] = []


@tool
async def pay(amount: int) -> str:
    """Pay."""
    RAN.append(amount)
    return "paid"


@tool
async def look() -> str:
    """Look."""
    return "seen"


def much(arguments: Mapping[str, Any], context: object) -> bool:
    """Whether much is paid."""
    return bool(arguments["amount"] > 100)


def never(arguments: Mapping[str, Any], context: object) -> bool:
    """Nothing is wrong with looking."""
    return False


def called(name: str, **arguments: object) -> Entry:
    """Return a reply that calls a tool."""
    return {"calls": [{"name": name, "arguments": arguments}]}


def scripted(label: str, *replies: Entry) -> ScriptedModel:
    """Return a model that begins anew in every run."""
    return ScriptedModel([*replies, "done"], label=f"script:{label}", restart=True)


def payer(store: Path) -> Agent:
    """Return an agent that looks, and then pays much."""
    model = scripted("payer", called("look"), called("pay", amount=50))
    return Agent(model, name="payer", tools=[look, pay], store=str(store))


def middle(store: Path) -> Agent:
    """Return an agent that looks, and then has the other pay."""
    model = scripted("middle", called("look"), called("payer", prompt="pay"))
    inner = payer(store).as_tool(description="pays")
    return Agent(model, name="middle", tools=[look, inner], store=str(store))


async def forked(child: Agent, store: Path) -> RunResult:
    """Return what becomes of a copy of a child run, taken up by the child's own agent alone."""
    gate = ask("pay", when=much)
    model = scripted("top", called(child.name, prompt="pay"))
    top = Agent(
        model,
        name="top",
        tools=[child.as_tool(description="pays")],
        gate=gate | deny("look", when=never) | allow("*"),
        store=str(store),
        max_agent_depth=3,
    )
    await top.generate("go", run_id="r")
    RAN.clear()
    copy = await child.runs.fork("r/c0.0", at=6)
    return await child.resume(copy)


def test_a_copy_of_a_child_asks_what_the_outer_gates_ask(tmp_path: Path) -> None:
    """Their functions are not known there, so nobody can say that little is paid."""
    store = tmp_path / "runs.db"
    result = asyncio.run(forked(payer(store), store))

    assert [] == RAN
    assert result.pending


def test_what_is_below_the_copy_is_held_to_them_too(tmp_path: Path) -> None:
    """The gates above a run are those above all that it starts."""
    store = tmp_path / "runs.db"
    result = asyncio.run(forked(middle(store), store))

    assert [] == RAN
    assert result.pending
