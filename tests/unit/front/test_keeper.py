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
from graphloop.front.keeper import Hold, Keeper, close_all
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
        await Hold([one]).release()
        first, second = Hold([one]), Hold([one])
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
        held = Hold([one])
        await one.aclose(given=first)
        await one.aclose(given=not first)
        await held.release()
        assert ["named", "models"] == closed

    within(scenario())


def test_who_is_thrown_away_counts_no_longer(tmp_path: Path) -> None:
    """A stream that nobody looks at any more must not keep a file open for ever."""

    async def scenario() -> None:
        one, _ = keeper(tmp_path / "runs.db")
        store, held = opened(one), Hold([one])
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
    assert ["lowest", *map(str, range(16))] == closed


def stuck(where: Path, *, fails: bool) -> tuple[Keeper, asyncio.Event]:
    """Return a keeper that disconnects with an error, or not at all, and whether it has begun."""
    begun = asyncio.Event()

    async def disconnect(given: bool) -> None:
        begun.set()
        if fails:
            raise OSError("cannot close")
        await asyncio.Event().wait()

    return Keeper(where, Codec(), disconnect), begun


@pytest.mark.parametrize("held", [False, True])
def test_all_is_closed_whatever_fails_to(tmp_path: Path, held: bool) -> None:
    """What comes after one whose connection cannot be closed would be open for good."""

    async def scenario() -> None:
        bad, _ = stuck(tmp_path / "bad.db", fails=True)
        good, closed = keeper(tmp_path / "good.db")
        worse, _ = stuck(tmp_path / "worse.db", fails=True)
        stores = [opened(one) for one in (bad, good, worse)]
        closing = close_all([bad, good, worse], given=True)
        if held:
            user = Hold([bad, good, worse])
            await closing
            assert not any(one.closed for one in stores)
            closing = user.release()
        with pytest.raises(OSError, match="cannot close"):
            await closing
        assert all(one.closed for one in stores)
        assert ["models"] == closed

    within(scenario())


def test_who_is_cancelled_leaves_no_store_open(tmp_path: Path) -> None:
    """They want to be gone: files are closed at once, connections by whoever closes again."""

    async def scenario() -> None:
        first, begun = stuck(tmp_path / "first.db", fails=False)
        bad, never = stuck(tmp_path / "bad.db", fails=True)
        last, closed = keeper(tmp_path / "last.db")
        stores = [opened(one) for one in (first, bad, last)]
        closing = asyncio.ensure_future(close_all([first, bad, last], given=True))
        await begun.wait()
        closing.cancel()
        await asyncio.wait([closing])
        assert closing.cancelled()
        assert all(one.closed for one in stores)
        assert not never.is_set()
        assert [] == closed
        await Hold([last]).release()
        assert ["models"] == closed

    within(scenario())


def test_a_cancellation_is_heard_though_something_failed_before(tmp_path: Path) -> None:
    """A time limit of the caller's goes by it."""

    async def scenario() -> None:
        bad, _ = stuck(tmp_path / "bad.db", fails=True)
        slow, begun = stuck(tmp_path / "slow.db", fails=False)
        closing = asyncio.ensure_future(close_all([bad, slow], given=True))
        await begun.wait()
        closing.cancel()
        await asyncio.wait([closing])
        assert closing.cancelled()

    within(scenario())


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


def test_a_result_is_not_lost_where_something_cannot_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run has ended, and is paid for; what went wrong then is a warning of it."""

    async def refuse(model: ScriptedModel) -> None:
        raise OSError("cannot close")

    monkeypatch.setattr(ScriptedModel, "aclose", refuse)

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
        assert "answer" == result.text
        assert "OSError: cannot close" in result.warnings[-1]

    within(scenario())


def test_a_run_outside_of_asyncio_is_told_what_is_expected() -> None:
    """Under trio a coroutine is stepped by another loop."""
    asked = Agent(ScriptedModel(["done"])).generate("go")

    with pytest.raises(ConfigError, match=r"expected a running event loop of asyncio.*trio"):
        asked.send(None)

    gc.collect()
