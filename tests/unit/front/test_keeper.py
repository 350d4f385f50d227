"""Keeper: what runs share is open as long as one of them goes on, and closed after the last."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from graphloop import Agent, EndReason, Tool
from graphloop.codec import Codec
from graphloop.errors import ConfigError
from graphloop.front.keeper import Hold, Keeper
from graphloop.providers.script import Entry
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite import SqliteStore
from graphloop.testing import ScriptedModel
from tests.strategies import call, reply

DEADLINE_S = 10.0


def keeper(where: MemoryStore | Path | None) -> tuple[Keeper, list[str]]:
    """Return a keeper, and what it disconnects."""
    closed: list[str] = []

    async def disconnect(given: bool) -> None:
        closed.append("models" if given else "named")

    return Keeper(where, Codec(), disconnect), closed


def opened(one: Keeper) -> SqliteStore:
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


def test_what_nobody_uses_is_closed_at_once_and_opened_anew(tmp_path: Path) -> None:
    """An agent that was closed can be used again."""

    async def scenario() -> None:
        one, closed = keeper(tmp_path / "runs.db")
        store = opened(one)
        await one.aclose()
        assert store.closed
        assert ["models"] == closed
        assert store is not opened(one)
        await one.aclose()

    within(scenario())


def test_what_somebody_uses_is_closed_when_the_last_goes(tmp_path: Path) -> None:
    """And nothing is closed that nobody has asked to be closed."""

    async def scenario() -> None:
        one, closed = keeper(tmp_path / "runs.db")
        store = opened(one)
        await Hold(one).release()
        first, second = Hold(one), Hold(one, [Hold(one)])
        await one.aclose()
        await first.release()
        await first.release()
        assert not store.closed
        assert [] == closed
        await second.release()
        assert store.closed
        assert ["models"] == closed

    within(scenario())


@pytest.mark.parametrize("first", [True, False])
def test_whoever_wants_all_closed_has_it(first: bool) -> None:
    """Whoever else, before or after, wanted only what was opened by name."""

    async def scenario() -> None:
        one, closed = keeper(None)
        await one.aclose(given=False)
        assert ["named"] == closed
        held = Hold(one)
        await one.aclose(given=first)
        await one.aclose(given=not first)
        await held.release()
        assert ["named", "models"] == closed

    within(scenario())


def test_who_is_thrown_away_counts_no_longer(tmp_path: Path) -> None:
    """A stream that nobody looks at any more must not keep a file open for ever."""

    async def scenario() -> None:
        one, _ = keeper(tmp_path / "runs.db")
        store, held = opened(one), Hold(one)
        del held
        gc.collect()
        await one.aclose()
        assert store.closed

    within(scenario())


def test_a_store_that_was_given_open_is_not_closed_here() -> None:
    """It is its maker's; without one, there are no runs to be known by their id."""
    store = MemoryStore()

    assert store is keeper(store)[0].own()
    with pytest.raises(ConfigError, match="this agent has no `store`"):
        keeper(None)[0].own()


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


def test_closing_an_agent_harms_no_run_that_goes_on(tmp_path: Path) -> None:
    """It is closed when the run has ended."""

    async def scenario() -> None:
        loop, waits, closed = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def wait() -> None:
            loop.call_soon_threadsafe(waits.set)
            assert closed.wait(DEADLINE_S)

        one = agent(tmp_path / "runs.db", wait)
        running = asyncio.ensure_future(one.generate("go", run_id="a"))
        await waits.wait()
        await one.aclose()
        closed.set()
        result = await running
        assert EndReason.COMPLETED is result.end_reason
        assert isinstance(result.store, SqliteStore)
        assert result.store.closed

    within(scenario())


def test_a_run_s_store_that_was_closed_is_opened_again(tmp_path: Path) -> None:
    """One that was opened here; one that somebody else has made is theirs."""

    async def disconnect(given: bool) -> None:
        """Need nothing."""

    async def scenario() -> None:
        path = tmp_path / "runs.db"
        own = Keeper(path, Codec(), disconnect)
        first, theirs, memory = own.store(), SqliteStore(path), MemoryStore()
        assert own.again(first) is first
        await own.aclose()
        await theirs.aclose()
        assert isinstance(again := own.again(first), SqliteStore)
        assert not again.closed
        assert Keeper(theirs, Codec(), disconnect).again(theirs) is theirs
        assert own.again(memory) is memory
        await own.aclose()

    within(scenario())
