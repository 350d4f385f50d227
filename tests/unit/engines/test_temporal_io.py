"""The engine of Temporal: its workflow, what it refuses, and what people do on Temporal's side."""

from __future__ import annotations

import ast
import asyncio
import socket
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client as TemporalClient
from temporalio.client import WorkflowExecutionStatus, WorkflowHistory
from temporalio.worker import Replayer

from graphloop import Agent, ToolContext, engines, tool
from graphloop.engines import TemporalIo, temporal_io, temporal_workflow
from graphloop.engines.temporal_workflow import WAKE, WORKFLOW, RunWorkflow, wake_workflow
from graphloop.errors import ConfigError
from graphloop.stores import MemoryStore, QueueLimits, SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.workers import Client, Worker
from tests.temporal_server import namespace
from tests.unit.engines.test_engines import Desk, serving

HISTORY = Path(__file__).with_name("temporal_history.json")
NOWHERE = "127.0.0.1:1"
WAKES = 5


def agent() -> Agent:
    return Agent(ScriptedModel(["Done."], restart=True))


class Scene:
    """A store, and a namespace of Temporal for it."""

    def __init__(self, directory: Path, server: str) -> None:
        self.store = SqliteStore(directory / "runs.db", durability="process")
        self.namespace = namespace(server)
        self.engine = partial(TemporalIo, address=server, namespace=self.namespace)
        self.server = server

    async def temporal(self) -> TemporalClient:
        return await TemporalClient.connect(self.server, namespace=self.namespace)

    def worker(self, one: Agent) -> Worker:
        return Worker([one], self.store, engine=self.engine, poll_s=0.01)

    async def until(self, status: str) -> None:
        """Wait until each run has a status."""
        while {one.status for one in await self.store.overview()} != {status}:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.fixture
def scene(tmp_path: Path, temporal: str) -> Scene:
    return Scene(tmp_path, temporal)


async def test_two_texts_cross(scene: Scene) -> None:
    """What a run says and does stays in its journal: Temporal's server may be somebody else's."""
    await agent().runs(scene.store).submit("A secret.", run_id="r")
    async with serving(scene.worker(agent())):
        await scene.until("done")
        client = await scene.temporal()
        assert await client.get_workflow_handle("r").result() == "over"

    history = await client.get_workflow_handle("r").fetch_history()
    said = [payload.data for event in history.events for payload in payloads(event)]
    assert {*said} == {b'"r"', b'"over"'}
    await scene.store.aclose()


def payloads(event: HistoryEvent) -> Sequence[Payload]:
    """Return what a workflow and its activities were given, and gave back."""
    return (
        *event.workflow_execution_started_event_attributes.input.payloads,
        *event.workflow_execution_signaled_event_attributes.input.payloads,
        *event.activity_task_scheduled_event_attributes.input.payloads,
        *event.activity_task_completed_event_attributes.result.payloads,
        *event.workflow_execution_completed_event_attributes.result.payloads,
    )


async def test_a_history_of_an_earlier_release_is_replayed() -> None:
    """A run may wait for a person for weeks; its workflow goes on with the code of today."""
    history = WorkflowHistory.from_json("r", HISTORY.read_text("utf-8"))

    replayed = await Replayer(workflows=[RunWorkflow]).replay_workflow(history)

    assert replayed.replay_failure is None


def test_the_workflow_imports_nothing_but_temporal() -> None:
    """Temporal's sandbox imports it anew for each workflow, and refuses what is not harmless."""
    tree = ast.parse(Path(temporal_workflow.__file__).read_text("utf-8"))
    found = {
        node.module.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module is not None
    }

    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    assert found - sys.stdlib_module_names == {"temporalio"}


async def test_the_limit_of_a_queue_holds(scene: Scene) -> None:
    """Temporal knows no queues of the store: the claim refuses what is too much, and it waits."""
    under_way, peak = list[str](), list[int]()

    @tool
    async def work(context: ToolContext) -> str:
        """Work."""
        under_way.append(context.run_id)
        peak.append(len(under_way))
        await asyncio.sleep(0.05)
        under_way.remove(context.run_id)
        return "done"

    call = {"calls": [{"name": "work"}]}
    worker = Agent(ScriptedModel([call, "Done."], restart=True), tools=[work])
    await scene.store.set_queues({"bulk": QueueLimits(running=1)})
    for at in range(3):
        await worker.runs(scene.store).submit("Work.", run_id=f"r{at}", queue="bulk")
    async with serving(scene.worker(worker)):
        await scene.until("done")

    assert peak == [1, 1, 1]
    await scene.store.aclose()


async def test_a_long_history_is_begun_anew(scene: Scene) -> None:
    """Each wake adds to it, and Temporal ends a workflow whose history is too long."""
    desk, client = Desk(asks=WAKES), Client(scene.store)
    await desk.agent.runs(scene.store).submit("Pay.", run_id="r")

    async with serving(scene.worker(desk.agent)):
        await scene.until("parked")
        temporal = await scene.temporal()
        begun = await temporal.get_workflow_handle("r").describe()
        for at in range(WAKES):
            await scene.until("parked")
            await client.approve("r", f"c{at}.0")
        await scene.until("done")
        assert await temporal.get_workflow_handle("r").result() == "over"

    first = await temporal.get_workflow_handle("r", run_id=begun.run_id).describe()
    assert first.status is WorkflowExecutionStatus.CONTINUED_AS_NEW
    assert desk.paid == [5] * WAKES
    await scene.store.aclose()


