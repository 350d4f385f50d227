"""A run that another driver took further between its journal's reading and its claim.

Nobody drives it any more by then, and nothing happens twice, for the store refuses what does not
follow. It failed all the same, as if its journal could not be written, and took down what went on
beside it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from graphloop import Agent, AgentTool, EndReason, Tool
from graphloop.errors import RunBusy
from graphloop.events import Event, Setup, Started
from graphloop.stores.base import Ask, ReleaseStatus
from graphloop.stores.sqlite.store import SqliteStore
from tests.agent_tree import Ledger, Plans, batch, tree
from tests.mortal_store import Died, Fate, MortalSqliteStore
from tests.planned_model import PlannedModel

BESIDE: Plans = {"go": [batch("note", "kid")], "kid": [batch("note")]}
ALONE: Plans = {"go": [batch("pay")]}
KID = "r/c0.1"
CLIENT = Tool(name="client", parameters={"type": "object"})

Meanwhile = Callable[[], Awaitable[object]]


class Slow(MortalSqliteStore):
    """Claims a run a while after it was read: somebody else has gone on with it by then."""

    def __init__(self, disk: SqliteStore, run_id: str, meanwhile: Meanwhile) -> None:
        super().__init__(disk, Fate())
        self._run_id = run_id
        self._meanwhile: Meanwhile | None = meanwhile

    async def claim(self, run_id: str) -> None:
        """Claim a run, once the others had their way."""
        if run_id == self._run_id and self._meanwhile is not None:
            meanwhile, self._meanwhile = self._meanwhile, None
            await meanwhile()
        await super().claim(run_id)


class Dying(MortalSqliteStore):
    """Belongs to a process that dies once the child's model has replied, or once it has ended."""

    ends = False

    async def release(
        self,
        run_id: str,
        status: ReleaseStatus | None,
        asks: Sequence[Ask],
        *,
        seen: int = 0,
        wake_s: float | None = None,
        ending: str = "",
    ) -> None:
        """Release a run."""
        if run_id == KID:
            self.fate.after = 0
        await super().release(run_id, status, asks, seen=seen, wake_s=wake_s, ending=ending)

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events."""
        if run_id == KID and seq <= 3 < seq + len(events) and not self.ends:
            self.fate.after = 0
        await super().append(run_id, seq, *events)


class World:
    """Two processes and what both act upon; `agent` is one of the first, `other` of the second."""

    def __init__(self, folder: Path, plans: Plans, claimed: str, meanwhile: str) -> None:
        self.path = folder / "runs.db"
        self.mine = SqliteStore(self.path, durability="process")
        self.theirs = SqliteStore(self.path, durability="process")
        self.ledger = Ledger()
        self.plans = plans
        self.slow = Slow(self.mine, claimed, getattr(self, meanwhile))

    @property
    def agent(self) -> Agent:
        """Return an agent of the slow process."""
        return tree(self.ledger, self.plans, self.slow)

    @property
    def other(self) -> Agent:
        """Return the same of the other one."""
        return tree(self.ledger, self.plans, self.theirs)

    async def dies_in_the_child(self, *, once_it_has_ended: bool = False) -> None:
        """Have a third process begin the run, and die before the child has done anything, or all.

        Its lease is held until it is closed, which only then lets others in.
        """
        disk = SqliteStore(self.path, durability="process")
        store = Dying(disk, Fate())
        store.ends = once_it_has_ended
        with pytest.raises(Died):
            await tree(self.ledger, self.plans, store).generate("go", run_id="r")
        await disk.aclose()

    async def goes_on(self) -> None:
        """Have the other process answer, and drive the whole run to its end."""
        await self.other.runs.approve("r", "c0.0", True)
        await self.other.resume("r")

    async def ends_the_child(self) -> None:
        """Have the other process drive the child alone to its end."""
        model = PlannedModel(lambda prompt: self.plans[prompt])
        leaf = Agent(model, name="leaf").as_tool(description="deepest")
        own: list[Tool | AgentTool] = [
            self.ledger.tool("note"),
            self.ledger.tool("pay"),
            CLIENT,
            leaf,
        ]
        kid = Agent(model, tools=own, name="kid", store=self.theirs)
        await kid.resume(KID)

    async def begins_the_child(self) -> None:
        """Have the other process begin the child, and die."""
        await self.theirs.append(KID, 1, Started(0.0, KID, "kid", (), Setup()))

    async def standing(self) -> dict[str, str]:
        """Return how each run stands, and close the stores."""
        records = await self.theirs.overview()
        await self.mine.aclose()
        await self.theirs.aclose()
        return {one.run_id: one.status for one in records}


@pytest.mark.parametrize("answered", [True, False])
async def test_a_run_that_another_driver_went_on_with_is_busy(
    answered: bool, tmp_path: Path
) -> None:
    """Also for who has nothing to add: their view of it is old, and must not be noted."""
    world = World(tmp_path, ALONE, "r", "goes_on")
    await world.other.generate("go", run_id="r")
    with pytest.raises(RunBusy, match="run 'r' was taken further by another driver"):
        await world.agent.resume("r", approvals={"c0.0": True} if answered else None)
    assert EndReason.COMPLETED is (await world.agent.resume("r")).end_reason
    assert ({"r": "done"}, {"pay": 1}) == (await world.standing(), dict(world.ledger.names))


@pytest.mark.parametrize("claimed", ["r", KID])
async def test_a_child_that_went_on_meanwhile_is_waited_for(claimed: str, tmp_path: Path) -> None:
    """As one that is being driven: its parent keeps what it has, and goes on with the next leg."""
    world = World(tmp_path, BESIDE, claimed, "ends_the_child")
    await world.dies_in_the_child()
    waiting = await world.agent.resume("r")
    (warning,) = waiting.warnings
    assert f"run {KID!r} was taken further by another driver" in warning
    done = await world.agent.resume("r")
    ends = [waiting.end_reason, done.end_reason]
    standing, times = await world.standing(), set(world.ledger.done.values())

    assert [EndReason.PARKED, EndReason.COMPLETED] == ends
    assert {"r": "done", KID: "done"} == standing
    assert {1} == times


async def test_a_child_that_was_begun_meanwhile_is_not_begun_again(tmp_path: Path) -> None:
    """Its id is taken by itself: that is no mistake of its parent's."""
    world = World(tmp_path, BESIDE, KID, "begins_the_child")
    result = await world.agent.generate("go", run_id="r")
    await world.standing()

    assert EndReason.PARKED is result.end_reason
    (warning,) = result.warnings
    assert f"run {KID!r} was taken further by another driver" in warning


