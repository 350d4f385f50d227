"""Contract 5: what is reported is the sum of what every server said, whoever asked, for whatever.

Helpers and their helpers, summaries, repairs of answers, turns asked again, calls that broke off,
children that failed or were stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from graphloop import Agent, Compaction, Tool
from graphloop.providers.base import StreamItem, TextDelta, UsageSoFar
from graphloop.replay import replay
from graphloop.stores.memory import MemoryStore
from graphloop.tools.schema import parameters_of
from graphloop.values import FinishReason, ModelRequest, Reply, Usage, evolve
from tests.agents import any_read
from tests.sizes import sized
from tests.strategies import call, reply

PARAMETERS = parameters_of({"type": "object"}, "every tool")
PROMPT = '{"prompt": "help"}'


@dataclass(frozen=True)
class Breaks:
    """A reply that breaks off after its server has said what it cost until then."""

    spent: Usage


@dataclass
class Bill:
    """What all servers together have said."""

    usage: Usage = Usage()
    calls: int = 0
    lines: list[Usage] = field(default_factory=list[Usage])

    def add(self, usage: Usage) -> None:
        """Note what one call has used."""
        self.usage += usage
        self.calls += 1
        self.lines.append(usage)


class MeteredModel:
    """Says its lines in order, and bills each."""

    def __init__(self, label: str, script: Sequence[Reply | Breaks], bill: Bill) -> None:
        self.label = label
        self._lines = [*script, *[reply('{"n": 1}')] * 60]
        self._bill = bill
        self._said = 0

    def session(self) -> MeteredModel:
        """Return itself: the lines go on."""
        return self

    async def aclose(self) -> None:
        """Do nothing."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Say the next line, or break off in it."""
        said = self._lines[self._said]
        self._said += 1
        yield TextDelta("…")
        if isinstance(said, Breaks):
            self._bill.add(said.spent)
            yield UsageSoFar(said.spent)
            raise ConnectionError("line")
        usage = Usage(200 * self._said, self._said, self._said % 3, 1, 0, self._said % 2)
        self._bill.add(usage)
        yield evolve(said, usage=usage)


class Number(BaseModel):
    """The form of the answer."""

    n: int


def price(said: Reply) -> float:
    """Return what a reply costs."""
    return float(said.usage.input_tokens)


lines: st.SearchStrategy[Reply | Breaks] = st.one_of(
    st.sampled_from(
        [
            reply("not a number"),
            reply('{"n": 1}'),
            reply(call()),
            reply(call(), call("read")),
            reply(call("helper", "", PROMPT), call("helper", "", PROMPT)),
            reply(call("helper", "", PROMPT), call()),
            reply("half", call(arguments="{"), finish=FinishReason.LENGTH),
            reply(finish=FinishReason.PAUSE),
            reply(),
            reply("full", finish=FinishReason.CONTEXT_WINDOW),
            reply("no", finish=FinishReason.REFUSAL),
        ]
    ),
    st.builds(Breaks, st.builds(Usage, st.integers(1, 9), st.integers(0, 9))),
)


@settings(max_examples=sized(20))
@given(
    top=st.lists(lines, max_size=5),
    below=st.lists(lines, max_size=3),
    bottom=st.lists(lines, max_size=2),
    short=st.booleans(),
    typed=st.booleans(),
)
@example(
    top=[reply(call("helper", "", PROMPT))],
    below=[reply(call("helper", "", PROMPT))],
    bottom=[Breaks(Usage(7, 3))],
    short=False,
    typed=True,
)
@example(top=[reply(call())] * 4, below=[], bottom=[], short=True, typed=False)
@example(top=[reply("not a number")] * 2, below=[], bottom=[], short=False, typed=True)
def test_the_total_is_the_sum_of_every_bill(
    top: list[Reply | Breaks],
    below: list[Reply | Breaks],
    bottom: list[Reply | Breaks],
    short: bool,
    typed: bool,
) -> None:
    """Whoever pays by the total must not pay for more, and never for less, than was used."""
    bill, store = Bill(), MemoryStore()
    read = Tool(name="read", parameters=PARAMETERS, execute=any_read)
    low = Agent(MeteredModel("bottom", bottom, bill), tools=[read], max_steps=3, price=price)
    middle = Agent(
        MeteredModel("middle", below, bill),
        tools=[read, low.as_tool(name="helper", description="Helps.")],
        max_steps=4,
        price=price,
    )
    agent: Agent[None, Any] = Agent(
        MeteredModel("top", top, bill),
        tools=[read, middle.as_tool(name="helper", description="Helps.")],
        max_steps=6,
        compaction=Compaction(context_window=1_000, keep_recent_turns=1) if short else None,
        store=store,
        price=price,
    )
    if typed:
        agent = agent.with_options(output_type=Number, output_mode="native")

    asyncio.run(agent.stream("go", run_id="r").consume())

    run = replay(agent.graph, asyncio.run(store.load("r")))
    assert run.ended
    assert bill.usage == run.spent.usage
    assert bill.calls == run.spent.model_calls
    assert sum(one.input_tokens for one in bill.lines) == run.spent.cost_usd


@settings(max_examples=sized(12))
@given(top=st.lists(lines, max_size=5), below=st.lists(lines, max_size=3), at=st.integers(0, 30))
def test_what_was_used_before_an_abort_is_paid_for(
    top: list[Reply | Breaks], below: list[Reply | Breaks], at: int
) -> None:
    """A stop button stops the run, not the bill: children that were stopped are on it."""
    bill, store = Bill(), MemoryStore()
    read = Tool(name="read", parameters=PARAMETERS, execute=any_read)
    helper = Agent(MeteredModel("below", below, bill), tools=[read], max_steps=3)
    agent: Agent[None, Any] = Agent(
        MeteredModel("top", top, bill),
        tools=[read, helper.as_tool(name="helper", description="Helps.")],
        max_steps=5,
        store=store,
    )

    async def watch() -> None:
        stream = agent.stream("go", run_id="r")
        seen = 0
        async for _ in stream.full_stream:
            if seen == at:
                stream.abort("enough")
            seen += 1

    asyncio.run(watch())

    run = replay(agent.graph, asyncio.run(store.load("r")))
    # What was said in full and not yet heard when the run was stopped is lost with its listener.
    unheard = bill.calls - (run.spent.model_calls - run.spent.unreported_calls)
    assert 0 <= unheard <= 2
    if not unheard:
        assert bill.usage == run.spent.usage
