"""Targets whose runs park: an agent that pays, and an agent whose sub-agent pays."""

from __future__ import annotations

import asyncio
import re

from graphloop.cli.errors import Status
from graphloop.stores.base import Ask, Refusal, ReleaseStatus
from graphloop.stores.opening import open_store
from graphloop.stores.sqlite.store import SqliteStore
from tests.unit.cli.command_line import shown, write

GATED = """
from graphloop import Agent, tool

@tool(needs_approval=True)
async def pay(amount: int) -> str:
    "Pay."
    with open("paid", "a") as paid:
        paid.write(f"{amount}\\n")
    return f"{amount} paid"

def build(model):
    return Agent(model, tools=[pay])

PROMPT = "Pay 5."
"""
GATED_SCRIPT = "- calls: [{name: pay, arguments: {amount: 5}}]\n- text: Done.\n"
TWO_CALLS = (
    "- calls: [{name: pay, arguments: {amount: 5}}, {name: pay, arguments: {amount: 7}}]\n"
    "- text: Done.\n"
)
ASKING = '''
import json
from graphloop import Agent, ToolContext, tool
from graphloop.tools import ToolAsks

FORM = """{"type": "object", "required": ["size"], "properties": {
    "size": {"type": "integer", "description": "of the EU", "minimum": 30},
    "colour": {"enum": ["red", "blue"], "type": "string", "default": "red"}, "gift": true}}"""

@tool
async def order(what: str, context: ToolContext) -> str:
    "Order."
    if context.answer is None:
        raise ToolAsks(f"shop asks: Which size of {what}?", FORM, "")
    return f"{context.answer.approved} {context.answer.content} {context.answer.reason}"

def build(model):
    return Agent(model, tools=[order])

PROMPT = "Order shoes."
'''
ASKING_SCRIPT = "- calls: [{name: order, arguments: {what: shoes}}]\n- text: Done.\n"
TEAM = """
from graphloop import Agent, tool
from graphloop.testing import ScriptedModel

@tool(needs_approval=True)
async def pay(amount: int) -> str:
    "Pay."
    return f"{amount} paid"

def talk(last, name, **arguments):
    call = {"calls": [{"name": name, "arguments": arguments}]}
    reply = lambda request: last if request.messages[-1].role == "tool" else call
    return ScriptedModel([reply, reply], label=name)

payer = Agent(talk("It is paid.", "pay", amount=5), tools=[pay], name="payer")
agent = Agent(
    talk("Done.", "payer", prompt="Pay 5"), tools=[payer.as_tool(description="Pays.")], name="desk"
)
PROMPT = "See that 5 are paid."
"""


def make_desks() -> None:
    """Write the targets `pay`, `order` and `team` into the current directory."""
    write({"pay/agent.py": GATED, "pay/script.yaml": GATED_SCRIPT, "team/agent.py": TEAM})
    write({"order/agent.py": ASKING, "order/script.yaml": ASKING_SCRIPT})


def left(
    run_id: str,
    *asks: Ask,
    status: ReleaseStatus = "parked",
    refusal: Refusal | None = None,
) -> str:
    """Leave a run with questions, as a driver does, and return its id."""

    async def leave() -> None:
        store = SqliteStore("runs.db")
        await store.claim(run_id)
        await store.release(run_id, status, asks, refusal=refusal)
        await store.aclose()

    asyncio.run(leave())
    return run_id


def parked(target: str = "pay", store: str = "runs.db") -> str:
    """Run a target of the current directory until it parks; return the run's id."""
    before = set(run_ids(store))
    shown("run", target, "--store", store, status=Status.PARKED)
    (run_id,) = {known for known in run_ids(store) if "/" not in known} - before
    return run_id


def run_ids(store: str) -> tuple[str, ...]:
    """Return the ids of all runs in a store."""

    async def ids() -> tuple[str, ...]:
        opened = open_store(store)
        try:
            return tuple(await opened.runs())
        finally:
            if isinstance(opened, SqliteStore):
                await opened.aclose()

    return tuple(asyncio.run(ids()))


def timeless(text: str) -> str:
    """Return printed text with `TIME` for every time, and without padding."""
    lines = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", "TIME", text).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)
