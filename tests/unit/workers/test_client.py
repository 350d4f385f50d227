"""A client needs no agent: it answers, commands and follows runs that other processes drive."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from graphloop import Agent, tool
from graphloop.agent import Runs
from graphloop.errors import ConfigError, UnknownRun
from graphloop.events import Queued, Started
from graphloop.policy import Approval, decline
from graphloop.stores import JsonlStore, MemoryStore, SqliteStore
from graphloop.stores.postgres import PostgresStore
from graphloop.testing import ScriptedModel
from graphloop.values import UserMessage
from graphloop.workers import Client, Worker

Shared = MemoryStore | SqliteStore | PostgresStore
Open = Callable[[], Shared]
PAYS = {"calls": [{"name": "pay", "arguments": {"amount": 5}}]}
PAYS_TWICE = {"calls": [{"name": "pay", "arguments": {"amount": each}} for each in (5, 6)]}
WAITS: dict[str, object] = {"calls": [{"name": "wait", "arguments": {}}]}


def replies(*texts: object) -> ScriptedModel:
    return ScriptedModel(list(texts), restart=True)


class Payer:
    """An agent that pays after an approval, and the amounts that it paid."""

    def __init__(self, *texts: object) -> None:
        self.paid = list[int]()

        @tool(needs_approval=True)
        def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return "paid"

        self.agent = Agent(replies(*texts), tools=[pay])


class Waiter:
    """An agent whose tool waits, and the events that tell of the tool."""

    def __init__(self, *texts: object) -> None:
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()

        @tool(effect="idempotent")
        async def wait() -> str:
            """Wait."""
            self.begun.set()
            await self.may_end.wait()
            return "waited"

        self.agent = Agent(replies(*texts), tools=[wait])


async def served(worker: Worker, told: Awaitable[object]) -> None:
    """Let a worker serve while a client does something, and stop it."""
    serving = asyncio.create_task(worker.serve())
    await told
    worker.stop()
    await serving


async def until(done: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what another task does; the test's time limit bounds it."""
    while not await done():  # noqa: ASYNC110 - another process may do it
        await asyncio.sleep(0.01)


async def test_an_answer_wakes_a_run_and_counts_once(shared: Open) -> None:
    """A web server repeats a request that failed; also after the run has gone on and ended."""
    store, payer = shared(), Payer(PAYS, "Done.")
    run_id = await payer.agent.runs(store).submit("Pay.")
    worker, client = Worker([payer.agent], store), Client(shared())
    assert await worker.drive(run_id) == "parked"

    assert await client.approve(run_id, "c0.0") == "accepted"
    assert await client.approve(run_id, "c0.0") == "duplicate"
    assert await client.decline(run_id, "c0.0", "Too much.") == "answered"

    assert await worker.drive(run_id) == "over"
    assert await client.approve(run_id, "c0.0") == "duplicate"
    assert await client.decline(run_id, "c0.0") == "answered"
    assert (payer.paid, (await client.result(run_id)).text) == ([5], "Done.")


async def test_an_answer_with_an_id_is_known_by_its_id(shared: Open) -> None:
    """The caller's id counts, not the words of the answer."""
    store, payer = shared(), Payer(PAYS, "Done.")
    run_id = await payer.agent.runs(store).submit("Pay.")
    assert await Worker([payer.agent], store).drive(run_id) == "parked"
    client = Client(shared())

    assert await client.approve(run_id, "c0.0", decline("No."), signal_id="s1") == "accepted"
    assert await client.approve(run_id, "c0.0", signal_id="s1") == "duplicate"
    assert await client.approve(run_id, "c0.0", Approval(False, "No.")) == "answered"


async def test_a_question_is_answered_while_a_driver_has_the_run(shared: Open) -> None:
    """The first of two answers wakes the run; the second person must not be told to wait."""
    store, payer = shared(), Payer(PAYS_TWICE, "Done.")
    run_id = await payer.agent.runs(store).submit("Pay.")
    worker, client = Worker([payer.agent], store), Client(shared())
    assert await worker.drive(run_id) == "parked"
    await store.claim(run_id)

    assert await client.approve(run_id, "c0.1") == "accepted"

    await store.release(run_id, None, ())
    await client.approve(run_id, "c0.0")
    assert await worker.drive(run_id) == "over"
    assert payer.paid == [5, 6]


