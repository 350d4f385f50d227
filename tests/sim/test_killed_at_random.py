"""Contract 4, with real processes: killed at random, restarted until the run is done.

Half of the trials kill from outside, after a random time; half from inside, at a random moment of
the journal and of the tools, which reaches the few instructions between two of them.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from threading import Lock
from typing import TypeAlias

import pytest

from graphloop.effects import AskHuman, CallTool, Effect
from graphloop.events import Decided, Event, ToolReturned
from graphloop.questions.pending import ask_key
from graphloop.replay import replay, replay_steps
from graphloop.run import EndReason, Run
from graphloop.stores.base import Store
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.values import Message, ToolResult
from tests.forked import server
from tests.mortal_store import Fate
from tests.property.test_contract_pairing import assert_paired
from tests.sim.killed_worker import ONCE, RUN, Ledger, build, work
from tests.sizes import NIGHTLY

TRIALS = 1_000 if NIGHTLY else 10
PROCESSES = Lock()
"""Of two threads that ask how a process has ended, one is told wrongly."""

LEGS_MAX = 60
KILLS_MAX = 2
MOMENTS = 90
"""How many moments a process has at most, if it does not live until it parks."""

LEG_S = 0.06
"""About how long an undisturbed leg works."""

GRAPH = build(MemoryStore(), Ledger(Path(), Fate())).graph
"""The standard loop: the helper's is the same."""

Histories: TypeAlias = Mapping[str, tuple[Message, ...]]


@dataclass
class Trial:
    """What one trial saw."""

    number: int
    kills: int = 0
    legs: int = 0
    unknown: set[str] = field(default_factory=set[str])
    running_at_a_kill: set[str] = field(default_factory=set[str])
    finished: dict[str, int] = field(default_factory=dict[str, int])
    approved: dict[str, bool] = field(default_factory=dict[str, bool])
    decided: dict[str, bool] = field(default_factory=dict[str, bool])


def began(directory: Path, word: str = "begin") -> Counter[str]:
    """Return how often each call began (or ended), as the world outside knows."""
    ledger = directory / "ledger"
    text = ledger.read_text(encoding="utf-8") if ledger.exists() else ""
    return Counter(
        f"{run_id}:{key}"
        for kind, run_id, key in (one.split() for one in text.splitlines())
        if kind == word
    )


async def histories(store: Store) -> dict[str, tuple[Message, ...]]:
    """Return what each run of a store has added to its conversation."""
    return {
        run_id: tuple(replay(GRAPH, await store.load(run_id)).record.added)
        for run_id in await store.runs()
    }


async def undisturbed(directory: Path) -> Histories:
    """Return the histories of a run that nobody kills, with every call approved."""
    store = MemoryStore()
    agent = build(store, Ledger(directory / "calm", Fate()))
    result = await agent.generate("go", run_id=RUN)
    while result.pending:
        result = await agent.resume(result, approvals={result.pending[0].key: True})
    assert result.end_reason is EndReason.COMPLETED
    return await histories(store)


def at_most_once(histories: Histories) -> set[str]:
    """Return the calls that may not run twice."""
    return {
        f"{run_id}:{one.key}"
        for run_id, history in histories.items()
        for one in history
        if isinstance(one, ToolResult) and one.name in ONCE
    }


async def left_by(directory: Path) -> Histories:
    """Return the histories in a database."""
    store = SqliteStore(directory / "runs.db")
    try:
        return await histories(store)
    finally:
        await store.aclose()


@pytest.mark.timeout(0 if NIGHTLY else 300)
def test_a_run_killed_again_and_again_ends_as_if_undisturbed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """This is the promise that everything else is built for, kept by real processes."""
    expected = asyncio.run(undisturbed(tmp_path))

    def try_one(number: int) -> Trial:
        directory = tmp_path / str(number)
        directory.mkdir()
        return tried(Trial(number), directory, expected)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        trials = list(pool.map(try_one, range(TRIALS)))

    kills = sum(one.kills for one in trials)
    unknown = sum(len(one.unknown) for one in trials)
    exact = sum(not one.unknown for one in trials)
    with capsys.disabled():
        print(  # noqa: T201 - the figures of this run
            f"\nkill -9: {len(trials)} trials, {sum(one.legs for one in trials)} processes, "
            f"{kills} kills, {unknown} calls of unknown outcome, {exact} trials exact"
        )
    assert kills >= len(trials)
    assert exact >= len(trials) / 3


