"""The legs of a worker: how long a run waits after a failure, and none after a stop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from graphloop.engines import Driven, Legs, Pull
from graphloop.stores import MemoryStore, SqliteStore

MANY = 1_100
"""More failures than a float has powers of two."""


async def _again(_: str) -> Driven:
    return "again"


def _legs(poll_s: float) -> Legs:
    return Legs(MemoryStore(), {"agent": ""}, _again, slots=1, poll_s=poll_s, queues={})


async def test_a_run_waits_after_any_number_of_failures() -> None:
    """The wait grows to a minute, and no number of failures is too large for it."""
    legs = _legs(poll_s=1e-300)
    for _ in range(MANY):
        await legs.start("run")

    assert 0.0 <= legs.wait_s("run") <= 60.0
    assert await _legs(poll_s=9.0).start("run") == "again"


async def test_a_run_that_has_waited_makes_no_look_larger() -> None:
    """Another worker may have taken it: this worker would count it for ever."""
    over, waiting = _legs(poll_s=1e-300), _legs(poll_s=9.0)
    await over.start("run")
    await waiting.start("run")

    assert (over.delayed, waiting.delayed) == (0, 1)
    assert waiting.wait_s("run") > 0


async def test_a_look_that_is_overtaken_by_a_stop_starts_no_leg(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The store answers while the worker stops; another worker takes the runs that it names."""
    legs = _legs(poll_s=1.0)
    pull = Pull(legs)

    async def answered(free: int, queue: str | None = None) -> Sequence[str]:
        legs.stopped.set()
        return [f"{queue}{free}"]

    monkeypatch.setattr(pull, "waiting", answered)
    await pull.look()

    assert 0 == len(legs)


async def test_legs_are_cancelled_if_the_wait_for_them_is() -> None:
    """They would drive on in a process that believes that its worker has ended."""
    begun = asyncio.Event()

    async def drive(_: str) -> Driven:
        begun.set()
        await asyncio.Event().wait()
        return "again"

    legs = Legs(MemoryStore(), {"agent": ""}, drive, slots=1, poll_s=1.0, queues={})
    leg = legs.start("run")
    await begun.wait()
    ending = asyncio.create_task(legs.end(3600))
    await asyncio.sleep(0)
    ending.cancel()
    await asyncio.wait([ending, leg])

    assert leg.cancelled()


async def test_a_worker_that_ends_does_not_wait_for_a_store_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What only surveys read is not worth a minute of a stop."""
    monkeypatch.setattr("graphloop.engines.legs.LEAVE_S", 0.0)
    store, asked = SqliteStore(tmp_path / "runs.db"), list[str]()

    async def attend(attendant: str, _: Mapping[str, str]) -> None:
        asked.append(attendant)
        await asyncio.Event().wait()

    vars(store)["attend"] = attend
    await Legs(store, {"agent": ""}, _again, slots=1, poll_s=1.0, queues={}).leave()

    assert len(asked) == 1
    await store.aclose()
