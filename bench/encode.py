"""Requests: what it costs to encode one more turn, however long the run is already."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.base import Wire
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.run import History
from graphloop.values import (
    AssistantMessage,
    Message,
    ModelRequest,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)

from .measure import Row, Spread, at_most
from .replies import add
from .sizes import Sizes

__all__ = ["rows"]

BENCH = "encode"
GROWTH_MAX = 1.2
WIRES: tuple[Callable[[], Wire], ...] = (
    lambda: OpenAIChat("bench"),
    lambda: AnthropicMessages("bench"),
)


def rows(sizes: Sizes) -> list[Row]:
    """Measure both wires."""
    return [row for make in WIRES for row in _rows(make(), sizes)]


def _rows(wire: Wire, sizes: Sizes) -> list[Row]:
    short, _, long = sizes.turns
    requests = _requests(long, sizes.result_chars)
    _grow(wire, requests[:short])
    first: list[float] = []
    last: list[float] = []
    shorts: list[float] = []
    longs: list[float] = []
    joins: list[float] = []
    body = b""
    for _ in range(sizes.rounds):
        took, parts = _grow(wire, requests)
        first.append(sum(took[:short]) / short)
        last.append(sum(took[-short:]) / short)
        longs.append(sum(took) / long)
        shorts.append(sum(_grow(wire, requests[:short])[0]) / short)
        start = process_time()
        body = b"".join(parts)
        joins.append(process_time() - start)
    window = _us_note(last, first)
    average = _us_note(longs, shorts)
    grown, whole = _over(last, first), _over(longs, shorts)
    near = f"{wire.name}: a turn at {long} over one at {short}"
    mean = f"{wire.name}: a turn of a run of {long} over one of {short}"
    join_us = Spread.of([one * 1e6 for one in joins])
    return [
        at_most(BENCH, near, grown, GROWTH_MAX, "x", window),
        at_most(BENCH, mean, whole, GROWTH_MAX, "x", average),
        Row(
            BENCH,
            f"{wire.name}: joining the body at {long} turns",
            f"{join_us} µs; {len(body):,} bytes, copied once a request",
        ),
    ]


def _over(engine: list[float], floor: list[float]) -> Spread:
    return Spread.of([mine / raw for mine, raw in zip(engine, floor, strict=True)])


def _us_note(engine: list[float], floor: list[float]) -> str:
    mine, raw = Spread.of(engine), Spread.of(floor)
    return f"{mine.median * 1e6:.1f} over {raw.median * 1e6:.1f} µs"


def _grow(wire: Wire, requests: list[ModelRequest]) -> tuple[list[float], list[bytes]]:
    """Encode the requests of one run; return what each took, and the last one's parts."""
    encoder = wire.encoder()
    took: list[float] = []
    parts: list[bytes] = []
    for request in requests:
        start = process_time()
        parts = encoder.encode(request)
        took.append(process_time() - start)
    return took, parts


def _requests(turns: int, result_chars: int) -> list[ModelRequest]:
    """Return the requests of a run of `turns` turns, each with one call and its result."""
    history: History[Message] = History((UserMessage("x"),))
    requests: list[ModelRequest] = []
    for turn in range(turns):
        requests.append(ModelRequest(history, (add.spec,)))
        call = ToolCall(f"call_{turn}", "add", f'{{"a":{turn},"b":2}}')
        content = ("result " * (result_chars // 7 + 1))[:result_chars]
        history = history.append(
            AssistantMessage((TextPart("Let me look."), call)),
            ToolResult(f"c{turn}.0", call.id, call.name, content),
        )
    return requests