def tried(trial: Trial, directory: Path, expected: Histories) -> Trial:
    """Kill and restart until the run is done, and look at what is left."""
    chance = random.Random(trial.number)  # noqa: S311 - a trial must be repeatable
    while True:
        trial.legs += 1
        assert trial.legs < LEGS_MAX, f"trial {trial.number} does not end"
        if killed(trial, directory, chance):
            trial.kills += 1
        if looked_at(trial, directory):
            break
    compare(trial, expected, asyncio.run(left_by(directory)))
    counts = began(directory)
    once = at_most_once(expected)
    assert all(count <= 1 for key, count in counts.items() if key in once)
    for key, count in trial.finished.items():
        assert count == counts[key], f"trial {trial.number}: {key} had finished, and ran again"
    return trial


def killed(trial: Trial, directory: Path, chance: random.Random) -> bool:
    """Let a new process work, and perhaps kill it; return whether it was killed."""
    spare = trial.kills >= KILLS_MAX
    inside = trial.number % 2 == 0
    after = chance.randrange(MOMENTS) if inside and not spare else None
    ready, closed_when_ready = server().Pipe(duplex=False)
    process = server().Process(target=work, args=(directory, after, closed_when_ready), daemon=True)
    with PROCESSES:
        process.start()
        closed_when_ready.close()
    wait([ready])
    wait([process.sentinel], None if inside or spare else chance.uniform(0, LEG_S))
    ready.close()
    with PROCESSES:
        process.kill()
        process.join()
        code = process.exitcode
        process.close()
    assert code in (0, -9), f"trial {trial.number}: a process ended with {code}"
    return code == -9


def looked_at(trial: Trial, directory: Path) -> bool:
    """Look at what the dead left, answer what they ask, and return whether the run is done."""
    if not (directory / "runs.db").exists():
        return False
    return asyncio.run(look(trial, directory))


async def look(trial: Trial, directory: Path) -> bool:
    """Note what has finished and what was running, and answer through the mailbox."""
    store = SqliteStore(directory / "runs.db")
    try:
        counts = began(directory)
        ended = {
            run_id: note(trial, run_id, await store.load(run_id), counts)
            for run_id in await store.runs()
        }
        for record in await store.overview():
            for ask in record.asks if record.run_id == RUN else ():
                if ask.key not in trial.approved:
                    # A call that may have happened is not risked a second time.
                    answer = "#" not in ask.key
                    data = '{"approved":true}' if answer else '{"approved":false}'
                    assert "accepted" == await store.post(RUN, ask.key, ask.key, data)
                    trial.approved[ask.key] = answer
        return ended.get(RUN, False)
    finally:
        await store.aclose()


def note(trial: Trial, run_id: str, journal: Sequence[Event], counts: Counter[str]) -> bool:
    """Note which calls of a run have finished, and which not; return whether it is over."""
    pending: Mapping[int, Effect] = {}
    run: Run[None] | None = None
    for taken in replay_steps(GRAPH, journal):
        event, run = taken.event, taken.run
        match event, pending.get(getattr(event, "effect", 0)):
            case ToolReturned(), CallTool(key=key):
                trial.finished.setdefault(f"{run_id}:{key}", counts[f"{run_id}:{key}"])
            case Decided(approved=approved), AskHuman() as asked:
                trial.decided[f"{run_id}/{ask_key(asked)}"] = approved
            case _:
                pass
        pending = run.pending
    assert run is not None, "a journal that is there has a first event"
    trial.running_at_a_kill |= {
        f"{run_id}:{one.key}" for one in pending.values() if isinstance(one, CallTool)
    }
    return run.ended


def compare(trial: Trial, expected: Histories, found: Histories) -> None:
    """Assert that the histories are the undisturbed ones, but for what nobody can know."""
    place = f"trial {trial.number}"
    for key, approved in trial.approved.items():
        assert approved == trial.decided[f"{RUN}/{key}"], f"{place}: the answer to {key} is lost"
    assert expected.keys() == found.keys()
    for run_id, history in found.items():
        assert_paired(history)
        assert len(expected[run_id]) == len(history), place
        for calm, message in zip(expected[run_id], history, strict=True):
            if isinstance(message, ToolResult) and message.status == "unknown":
                key = f"{run_id}:{message.key}"
                trial.unknown.add(key)
                assert message.name in ONCE, f"{place}: {key} may simply run again"
                assert key in trial.running_at_a_kill, f"{place}: {key} was not running"
                continue
            assert calm == message, place
