"""Begun: the open call of an agent, in a conversation that is handed in, does not begin again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from graphloop import Agent, Approval, EndReason, Policy, Tool, allow, approve, decline
from graphloop.drivers.pending import Pending
from graphloop.errors import ConfigError
from graphloop.front.inputs import MessageInput
from graphloop.providers.script import Entry
from graphloop.stores.base import Store
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import ToolResult, UserMessage
from tests.strategies import call, reply

OUTER = reply(call("kid", "k", '{"prompt": "go"}'), call("note", "n"))
WAITS: tuple[Entry, ...] = (reply(call("note", "first")), reply(call("pay", "p")), "kid done")
HUSH = "hush"


@dataclass
class House:
    """An agent with an agent below it, which notes something and then asks whether to pay."""

    store: Store | None = None
    secret: str | None = None
    gated: bool = False
    gate: Policy | None = None
    below: Sequence[Entry] = WAITS
    ran: list[str] = field(default_factory=list[str])

    def tool(self, name: str, *, asks: bool = False) -> Tool:
        """Return a tool that tells that it has run."""

        async def execute(arguments: dict[str, object]) -> str:
            self.ran.append(name)
            return f"{name} done"

        parameters = {"type": "object"}
        return Tool(name=name, parameters=parameters, execute=execute, needs_approval=asks)

    def agent(self, *script: Entry) -> Agent:
        """Return the agent above."""
        note = self.tool("note")
        kid = Agent(ScriptedModel(self.below), tools=[note, self.tool("pay", asks=True)])
        below = kid.as_tool(name="kid", description="Works.", needs_approval=self.gated)
        model, secret = ScriptedModel(script), self.secret
        if self.gate is not None:
            return Agent(model, tools=[below, note], store=self.store, gate=self.gate)
        return Agent(model, tools=[below, note], store=self.store, approval_secret=secret)


async def parked(one: Agent) -> tuple[Pending, list[MessageInput]]:
    """Return what a run waits for, and its conversation."""
    result = await one.generate("go", run_id="r")
    assert EndReason.PARKED is result.end_reason
    (pending,) = result.pending
    return pending, [UserMessage("go"), *result.messages]


def answers(pending: Pending) -> list[dict[str, bool | Approval]]:
    """Return what a caller may take for the answer to a call below."""
    bare: list[bool | Approval] = [True, approve(), decline("no"), False]
    return [{}, *[{"k": one} for one in bare], {"c-1.0": True}, {"k": pending.approve()}]


def test_a_call_that_has_begun_is_refused_and_its_run_is_named() -> None:
    """Begun again, it would run all again that its child has run."""
    store = MemoryStore()
    house = House(store)

    async def scenario() -> str:
        one = house.agent(OUTER, "done")
        pending, history = await parked(one)
        known = await store.runs()
        for given in answers(pending)[:-1]:
            with pytest.raises(ConfigError, match=r"has begun, as a child of run 'r'.*resume\('r'"):
                await one.generate(messages=history, approvals=given)
        assert (known, ["note", "note"]) == (await store.runs(), house.ran)
        return (await one.resume("r", approvals={pending.key: pending.approve()})).text

    assert "done" == asyncio.run(scenario())
    assert ["note", "note", "pay"] == house.ran


@pytest.mark.parametrize("secret", [None, HUSH])
def test_without_the_run_in_the_store_a_call_that_may_have_begun_is_refused(
    secret: str | None,
) -> None:
    """Its conversation does not tell; the result still does, and goes on."""
    house = House(secret=secret)

    async def scenario() -> str:
        one = house.agent(OUTER, "done")
        result = await one.generate("go")
        (pending,) = result.pending
        history: list[MessageInput] = [UserMessage("go"), *result.messages]
        for given in answers(pending)[:-1]:
            with pytest.raises(ConfigError, match=r"'kid' may have begun.*resume\(result"):
                await one.generate(messages=history, approvals=given)
        assert ["note", "note"] == house.ran
        return (await one.resume(result, approvals={pending.key: pending.approve()})).text

    assert "done" == asyncio.run(scenario())
    assert ["note", "note", "pay"] == house.ran


@pytest.mark.parametrize("secret", [None, HUSH])
def test_the_answer_to_a_call_below_answers_no_call_above(secret: str | None) -> None:
    """Even if the provider gave both calls one id: the token tells, and so does the key."""
    same = (reply(call("note", "n")), reply(call("pay", "k")), "kid done")
    house = House(MemoryStore(), secret=secret, below=same)

    async def scenario() -> None:
        one = house.agent(OUTER, "done")
        pending, history = await parked(one)
        assert ("k", "c0.0/c1.0") == (pending.call_id, pending.key)
        token = pending.approve()
        with pytest.raises(ConfigError, match=r"'k'.* has a token that is of another call"):
            await one.generate(messages=history, approvals={pending.call_id: token})
        with pytest.raises(ConfigError, match="A call in a child run is in no conversation"):
            await one.generate(messages=history, approvals={pending.key: token})
        with pytest.raises(ConfigError, match="has begun, as a child of run 'r'"):
            await one.generate(messages=history, approvals={pending.call_id: True})

    asyncio.run(scenario())

    assert ["note", "note"] == house.ran


@pytest.mark.parametrize("stored", [True, False])
def test_a_call_that_its_run_asks_about_begins_by_the_token_of_that(stored: bool) -> None:
    """It says that the run waits for this very call, which has not begun, then."""
    house = House(MemoryStore() if stored else None, gated=True, below=["kid done"])

    async def scenario() -> str:
        one = house.agent(OUTER, "done")
        pending, history = await parked(one)
        given = {"k": pending.approve()}
        result = await one.generate(messages=history, approvals=given)
        told = [one.text for one in result.messages if isinstance(one, ToolResult)]
        assert ["kid done", "note done"] == told
        return result.text

    assert "done" == asyncio.run(scenario())


def test_a_bare_yes_does_not_say_that_a_call_has_not_begun() -> None:
    """Whoever gives it may have seen the question of the child, or none."""
    house = House(gated=True)

    async def scenario() -> None:
        one = house.agent(OUTER, "done")
        _, history = await parked(one)
        with pytest.raises(ConfigError, match=r"`pending.approve\(\)` says so"):
            await one.generate(messages=history, approvals={"k": True})

    asyncio.run(scenario())

    assert [] == house.ran


def test_a_token_that_is_forged_does_not_say_that_a_call_has_not_begun() -> None:
    """It names any run, so that none of that name has begun the call proves nothing."""
    house = House(MemoryStore(), secret=HUSH, gated=True)

    async def scenario() -> None:
        one = house.agent(OUTER, "done")
        pending, history = await parked(one)
        forged = Approval(approved=True, token=pending.token[:-2] + "AA")
        with pytest.raises(ConfigError, match="'kid' may have begun"):
            await one.generate(messages=history, approvals={"k": forged})

    asyncio.run(scenario())

    assert [] == house.ran


def test_a_token_of_a_call_that_has_begun_since_begins_it_no_more() -> None:
    """Its run went on in the store, and waits in the child now."""
    house = House(MemoryStore(), gated=True)

    async def scenario() -> str:
        one = house.agent(OUTER, "done")
        pending, history = await parked(one)
        below = await one.resume("r", approvals={pending.key: pending.approve()})
        with pytest.raises(ConfigError, match="has begun, as a child of run 'r'"):
            await one.generate(messages=history, approvals={"k": pending.approve()})
        given = {below.pending[0].key: below.pending[0].approve()}
        return (await one.resume("r", approvals=given)).text

    assert "done" == asyncio.run(scenario())
    assert ["note", "note", "pay"] == house.ran


def test_a_call_that_is_always_asked_about_may_be_denied() -> None:
    """Nothing begins of it, so nothing begins again."""
    house = House(gated=True)

    async def scenario() -> str:
        one = house.agent(OUTER, "done")
        _, history = await parked(one)
        result = await one.generate(messages=history, approvals={"k": decline("not now")})
        assert any("not now" in one.text for one in result.messages if isinstance(one, ToolResult))
        return result.text

    assert "done" == asyncio.run(scenario())


def test_a_denial_that_a_gate_would_not_ask_for_is_refused() -> None:
    """The gate lets the agent be called, whatever its tool says: the call would begin again."""
    house = House(gated=True, gate=allow("kid", "note"))

    async def scenario() -> None:
        history: list[MessageInput] = [UserMessage("go"), OUTER.message]
        with pytest.raises(ConfigError, match="may have begun"):
            await house.agent("done").generate(messages=history, approvals={"k": False})

    asyncio.run(scenario())

    assert [] == house.ran


def test_a_conversation_without_calls_of_agents_is_taken_up() -> None:
    """Tools of the caller's have effect policies; who hands a conversation in answers for them."""
    house = House(MemoryStore())

    async def scenario() -> str:
        history: list[MessageInput] = [UserMessage("go"), reply(call("note", "n")).message]
        return (await house.agent("done").generate(messages=history, approvals={})).text

    assert "done" == asyncio.run(scenario())
    assert ["note"] == house.ran


def test_another_conversation_in_the_store_is_not_taken_for_this_one() -> None:
    """Its run is somebody else's, and must not be named as the one to go on with."""
    house = House(MemoryStore())

    async def scenario() -> None:
        one = house.agent(OUTER, "done")
        _, history = await parked(one)
        with pytest.raises(ConfigError, match="may have begun"):
            await one.generate(messages=[UserMessage("stop"), *history[1:]], approvals={})

    asyncio.run(scenario())

    assert ["note", "note"] == house.ran
