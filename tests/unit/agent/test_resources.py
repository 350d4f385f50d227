"""SharedResources: an agent opens its store once, and closes what it has opened."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from graphloop import Agent, EndReason, Tool
from graphloop.agent.resources import SharedResources
from graphloop.agent.world import AgentResources
from graphloop.errors import ConfigError
from graphloop.providers.base import ModelSession
from graphloop.providers.script import Entry
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite import SqliteStore
from graphloop.testing import ScriptedModel
from tests.strategies import call, reply

DEADLINE_S = 10.0


class Connected:
    """A model that notes when its connections close."""

    def __init__(self, closed: list[str], label: str) -> None:
        self.closed, self.label = closed, label

    def session(self) -> ModelSession:
        """Answer nothing."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Note it."""
        self.closed.append(self.label)


def resources(where: MemoryStore | Path | None) -> tuple[SharedResources, list[str]]:
    """Return the resources of an agent, and the models that they disconnect."""
    closed: list[str] = []
    models = {label: Connected(closed, label) for label in ("given", "named")}
    return SharedResources(where, models, {"named"}), closed


def opened(one: SharedResources) -> SqliteStore:
    """Return its store."""
    store = one.store()
    assert isinstance(store, SqliteStore)
    return store


def within(work: Awaitable[None]) -> None:
    """Run to the end, or fail if it does not come."""

    async def bounded() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await work

    asyncio.run(bounded())


def test_what_is_closed_is_opened_anew(tmp_path: Path) -> None:
    """An agent that was closed can be used again."""

    async def scenario() -> None:
        one, closed = resources(tmp_path / "runs.db")
        store = opened(one)
        assert store is opened(one)
        await one.aclose()
        assert store.closed
        assert ["given", "named"] == sorted(closed)
        assert store is not opened(one)
        assert not opened(one).closed
        assert one.reopened(store) is opened(one)
        await one.aclose(given=False)
        assert "named" == closed.pop()
        assert 2 == len(closed)

    within(scenario())


def test_a_store_that_was_given_open_is_not_closed_here() -> None:
    """It is its maker's; without one, there are no runs to be known by their id."""
    store = MemoryStore()

    async def scenario() -> None:
        assert store is resources(store)[0].stored()

    within(scenario())
    with pytest.raises(ConfigError, match="this agent has no `store`"):
        resources(None)[0].stored()


def test_a_store_that_a_closed_loop_has_left_goes_on_in_the_next(tmp_path: Path) -> None:
    """What is claimed there would keep the next loop from its own runs."""
    one, _ = resources(tmp_path / "runs.db")

    async def scenario() -> SqliteStore:
        return opened(one)

    async def last() -> SqliteStore:
        store = opened(one)
        await one.aclose()
        return store

    loop = asyncio.new_event_loop()
    first = loop.run_until_complete(scenario())
    loop.close()
    assert first is asyncio.run(last())
    assert first.closed


def agent(store: Path, waits: Callable[[], object]) -> Agent:
    """Return an agent whose only tool waits in a thread."""

    def execute(arguments: dict[str, object]) -> str:
        waits()
        return "done"

    tool = Tool(name="wait", parameters={"type": "object"}, execute=execute, thread=True)
    script: list[Entry] = [reply(call("wait", "w")), "answer", reply(call("wait", "w")), "answer"]
    return Agent(ScriptedModel(script), tools=[tool], store=str(store))


def test_a_synchronous_call_that_ends_leaves_the_others_their_store(tmp_path: Path) -> None:
    """An agent is asked from as many threads as one likes."""
    first_is_over, second_waits = threading.Event(), threading.Event()
    ended: list[EndReason] = []

    def wait() -> None:
        second_waits.set()
        assert first_is_over.wait(DEADLINE_S)

    one = agent(tmp_path / "runs.db", wait)
    other = threading.Thread(
        target=lambda: ended.append(one.generate_sync("go", run_id="b").end_reason)
    )
    other.start()
    assert second_waits.wait(DEADLINE_S)
    assert "answer" == one.generate_sync("go", run_id="a").text
    first_is_over.set()
    other.join(DEADLINE_S)

    assert [EndReason.COMPLETED] == ended