async def test_a_run_can_be_stopped_whose_child_went_on_meanwhile(tmp_path: Path) -> None:
    """The child has ended as it has, and what it has spent is counted."""
    world = World(tmp_path, BESIDE, KID, "ends_the_child")
    await world.dies_in_the_child()
    stream = world.agent.resume_stream("r")
    stream.abort("enough")
    result = await stream.result()
    end, standing = result.end_reason, await world.standing()

    assert (EndReason.ABORTED, {"r": "cancelled", KID: "done"}) == (end, standing)


@pytest.mark.parametrize("busy", [False, True])
async def test_a_child_that_ended_unheard_is_listed_after_a_stop(
    busy: bool, tmp_path: Path
) -> None:
    """Nobody would drive it again, so it was listed as running or interrupted for ever."""
    world = World(tmp_path, BESIDE, "nobody", "goes_on")
    await world.dies_in_the_child(once_it_has_ended=True)
    if busy:
        await world.theirs.claim(KID)
    stream = world.agent.resume_stream("r")
    stream.abort("enough")
    result = await stream.result()
    assert () == result.warnings
    if busy:
        await world.theirs.release(KID, "done", ())
    end, model_calls, standing = (
        result.end_reason,
        result.run.spent.model_calls,
        await world.standing(),
    )

    assert (EndReason.ABORTED, 3) == (end, model_calls)
    assert {"r": "cancelled", KID: "done"} == standing
