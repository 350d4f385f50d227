"""Golden runs: what a run does is kept, whatever becomes of the code that does it.

To keep what the code does now: `python -m tests.golden.test_runs`, then read the difference.
"""

from __future__ import annotations

import asyncio
import tempfile
from math import inf
from pathlib import Path

import pytest

from graphloop.driver import in_flight
from tests.golden import gate_scenarios, graph_scenarios, loop_scenarios
from tests.golden.recorder import World, lines
from tests.golden.register import SCENARIOS

MODULES = (loop_scenarios, gate_scenarios, graph_scenarios)
"""Importing them fills the register."""

RUNS = Path(__file__).with_name("runs")


def _record(name: str, folder: Path) -> str:
    world = World(str(folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_flight, "SHARE_S", inf)  # No clock decides how two calls interleave.
        asyncio.run(_play(name, world))
    return lines(world.record)


async def _play(name: str, world: World) -> None:
    await SCENARIOS[name](world)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_does_what_it_did(name: str, tmp_path: Path) -> None:
    expected = (RUNS / f"{name}.jsonl").read_text("utf-8")

    assert expected == _record(name, tmp_path)


def test_every_record_has_its_scenario() -> None:
    assert {path.stem for path in RUNS.glob("*.jsonl")} == set(SCENARIOS)
    assert len(SCENARIOS) >= 60


if __name__ == "__main__":
    for each in SCENARIOS:
        with tempfile.TemporaryDirectory() as scratch:
            (RUNS / f"{each}.jsonl").write_text(_record(each, Path(scratch)), "utf-8")