def test_an_agent_that_is_shared_on_many_levels_is_closed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two tools a level: sixteen levels would close the lowest model 65,536 times."""
    closed: list[str] = []

    async def note(model: ScriptedModel) -> None:
        closed.append(model.label)

    monkeypatch.setattr(ScriptedModel, "aclose", note)
    one = Agent(ScriptedModel(["done"], label="lowest"))
    for level in range(16):
        tools = [one.as_tool(name=name, description="helps") for name in ("one", "other")]
        model = ScriptedModel(["done"], label=str(level))
        one = Agent(model, tools=tools, max_agent_depth=16)

    assert "done" == one.generate_sync("go").text
    assert sorted(["lowest", *map(str, range(16))]) == sorted(closed)


def test_an_agent_is_closed_whatever_the_agents_it_asks_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And again, as often as one likes."""
    closed: list[str] = []

    async def note(model: ScriptedModel) -> None:
        if model.label == "kid":
            raise OSError("cannot close")
        closed.append(model.label)

    monkeypatch.setattr(ScriptedModel, "aclose", note)

    async def scenario() -> None:
        kid = Agent(ScriptedModel(["done"], label="kid"), name="kid", store=f"{tmp_path}/kid.db")
        tools = [kid.as_tool(description="helps")]
        one = Agent(ScriptedModel(["done"]), tools=tools, store=f"{tmp_path}/one.db")
        result = await one.generate("go")
        with pytest.raises(OSError, match="cannot close"):
            await one.aclose()
        assert isinstance(result.store, SqliteStore)
        assert result.store.closed

    within(scenario())

    assert ["script"] == closed


def test_an_agent_is_closed_at_the_end_of_its_block(tmp_path: Path) -> None:
    """`async with agent:` closes its store."""

    async def scenario() -> None:
        async with Agent(ScriptedModel(["done"]), store=f"{tmp_path}/runs.db") as one:
            result = await one.generate("go")
        assert isinstance(result.store, SqliteStore)
        assert result.store.closed

    within(scenario())


def test_a_run_that_closes_what_it_opened_leaves_shared_agents_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another run of the same loop may be asking them."""
    closed: list[str] = []

    async def note(model: ScriptedModel) -> None:
        closed.append(model.label)

    monkeypatch.setattr(ScriptedModel, "aclose", note)

    async def scenario() -> None:
        helper = Agent(ScriptedModel(["done"], label="helper"))
        one = Agent(ScriptedModel(["done"]), tools=[helper.as_tool(description="helps")])
        await one.generate("go")
        await one.aclose(shared=False)
        assert [] == closed
        await one.aclose()
        assert ["helper", "script"] == sorted(closed)

    within(scenario())


def test_closing_a_world_closes_every_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever turn it was added for."""
    closed: list[str] = []

    async def note(model: ScriptedModel) -> None:
        closed.append(model.label)

    monkeypatch.setattr(ScriptedModel, "aclose", note)
    world = AgentResources(ScriptedModel([]), {}, ())
    world.add_model(ScriptedModel([], label="other"))

    asyncio.run(SharedResources(None, world.models, world.named).aclose(given=False))
    assert [] == closed
    asyncio.run(SharedResources(None, world.models, world.named).aclose(given=True))
    assert ["other", "script"] == closed


def test_a_model_that_cannot_be_closed_keeps_none_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it failed with is raised once the others are closed."""
    closed: list[str] = []

    async def close(model: ScriptedModel) -> None:
        closed.append(model.label)
        raise OSError(f"cannot close {model.label}")

    monkeypatch.setattr(ScriptedModel, "aclose", close)
    world = AgentResources(ScriptedModel([]), {}, ())
    world.add_model(ScriptedModel(["other"], label="other"))

    with pytest.raises(OSError, match="cannot close script"):
        asyncio.run(SharedResources(None, world.models, world.named).aclose(given=True))
    assert ["other", "script"] == closed


def test_all_is_closed_whatever_fails_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure of one agent's model leaves no connection of another agent open."""
    closed: list[str] = []

    async def close(model: ScriptedModel) -> None:
        closed.append(model.label)
        raise OSError(f"cannot close {model.label}")

    async def scenario() -> None:
        helper = Agent(ScriptedModel(["done"], label="helper"), store=str(tmp_path / "b.db"))
        tools = [helper.as_tool(description="helps")]
        agent = Agent(ScriptedModel(["done"]), tools=tools, store=str(tmp_path / "a.db"))
        await agent.generate("go")
        monkeypatch.setattr(ScriptedModel, "aclose", close)
        with pytest.raises(OSError, match="cannot close"):
            await agent.aclose()
        assert ["helper", "script"] == sorted(closed)

    within(scenario())


def test_a_result_is_not_lost_where_something_cannot_be_closed() -> None:
    """The run has ended, and is paid for; what went wrong then is a warning of it."""

    async def refuse() -> None:
        raise OSError("cannot close")

    async def scenario() -> None:
        stream = Agent(ScriptedModel(["answer"])).stream("go")
        stream.on_over = refuse
        result = await stream.result()
        assert "answer" == result.text
        assert "OSError: cannot close" in result.warnings[-1]

    within(scenario())


def test_a_run_outside_of_asyncio_is_told_what_is_expected() -> None:
    """Under trio a coroutine is stepped by another loop."""
    asked = Agent(ScriptedModel(["done"])).generate("go")

    with pytest.raises(ConfigError, match=r"expected a running event loop of asyncio.*trio"):
        asked.send(None)

    gc.collect()