async def test_a_workflow_that_a_person_ends_is_begun_anew(scene: Scene) -> None:
    """Temporal only hands out legs; `Client.cancel` ends a run."""
    desk, client = Desk(), Client(scene.store)
    await desk.agent.runs(scene.store).submit("Pay.", run_id="r")

    async with serving(scene.worker(desk.agent)):
        await scene.until("parked")
        temporal = await scene.temporal()
        await temporal.get_workflow_handle("r").terminate()
        await client.approve("r", "c0.0")
        await scene.until("done")

    assert desk.paid == [5]
    await scene.store.aclose()


async def test_the_workflow_of_a_run_that_ended_elsewhere_ends(scene: Scene) -> None:
    """Somebody drove the run from a terminal; a wake finds it over."""
    desk = Desk()
    await desk.agent.runs(scene.store).submit("Pay.", run_id="r")

    async with serving(scene.worker(desk.agent)):
        await scene.until("parked")
        await desk.agent.runs(scene.store).resume("r", approvals={"c0.0": True})
        handle = (await scene.temporal()).get_workflow_handle("r")
        await handle.signal(WAKE)
        assert await handle.result() == "over"

    await scene.store.aclose()


async def test_the_workflow_of_a_run_that_the_store_lacks_ends(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """It was deleted, or the namespace has runs of another store: the log tells."""
    async with serving(scene.worker(agent())):
        temporal = await scene.temporal()
        driven = await temporal.execute_workflow(
            WORKFLOW, "gone", id="gone", task_queue="graphloop.agent", start_signal=WAKE
        )

    assert driven == "over"
    assert "gone" in caplog.text
    await scene.store.aclose()


async def test_a_leg_whose_pinned_workers_are_gone_is_left_to_others(scene: Scene) -> None:
    """They asked Temporal for the leg of a new run, and died before it came."""
    client = await scene.temporal()
    await wake_workflow(client, "r", agent().name, "graphloop.gone")
    handle = client.get_workflow_handle("r")
    async with serving(scene.worker(agent())):
        while not (await handle.describe()).raw_description.pending_activities:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await agent().runs(scene.store).submit("Go.", run_id="r")
        await scene.until("done")
        assert await handle.result() == "over"
    await scene.store.aclose()


async def test_an_unknown_namespace_is_told(scene: Scene) -> None:
    """With the command that makes it, by the worker that gets no legs from it."""
    engine = partial(TemporalIo, address=scene.server, namespace="nobodys")

    with pytest.raises(
        ConfigError, match=r"namespace 'nobodys'.*namespace create --namespace nobodys"
    ):
        await Worker([agent()], scene.store, engine=engine).serve()
    await scene.store.aclose()


@pytest.mark.parametrize("address", [NOWHERE, "not an address"])
async def test_a_server_that_does_not_answer_is_told(address: str, tmp_path: Path) -> None:
    """Before the worker takes a run."""
    store = SqliteStore(tmp_path / "runs.db")
    engine = partial(TemporalIo, address=address)

    with pytest.raises(ConfigError, match=f"expected a Temporal server at {address}, found: "):
        await Worker([agent()], store, engine=engine).serve()
    await store.aclose()


async def test_a_server_that_says_nothing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the connection, as a wrong port may."""
    monkeypatch.setattr(temporal_io, "ANSWER_S", 0.05)
    store = SqliteStore(tmp_path / "runs.db")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        engine = partial(TemporalIo, address=f"127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(ConfigError, match=r"no answer within 0\.05 s"):
            await Worker([agent()], store, engine=engine).serve()
    await store.aclose()


async def test_the_variables_of_temporal_name_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they do for its own programs."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", NOWHERE)
    store = SqliteStore(tmp_path / "runs.db")

    with pytest.raises(ConfigError, match=f"expected a Temporal server at {NOWHERE}"):
        await Worker([agent()], store, engine=TemporalIo).serve()
    await store.aclose()


async def test_a_broken_file_of_temporal_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The profile of Temporal's programs is read by them."""
    (tmp_path / "temporal.toml").write_text("[profile", "utf-8")
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(tmp_path / "temporal.toml"))
    store = SqliteStore(tmp_path / "runs.db")

    with pytest.raises(ConfigError, match=r"engine temporal: .*TOML"):
        await Worker([agent()], store, engine=TemporalIo).serve()
    await store.aclose()


def test_a_store_in_memory_is_refused() -> None:
    """Temporal would know runs that are gone."""
    with pytest.raises(ConfigError, match=r"outlives the process.*runs\.db.*postgresql://"):
        Worker([agent()], MemoryStore(), engine=TemporalIo)


def test_without_its_package_the_engine_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "temporalio", None)
    monkeypatch.delitem(sys.modules, "graphloop.engines.temporal_io")
    monkeypatch.delattr(engines, "TemporalIo", raising=False)

    with pytest.raises(ModuleNotFoundError, match=r"pip install 'graphloop\[temporal\]'"):
        _ = engines.TemporalIo