async def test_a_run_that_a_worker_drives_is_cancelled(shared: Open) -> None:
    """Though its tool never ends, and the client is another process."""
    waiter, store = Waiter(WAITS, "Done."), shared()
    run_id = await waiter.agent.runs(store).submit("Go.")
    client = Client(shared(), poll_s=0.001)

    async def told() -> None:
        await waiter.begun.wait()
        assert await client.cancel(run_id, "no longer needed") == "accepted"
        assert (await client.result(run_id)).status == "cancelled"

    await served(Worker([waiter.agent], shared(), poll_s=0.001), told())

    run = await waiter.agent.runs(store).replay(run_id)
    assert run.ending is not None
    assert run.ending.stopped_by == ("no longer needed",)
    assert await client.cancel(run_id, "again") == "duplicate"


async def test_a_run_that_no_driver_has_is_cancelled_by_the_next(shared: Open) -> None:
    """Submitted or parked: its tool never runs."""
    store, payer = shared(), Payer(PAYS, "Done.")
    parked = await payer.agent.runs(store).submit("Pay.")
    worker, client = Worker([payer.agent], store), Client(shared(), poll_s=0.001)
    assert await worker.drive(parked) == "parked"
    submitted = await payer.agent.runs(store).submit("Pay.")

    for run_id in (parked, submitted):
        assert await client.cancel(run_id) == "accepted"
        assert run_id in await store.ready({"agent"}, 9)
        assert await worker.drive(run_id) == "over"
        assert (await client.result(run_id)).status == "cancelled"
    assert payer.paid == []


async def test_a_message_reaches_a_run_under_way_once(shared: Open) -> None:
    """However often the client sends it, and whoever reads it."""
    waiter, store = Waiter(WAITS, "Done.", "And more."), shared()
    other = Agent(replies("Done."), name="other")
    run_id = await waiter.agent.runs(store).submit("Go.")
    client = Client(shared(), poll_s=0.001)

    async def told() -> None:
        await waiter.begun.wait()
        assert await client.steer(run_id, "Hurry.", signal_id="s1") == "accepted"
        assert await client.steer(run_id, "Hurry.", signal_id="s1") == "duplicate"
        assert await client.follow_up(run_id, "And then?") == "accepted"
        for _ in range(2):  # A worker that has taken the second has heard what came before both.
            await client.result(await other.runs(store).submit("Go."))
        waiter.may_end.set()
        await client.result(run_id)

    await served(Worker([waiter.agent, other], shared(), poll_s=0.001), told())

    run = await waiter.agent.runs(store).replay(run_id)
    said = [each.content for each in run.messages if isinstance(each, UserMessage)]
    assert said == ["Go.", "Hurry.", "And then?"]
    assert (await client.result(run_id)).text == "And more."


async def test_a_message_to_a_parked_run_is_read_in_its_next_turn(shared: Open) -> None:
    """Its driver journals the message, and parks again: the question is still open."""
    store, payer = shared(), Payer(PAYS, "Done.")
    run_id = await payer.agent.runs(store).submit("Pay.")
    worker, client = Worker([payer.agent], store), Client(shared())
    assert await worker.drive(run_id) == "parked"

    await client.steer(run_id, "In euros.", signal_id="s1")
    assert [*await store.ready({"agent"}, 9)] == [run_id]
    assert await worker.drive(run_id) == "parked"
    assert not await store.ready({"agent"}, 9)
    await client.approve(run_id, "c0.0")
    assert await worker.drive(run_id) == "over"

    assert payer.paid == [5]
    assert [each.signal_id for each in await store.load(run_id) if isinstance(each, Queued)] == [
        "s1"
    ]


