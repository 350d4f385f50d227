"""A recording of each wire: what its model said is replayed with all that the journal keeps."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from graphloop import Agent, tool
from graphloop.errors import GraphloopError
from graphloop.events import Event
from graphloop.providers import Provider
from graphloop.providers.http import Endpoint, HttpEnvironment, HttpProvider, Retries
from graphloop.stores import MemoryStore
from graphloop.testing import recorded, refuse_requests
from graphloop.values import evolve
from tests.conformance.test_wires_over_sockets import CASES, Case
from tests.echo_wire import KEY, Sleeps
from tests.wire_server import Answer, WireServer


@tool
def get_weather(city: str = "") -> str:
    """Current weather for a city."""
    return f"fog in {city}"


async def journal_of(model: Provider) -> Sequence[Event]:
    """Return the events of a run of two turns with a model, without their times."""
    store = MemoryStore()
    async with Agent(model, tools=[get_weather], max_steps=2, store=store) as agent:
        with suppress(GraphloopError):  # A failure is journaled, too.
            await agent.generate("Begin.", run_id="r")
    return [evolve(event, at=0.0) for event in await store.load("r")]


@pytest.mark.parametrize(
    ("case", "name"),
    [
        pytest.param(case, name, id=f"{case.wire.name}-{name}")
        for case in CASES
        for name in case.recorded
    ],
)
async def test_a_replay_gives_the_journal_of_the_live_run(
    case: Case, name: str, tmp_path: Path
) -> None:
    """With signatures, blocks of server tools, ids, finish words and the name of the wire."""
    path = tmp_path / "talk.yaml"
    answers = [Answer([case.recorded[one]]) for one in (name, "text", "text")]
    async with WireServer(answers) as server:
        live = HttpProvider(
            case.wire,
            Endpoint(server.url, KEY),
            retries=Retries(attempts_max=1),
            environment=HttpEnvironment(sleep=Sleeps(), jitter=lambda: 0.5),
        )
        first = await journal_of(recorded(live, path))
    with refuse_requests():
        again = await journal_of(recorded(live, path, mode="replay"))

    assert list(again) == list(first)
    assert KEY not in path.read_text("utf-8")
