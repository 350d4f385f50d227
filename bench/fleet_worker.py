"""A worker of the fleet's benchmark, in a process of its own, until SIGTERM.

Run as `python -m bench.fleet_worker STORE ENGINE AGENT` by `bench.fleet`.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Final

from graphloop import Agent, engines, tool
from graphloop.policy import ask
from graphloop.providers import StreamItem, TextDelta
from graphloop.testing import ScriptedModel
from graphloop.values import AssistantMessage, FinishReason, ModelRequest, Reply, TextPart
from graphloop.workers import Worker

__all__ = ["AGENTS", "LATE_S", "PIECES", "PIECE_S", "TURNS"]

TURNS: Final = 5
LATE_S: Final = 30.0
"""All runs are parked by then, also on a busy machine."""
PIECES: Final = 60
PIECE_S: Final = 0.05
FOR_EVER_S: Final = 3600.0


@tool
async def look() -> str:
    """Look."""
    return "nothing"


@tool
async def pay() -> str:
    """Pay."""
    return "paid"


@tool(effect="idempotent")
async def wait() -> str:
    """Wait."""
    await asyncio.sleep(FOR_EVER_S)
    return "over"


class Clock:
    """A model that says the time, some times a second."""

    label = "clock"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Reply to any request."""
        text = "" if request.messages else "?"
        for _ in range(PIECES):
            await asyncio.sleep(PIECE_S)
            piece = f"{time.time()} "
            text += piece
            yield TextDelta(piece)
        yield Reply(AssistantMessage((TextPart(text),)), FinishReason.STOP)

    def session(self) -> Clock:
        """Return the model itself, which keeps nothing of a run."""
        return self

    async def aclose(self) -> None:
        """Do nothing."""


def _calls(name: str, times: int = 1) -> ScriptedModel:
    nothing: Mapping[str, object] = {}
    call: Mapping[str, object] = {"calls": [{"name": name, "arguments": nothing}]}
    return ScriptedModel([*[call] * times, "Done."], restart=True)


def _parent() -> Agent:
    """Return an agent whose child run waits, driven by any worker."""
    call: Mapping[str, object] = {"calls": [{"name": "waits", "arguments": {"prompt": "Wait."}}]}
    child = AGENTS["waits"]().as_tool(place="anywhere")
    return Agent(ScriptedModel([call], restart=True), name="parent", tools=[child])


AGENTS: Final[Mapping[str, Callable[[], Agent]]] = {
    "turns": lambda: Agent(_calls("look", TURNS - 1), name="turns", tools=[look]),
    "asks": lambda: Agent(_calls("pay"), name="asks", tools=[pay], gate=ask("pay")),
    "late": lambda: Agent(_calls("pay"), name="late", tools=[pay], gate=ask("pay", ttl_s=LATE_S)),
    "waits": lambda: Agent(_calls("wait"), name="waits", tools=[wait]),
    "parent": _parent,
    "speaks": lambda: Agent(Clock(), name="speaks"),
}


async def _serve(store: str, engine: str, agent: str) -> None:
    worker = Worker([AGENTS[agent]()], store, engine=getattr(engines, engine))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
    await worker.serve(grace_s=0)


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[1:]))