async def test_a_reader_that_was_cut_off_goes_on_by_its_offset(shared: Open) -> None:
    """No event is lost, and none comes twice; the stream of a run that is over ends."""
    store, payer = shared(), Payer(PAYS, "Done.")
    run_id = await payer.agent.runs(store).submit("Pay.")
    worker, client = Worker([payer.agent], store), Client(shared(), poll_s=0.001)
    assert await worker.drive(run_id) == "parked"

    first = [await anext(aiter(client.stream(run_id)))]
    await client.approve(run_id, "c0.0")
    assert await worker.drive(run_id) == "over"
    rest = [each async for each in client.stream(run_id, after=1)]

    assert [each.seq for each in (*first, *rest)] == [*range(1, len(rest) + 2)]
    assert [each.event for each in (*first, *rest)] == [*await store.load(run_id)]
    assert isinstance(first[0].event, Started)


async def test_runs_are_listed_by_status_and_agent(shared: Open) -> None:
    """An inbox of approvals is the list of parked runs."""
    store, payer = shared(), Payer(PAYS, "Done.")
    parked = await payer.agent.runs(store).submit("Pay.")
    assert await Worker([payer.agent], store).drive(parked) == "parked"
    other = await Agent(replies("Done."), name="other").runs(store).submit("Go.")
    client = Client(shared())

    async def listed(**asked: str) -> Sequence[str]:
        return [one.run_id async for one in client.runs(**asked)]  # type: ignore[arg-type]

    assert await listed() == [parked, other]
    assert await listed(status="parked") == [parked]
    assert await listed(agent="other") == [other]
    assert await listed(status="parked", agent="other") == []


async def test_what_can_have_no_effect_is_refused(shared: Open) -> None:
    """A command to a run that is over, to a part of a run, or without words."""
    store, agent = shared(), Agent(replies("Done."))
    run_id = await agent.runs(store).submit("Go.")
    client = Client(shared())

    with pytest.raises(UnknownRun, match="no run 'other'"):
        await client.cancel("other")
    with pytest.raises(ConfigError, match=f"found a part of run {run_id!r}"):
        await client.cancel(f"{run_id}/c0.0")
    with pytest.raises(ConfigError, match="`message`: expected text"):
        await client.steer(run_id, " ")
    with pytest.raises(ConfigError, match=r"`message`: .*half a surrogate pair at character 4"):
        await client.steer(run_id, "cut \ud83d")
    with pytest.raises(ConfigError, match=r"`signal_id`: .*half a surrogate pair"):
        await client.steer(run_id, "whole", signal_id="\ud83d")
    with pytest.raises(TimeoutError):
        await client.result(run_id, timeout_s=0)
    assert await Worker([agent], store).drive(run_id) == "over"
    with pytest.raises(ConfigError, match=r"it is over \(done\)"):
        await client.cancel(run_id)
    with pytest.raises(ConfigError, match=r"it is over \(done\)"):
        await client.follow_up(run_id, "And?")


async def test_a_client_closes_the_store_that_it_opened(tmp_path: Path) -> None:
    """And no other."""
    path, agent = tmp_path / "runs.db", Agent(replies("Done."))
    run_id = await agent.runs(path).submit("Go.")

    async with Client(str(path)) as client:
        assert [one.run_id async for one in client.runs()] == [run_id]
    with pytest.raises(ConfigError, match="JsonlStore"):
        Client(JsonlStore(tmp_path / "lines"))
    with pytest.raises(ConfigError, match="poll_s: expected a positive number"):
        Client(path, poll_s=0)


async def test_a_stream_of_stored_runs_closes_the_store_of_its_path(tmp_path: Path) -> None:
    """`Runs.resume_stream` opens it for the stream alone."""
    path, agent = tmp_path / "runs.db", Agent(replies("Done."))
    run_id = await agent.runs(path).submit("Go.")

    stream = agent.runs(path).resume_stream(run_id)

    assert (await stream.result()).text == "Done."
    (record,) = await Runs(path).list()
    assert record.status == "done"
