"""Streaming over the loopback: what each text delta costs on its way from the socket to the user.

The floor reads the same bytes with httpx and jiter, and keeps the text. The server is a process of
its own, and its answers are ready before they are asked for.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from graphloop import stream_chat
from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.base import TextDelta, Wire
from graphloop.providers.http import Endpoint, HttpProvider
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.values import ModelRequest, UserMessage

from . import server
from .floors import TextOf, anthropic_text, chat_text, raw_stream
from .measure import Cost, Row, Spread, Work, at_most, interleaved, ratios
from .sizes import Sizes

__all__ = ["rows"]

BENCH = "stream"
SESSION_MAX = 1.15
END_TO_END_MAX = 1.5
OVER_SESSION_MAX = 1.6
CUTS = {"events": "an event a chunk", "pieces": "16 KiB chunks"}
WIRES: tuple[tuple[Wire, TextOf], ...] = (
    (OpenAIChat("bench"), chat_text),
    (AnthropicMessages("bench"), anthropic_text),
)


def rows(sizes: Sizes) -> list[Row]:
    """Measure both wires, each with small and with large HTTP chunks."""
    return asyncio.run(_rows(sizes))


async def _rows(sizes: Sizes) -> list[Row]:
    found: list[Row] = []
    with _server(sizes.deltas) as url:
        for wire, text_of in WIRES:
            for cut, how in CUTS.items():
                async with _contest(wire, text_of, f"{url}/{cut}", sizes.deltas) as contest:
                    contenders = {
                        "floor": lambda: contest.floor,
                        "session": lambda: contest.session,
                        "texts": lambda: contest.texts,
                    }
                    costs = await interleaved(contenders, sizes.rounds)
                what = f"{wire.name}, {how}"
                found += [
                    _row(f"{what}: session over floor", costs, "session", SESSION_MAX, sizes),
                    _row(f"{what}: text_stream over floor", costs, "texts", END_TO_END_MAX, sizes),
                ]
                if cut == "pieces":
                    over = ratios(costs["texts"], costs["session"])
                    title = f"{what}: text_stream over session"
                    found.append(at_most(BENCH, title, over, OVER_SESSION_MAX, "x"))
    return found


def _row(
    what: str, costs: dict[str, tuple[Cost, ...]], name: str, limit: float, sizes: Sizes
) -> Row:
    mine, floor = (
        Spread.of([cost.cpu_s / sizes.deltas * 1e6 for cost in costs[one]])
        for one in (name, "floor")
    )
    wall = ratios(costs[name], costs["floor"], "wall_s").median
    note = f"{mine.median:.2f} over {floor.median:.2f} µs a delta, wall {wall:.2f} x"
    return at_most(BENCH, what, ratios(costs[name], costs["floor"]), limit, "x", note)


@dataclass(frozen=True, slots=True)
class _Contest:
    """Three ways to read one answer."""

    floor: Work
    session: Work
    texts: Work


@asynccontextmanager
async def _contest(
    wire: Wire, text_of: TextOf, base_url: str, deltas: int
) -> AsyncGenerator[_Contest, None]:
    provider = HttpProvider(wire, Endpoint(base_url, "key"))
    request = ModelRequest((UserMessage("x"),))
    body = b"".join(wire.encoder().encode(request))
    length = deltas * len(server.WORD)

    async with httpx.AsyncClient(timeout=60) as client:

        async def floor() -> None:
            text = await raw_stream(client, base_url + wire.path, body, text_of)
            assert len(text) == length, "the floor reads the whole answer"

        async def session() -> None:
            heard = 0
            async for item in provider.session().stream(request):
                if isinstance(item, TextDelta):
                    heard += len(item.text)
            assert heard == length, "the session reads the whole answer"

        async def texts() -> None:
            heard = 0
            async for text in stream_chat(provider, "x").text_stream:
                heard += len(text)
            assert heard == length, "the user hears the whole answer"

        yield _Contest(floor, session, texts)
    await provider.aclose()


@contextmanager
def _server(deltas: int) -> Generator[str, None, None]:
    """Serve answers of so many deltas from another process; give its URL."""
    assert server.__file__ is not None
    command = [sys.executable, str(Path(server.__file__)), str(deltas)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()
