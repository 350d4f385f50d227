"""Random lives of a server: whatever happens in whatever order, nothing stays behind."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from graphloop.errors import ConfigError
from graphloop.mcp import Server, process, stdio
from graphloop.tools import AnyTool
from tests.mcp_calls import ended, outcome, until
from tests.sizes import sized

pytestmark = pytest.mark.deadline(50)

SMALL = str(Path(__file__).parents[2] / "mcp_small_server.py")


class Life:
    """A server, the processes that it has started, and what happens to it.

    Args:
        seed: decides what happens.
        pids: the file in which each process notes itself.
    """

    def __init__(self, seed: int, pids: Path) -> None:
        pids.touch()
        self.chance, self._pids = random.Random(seed), pids  # noqa: S311 - no secret
        mode = self.chance.choice(["auto", "legacy"])
        command = sys.executable, "-I", "-S", SMALL, str(pids)
        self.server: Server = stdio(*command, timeout_s=8, mode=mode)  # type: ignore[arg-type]
        self.tools: dict[str, AnyTool] = {}

    @property
    def pids(self) -> list[int]:
        """The processes so far, in order."""
        return [int(line) for line in self._pids.read_text().split()]

    async def open(self) -> None:
        """Ask for the tools."""
        self.tools = {tool.name: tool for tool in await self.server.tools()}

    async def list(self) -> None:
        """Ask for the tools; another task may kill or close the server while it starts."""
        with suppress(ConfigError):
            await self.open()

    async def call(self) -> None:
        """Make a call; a call that ends well has reached a process of the server."""
        answer = await outcome(self.tools["pid"])
        assert answer.status == "error" or int(str(answer.content)) in self.pids

    async def cancel(self) -> None:
        """Cancel a call that would never end, at any time."""
        call = asyncio.create_task(outcome(self.tools["wait"]))
        for _ in range(self.chance.randrange(30)):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait({call})

    async def die(self) -> None:
        """Let the server end in the middle of a call, which is never repeated."""
        answer = await outcome(self.tools["die"])
        assert answer.status == "error"

    async def kill(self) -> None:
        """Kill all processes of the server."""
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def close(self) -> None:
        """Close the server, from whichever task this is."""
        await self.server.aclose()

    def happening(self) -> Callable[[], Awaitable[None]]:
        """Return what happens next."""
        likely = (self.call, self.call, self.list)
        return self.chance.choice([*likely, self.cancel, self.die, self.kill, self.close])

    async def in_turn(self) -> None:
        """Let things happen one after another: no call connects more than once again."""
        await self.open()
        for _ in range(8):
            before = len(self.pids)
            await self.happening()()
            assert len(self.pids) <= before + 1

    async def at_once(self) -> None:
        """Let things happen at the same time, each in a task of its own."""
        await self.open()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(10):
                tasks.create_task(_task(self.happening()))
                for _ in range(self.chance.randrange(3)):
                    await asyncio.sleep(0)


async def _task(work: Callable[[], Awaitable[None]]) -> None:
    await work()


@pytest.mark.parametrize("seed", range(sized(ci=6, nightly=200)))
def test_nothing_is_left_of_a_server_after_any_life(
    seed: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No task, no process and no error about cancel scopes: also where a loop ends by itself."""
    life = Life(seed, tmp_path / "pids")
    left: list[str] = []

    async def lived(*, closes: bool) -> None:
        async with asyncio.timeout(50):
            await (life.in_turn() if seed % 2 else life.at_once())
        if closes:
            await asyncio.create_task(life.close())
            names = [task.get_name() for task in asyncio.all_tasks()]
            left.extend([name for name in names if name.startswith("mcp")])

    asyncio.run(lived(closes=True))
    asyncio.run(lived(closes=seed % 3 > 0))

    assert left == []
    assert all(ended(pid) for pid in life.pids)
    assert "cancel scope" not in caplog.text
    # Python 3.11 before its fourth release logs a pipe that broke, whoever closed it.
    errors = [one.exc_info and one.exc_info[1] for one in caplog.records]
    assert [one for one in errors if one and not isinstance(one, BrokenPipeError)] == []


STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"


@pytest.mark.parametrize("cancels", [0, 1, 2])
async def test_a_server_that_ends_by_force_is_waited_for(
    cancels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else would wait for its process, if the event loop ends right after the connection."""
    servers: list[asyncio.subprocess.Process] = []
    start = asyncio.create_subprocess_exec

    async def started(*words: str, **options: Any) -> asyncio.subprocess.Process:
        servers.append(await start(*words, **options))
        return servers[-1]

    async def lived(*, waits: bool) -> None:
        command = sys.executable, "-I", "-S", "-c", STUBBORN
        async with process.launched(command, {}, None, process.ServerLog("it"), list):
            if waits:
                await asyncio.Event().wait()

    def is_closing() -> bool:
        return bool(servers) and servers[0].stdin is not None and servers[0].stdin.is_closing()

    monkeypatch.setattr(asyncio, "create_subprocess_exec", started)
    monkeypatch.setattr(process, "GRACE_S", 2.0 if cancels > 1 else 0.0)
    owner = asyncio.create_task(lived(waits=cancels > 0))
    if cancels:
        await until(lambda: bool(servers))
        owner.cancel()
    if cancels > 1:
        await until(is_closing)
        owner.cancel()
    await asyncio.wait({owner})

    assert servers[0].returncode is not None
