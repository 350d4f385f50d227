"""Worker: finds runs that wait for a driver, claims them and drives them.

    worker = Worker([support, research], "runs.db")
    await worker.serve()  # until worker.stop()

The journal is the truth, and an engine (`engines.Engine`) only decides who drives a run next.
Workers may take the same run: the store lets one of them drive it (`Leases`), and refuses the
others. A worker that dies leaves its runs `interrupted`, and another worker takes them.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, final

from ..agent import Agent, RunStream, StoreInput
from ..driver import Fleet
from ..engines import Driven, Engine, Legs, Pull, SharedStore
from ..errors import ConfigError, Fenced, IllegalEvent, QueueFull, RunBusy, StoreError
from ..policy import Approval, decline
from ..rates import FleetPace, RateDesk
from ..stores import (
    REVISION_SHOWN,
    Meters,
    QueueLimits,
    Refusal,
    Relays,
    ReleaseStatus,
    RunCommand,
    RunRecord,
    Store,
    Wakes,
    commands_in,
    open_store,
    path_of,
)
from .deltas import StreamedTexts

__all__ = ["Worker"]

LOG: Final = logging.getLogger("graphloop")

PATIENCE_S: Final = 2.0
"""The longest wait for a rate with which a run keeps its slot of the worker."""
NEWS_PAUSE_S: Final = 0.01
"""The least seconds between two looks that follow news."""
LATE: Final = "No answer came in time."


@final
class Worker:
    """Drives the stored runs of some agents, many at once.

    Any number of workers may serve one store: in one process, in several, or on several machines,
    as far as the store can be shared. A run is taken if it was submitted (`Runs.submit`), if it got
    an answer or a command (`Client`), if a question of it expired, or if its driver died or left
    it. So is a child run whose `place` is "anywhere": its parent waits without a slot. An expired
    question counts as denied, and a run past its deadline ends as `timeout`.

    Args:
        agents: the agents, each with a name of its own: a run belongs to the agent with
            the name of its graph.
        store: the store of the runs, or its path.
        slots: the number of runs to drive at once.
        poll_s: the most seconds between two looks for waiting runs; a store that tells of a run
            (`stores.Wakes`) is looked into at once.
        queues: the queues whose runs the worker takes, by name, each with slots of its own; by
            default it takes the runs of all. The limits and weights that the worker which starts
            last gives to a queue count for all workers of the store.
        engine: decides which run is driven next, and when; called with the legs of the worker.
        deps: returns the `deps` of a root run by its id, for agents with a `deps_type`.
        pinned: take no run that code of another revision began, only new ones and one's own
            (`Agent.revision`).

    Raises:
        ConfigError: two agents have one name, an agent needs `deps`, a number is not positive, or
            the store cannot tell which runs wait.
    """

    def __init__(  # noqa: PLR0913 - the options of a worker
        self,
        agents: Iterable[Agent[Any, Any]],
        store: StoreInput,
        *,
        slots: int = 100,
        poll_s: float = 0.2,
        queues: Mapping[str, QueueLimits] | None = None,
        engine: Callable[[Legs], Engine] = Pull,
        deps: Callable[[str], object] | None = None,
        pinned: bool = False,
    ) -> None:
        self._agents: dict[str, Agent[Any, Any]] = {}
        for agent in agents:
            if agent.name in self._agents:
                raise ConfigError(
                    f"a worker: expected agents with different names, found two called "
                    f"{agent.name!r}. Fix: give one of them another `name`."
                )
            self._agents[agent.name] = agent
        if not self._agents:
            raise ConfigError("a worker: expected at least one agent, found none.")
        for name, number in (("slots", slots), ("poll_s", poll_s)):
            if not number > 0:
                raise ConfigError(f"{name}: expected a positive number, found {number!r}.")
        self._store = _check_shared(open_store(store) if isinstance(store, str | Path) else store)
        for agent in self._agents.values() if deps is None else ():
            agent.runs.terms_in(self._store, "to drive").check_deps({})
        pace: FleetPace | None = None
        if isinstance(self._store, Meters):
            pace = FleetPace(RateDesk(self._store, patience_s=PATIENCE_S), {})
        self._fleet = Fleet(pace, self._store)
        for name, limits in (queues or {}).items():
            limits.check(name)
        lanes = [slots if one.slots is None else one.slots for one in (queues or {}).values()]
        self._poll_s = poll_s
        self._deps = deps
        self._legs = Legs(
            self._store,
            {name: agent.revision for name, agent in self._agents.items()},
            self.drive,
            slots=sum(lanes) or slots,
            poll_s=poll_s,
            queues=queues or {},
            pinned=pinned,
        )
        self._engine = engine(self._legs)
        # The streams of the runs under way, each with the keys of the commands that it was told.
        self._streams: dict[str, tuple[RunStream[Any, Any], set[str]]] = {}

    def __repr__(self) -> str:
        return f"<Worker of {', '.join(self._agents)}: {len(self._legs)} runs>"

    def stop(self) -> None:
        """Take no more runs, and let `serve` return when those under way have ended or parked."""
        self._legs.stopped.set()
        self._legs.news.set()

    async def serve(self, *, grace_s: float = 30.0) -> None:
        """Drive waiting runs until `stop`; then give up those that do not end or park in time.

        A worker serves once.

        Args:
            grace_s: the seconds that runs under way have after `stop`. Other workers drive the
                remaining runs then.

        Raises:
            OtherSchema: the store is another version's of graphloop; no run has changed.
            StoreError: the store does not answer at the start; later, the worker waits for it.
            ConfigError: the engine cannot serve.
        """
        await self._engine.open()
        codes = [
            f"{name} (code {code[:REVISION_SHOWN]})" for name, code in self._legs.agents.items()
        ]
        LOG.info("a worker serves the runs of %s", ", ".join(codes))
        left_s, beside = 0.0, [*self._start_side_tasks()]
        async with AsyncExitStack() as ending:  # The last first, and each though one fails.
            ending.push_async_callback(_end_tasks, beside)
            ending.push_async_callback(self._legs.leave)
            ending.push_async_callback(self._engine.close)
            ending.push_async_callback(lambda: self._legs.end(left_s))
            ending.push_async_callback(self._engine.drain)
            ending.callback(self._legs.stopped.set)
            while not self._legs.stopped.is_set():
                self._legs.news.clear()  # News during the look asks for another.
                await self._engine.look()
                await self._pass_on_commands()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._poll_s):
                        await self._legs.news.wait()
            left_s = grace_s

    def _start_side_tasks(self) -> Generator[asyncio.Task[None]]:
        """Start what serves beside the engine, as far as the store can: news, and deltas."""
        if isinstance(self._store, Wakes):
            yield asyncio.create_task(self._hear_news(self._store))
        if isinstance(self._store, Relays):
            yield asyncio.create_task(StreamedTexts(self._store, self._streams).serve())

    async def _hear_news(self, store: Wakes) -> None:
        """Wake the serving loop whenever the store tells of a run that waits.

        News that come soon after others wait for a moment, so that a burst asks for few looks.
        """
        now, next_at, said = asyncio.get_running_loop().time, 0.0, ""
        while True:
            try:
                await store.woken()
            except Exception as error:  # noqa: BLE001 - of a store; the looks go on without news
                if (failure := repr(error)) != said:
                    LOG.warning("a worker hears no news of runs, and asks again: %s", failure)
                said = failure
                await asyncio.sleep(self._poll_s)
                continue
            await asyncio.sleep(max(0.0, next_at - now()))
            next_at, said = now() + NEWS_PAUSE_S, ""
            self._legs.news.set()

    async def drive(self, run_id: str) -> Driven:
        """Take one run as far as it goes without an answer from people.

        Raises:
            UnknownRun: the store has no such run.
        """
        record, root = await self._store.record(run_id), run_id.partition("/")[0]
        name = await self._legs.agent_of(record)
        if not self._legs.takes(name, record):
            return "blocked"
        agent = self._agents[name]
        remaining_s = math.inf if record.remaining_s is None else record.remaining_s
        path = "".join([key + "/" for key in path_of(run_id)])
        late: dict[str, bool | Approval] = {
            path + ask.key: decline(LATE)
            for ask in record.asks
            if ask.expires_at is not None and ask.expires_at <= time.time()
            if remaining_s > 0
        }
        deps: Any = {} if self._deps is None else {"deps": self._deps(root)}
        try:
            runs = agent.runs(self._store, fleet=self._fleet)
            stream = runs.resume_stream(run_id, approvals=late, **deps)
            self._streams[run_id] = stream, set()
            with _ended_after(remaining_s, stream):
                result = await stream.result()
        except QueueFull:
            return "full"
        except (RunBusy, Fenced):
            return "again"
        except (ConfigError, IllegalEvent) as error:
            if late:  # Another answer may have come meanwhile.
                return "again"
            return await self._record_blocked(record, agent, error)
        finally:
            self._streams.pop(run_id, None)
        return "over" if result.run.ended else "parked"

    async def _pass_on_commands(self) -> None:
        """Tell the runs under way what came for them since their drivers read their mailboxes."""
        if not self._streams:
            return
        try:
            found = await self._store.commands(self._streams.keys())
        except StoreError as error:
            LOG.warning("a worker cannot look for commands: %s", error)
            return
        # A run may have come to rest meanwhile; its release tells of unread commands.
        for run_id in found.keys() & self._streams.keys():
            stream, told = self._streams[run_id]
            for command in commands_in(found[run_id]):
                if command.key not in told:
                    told.add(command.key)
                    _tell_stream(stream, command)

    async def _record_blocked(
        self, record: RunRecord, agent: Agent[Any, Any], error: Exception
    ) -> Driven:
        """Record that this worker's code cannot drive a run, unless the run has gone on."""
        run_id, is_same = record.run_id, False
        # Whether a child run fits, only its ancestors tell: they are blocked with it.
        event = 0 if "/" in run_id else await agent.runs(self._store).misfit(run_id)
        LOG.error("run %s is blocked at event %d: %s", run_id, event, error)
        refusal = Refusal(agent.revision, str(error), event)
        try:
            await self._store.claim(run_id)
            try:
                is_same = (await self._store.record(run_id)).events == record.events
            finally:
                status: ReleaseStatus | None = "blocked" if is_same else None
                await self._store.release(run_id, status, record.asks, refusal=refusal)
        except (RunBusy, Fenced):
            return "again"
        return "blocked" if is_same else "again"


@contextmanager
def _ended_after(remaining_s: float, stream: RunStream[Any, Any]) -> Generator[None]:
    """Let the deadline of a run end it while it is driven; infinite for none."""
    end = partial(stream.abort, "the run's deadline has passed", timeout=True)
    if remaining_s <= 0:  # Before any effect starts.
        end()
    if not 0 < remaining_s < math.inf:
        yield
        return
    timer = asyncio.get_running_loop().call_later(remaining_s, end)
    try:
        yield
    finally:
        timer.cancel()


async def _end_tasks(tasks: Collection[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _tell_stream(stream: RunStream[Any, Any], command: RunCommand) -> None:
    # A command that this leg of the run cannot take stays in the mailbox.
    with suppress(ConfigError):
        match command.kind:
            case "cancel":
                stream.abort(command.text)
            case "steer":
                stream.steer(command.text, signal_id=command.signal_id)
            case "follow_up":
                stream.follow_up(command.text, signal_id=command.signal_id)


def _check_shared(store: Store) -> SharedStore:
    if not isinstance(store, SharedStore):
        raise ConfigError(
            f"a worker: expected a store that several processes share, found {store!r}. Fix: keep "
            "the runs in a database, 'runs.db'."
        )
    return store
