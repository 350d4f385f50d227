"""Deltas of a model in this process: the cost of each on its way to the reader of `full_stream`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import final

from graphloop import Agent, FinishReason, Usage
from graphloop.providers.base import Delta, TextDelta
from graphloop.values import AssistantMessage, ModelRequest, Reply, TextPart

from .measure import Prepare, Row, Spread, Work, at_most, interleaved, ratios
from .sizes import Sizes

__all__ = ["rows"]

BENCH = "deltas"
DELTA_MAX = 4.5


def rows(sizes: Sizes) -> list[Row]:
    """Measure an answer of many deltas, read from the run and from a bare generator."""
    model = _TalkingModel(sizes.live_deltas)
    contenders: dict[str, Prepare] = {
        "engine": lambda: _engine(model),
        "bare": lambda: _bare(model),
    }
    costs = asyncio.run(interleaved(contenders, sizes.rounds))
    mine, floor = (
        Spread.of([cost.cpu_s / sizes.live_deltas * 1e6 for cost in costs[name]])
        for name in ("engine", "bare")
    )
    note = f"{mine.median:.2f} over {floor.median:.2f} µs"
    what = f"a delta of {sizes.live_deltas:,}: full_stream over a bare generator"
    return [at_most(BENCH, what, ratios(costs["engine"], costs["bare"]), DELTA_MAX, "x", note)]


@final
class _TalkingModel:
    """A model that gives each run the same answer, word by word, without waiting."""

    label = "talking"

    def __init__(self, deltas: int) -> None:
        self.words = ["word "] * deltas
        answer = AssistantMessage((TextPart("".join(self.words)),))
        self.reply = Reply(answer, FinishReason.STOP, Usage(10, 5))

    def session(self) -> _TalkingModel:
        """Return the model itself: it remembers nothing of a run."""
        return self

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:  # noqa: ARG002 - the seam
        """Yield the deltas, then the reply."""
        for word in self.words:
            yield TextDelta(word)
        yield self.reply

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""


def _engine(model: _TalkingModel) -> Work:
    agent = Agent(model)

    async def work() -> None:
        stream = agent.stream("x").full_stream
        texts = [part.text async for part in stream if isinstance(part, TextDelta)]
        assert texts == model.words, "every delta has its part"

    return work


def _bare(model: _TalkingModel) -> Work:
    async def work() -> None:
        stream = model.stream(ModelRequest(()))
        texts = [item.text async for item in stream if isinstance(item, TextDelta)]
        assert texts == model.words, "every delta comes"

    return work
