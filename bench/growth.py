"""Growth: what does not run must cost nothing, however much of it there is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from graphloop import END, Agent, Graph, Tool, node, tool
from graphloop.agent import Chat
from graphloop.graph import Edges
from graphloop.outcomes import Outcome
from graphloop.run import History
from graphloop.testing import ScriptedModel

from .measure import Cost, Prepare, Row, Spread, Work, at_most, interleaved, ratios
from .replies import add, replies
from .sizes import Sizes

__all__ = ["rows"]

BENCH = "growth"
GROWTH_MAX = 1.1
TOOL_MS_MAX = 0.2
APPENDS = 20
"""How many items are appended for each tool that is defined: an append is so much cheaper."""


def rows(sizes: Sizes) -> list[Row]:
    """Measure tools that are offered, nodes that a graph has, items that a history holds."""
    definitions = [_defined_ms(sizes.definitions) for _ in range(sizes.rounds)]
    return [
        _row("tools offered", "a turn", sizes, sizes.tools, _turns, sizes.turns[1]),
        _row("nodes of a graph", "a run of one node", sizes, sizes.nodes, _runs, sizes.definitions),
        _row(
            "items of a history",
            "an append",
            sizes,
            sizes.items,
            _appends,
            sizes.definitions * APPENDS,
        ),
        _chats(sizes),
        at_most(BENCH, "@tool: a definition", Spread.of(definitions), TOOL_MS_MAX, "ms"),
    ]


def _row(
    grown: str,
    what: str,
    sizes: Sizes,
    amounts: tuple[int, int],
    make: Callable[[int, int], Work],
    times: int,
) -> Row:
    """Return the row of work that is done `times`, with many of something over with few."""
    few, many = amounts
    contenders: dict[str, Prepare] = {
        "few": lambda: make(few, times),
        "many": lambda: make(many, times),
    }
    costs = asyncio.run(interleaved(contenders, sizes.rounds))
    return _compared(f"{what}, {grown}", amounts, costs, times)


def _compared(
    title: str, amounts: tuple[int, int], costs: dict[str, tuple[Cost, ...]], times: int
) -> Row:
    few, many = amounts
    mine, floor = (
        Spread.of([cost.cpu_s / times * 1e6 for cost in costs[name]]) for name in ("many", "few")
    )
    note = f"{mine.median:.2f} over {floor.median:.2f} µs"
    what = f"{title}: {many:,} over {few:,}"
    return at_most(BENCH, what, ratios(costs["many"], costs["few"]), GROWTH_MAX, "x", note)


def _turns(tools: int, turns: int) -> Work:
    model = ScriptedModel(replies(turns))
    agent = Agent(model, tools=[add, *_tools(tools - 1)], max_steps=turns + 1)

    async def work() -> None:
        result = await agent.generate("x")
        assert len(result.steps) == turns + 1, "every turn has its record"

    return work


@cache
def _tools(number: int) -> tuple[Tool[..., object], ...]:
    return tuple([_tool(at) for at in range(number)])


def _tool(number: int) -> Tool[..., object]:
    @tool(name=f"tool_{number}")
    async def work(text: str, count: int = 1) -> str:
        """Do something with a text.

        Args:
            text: the text.
            count: how often.
        """
        return text * count

    return work


def _defined_ms(number: int) -> float:
    begun = process_time()
    for at in range(number):
        _tool(at)
    return (process_time() - begun) / number * 1000


class Stop(Outcome):
    """The run is over."""


class Go(Outcome):
    """The next node comes."""


def _runs(nodes: int, times: int) -> Work:
    graph = _graph(nodes)

    async def work() -> None:
        for _ in range(times):
            result = await graph.run(None)
            assert result.run_id, "it ran"

    return work


@cache
def _graph(number: int) -> Graph[None]:
    """Return a graph of so many nodes, the first of which ends the run."""

    async def stop(state: None) -> Stop | Go:  # noqa: ARG001 - it decides by nothing
        """End the run."""
        return Stop()

    nodes = [node(name=f"node_{at}")(stop) for at in range(number)]
    table: Edges[None] = {one: {Go: to, ...: END} for one, to in pairwise(nodes)}
    return Graph("row", nodes[0], {**table, nodes[-1]: {...: END}})


def _appends(items: int, times: int) -> Work:
    history = _history(items)

    async def work() -> None:
        longer = history
        for at in range(times):
            longer = longer.append(at)
        assert len(longer) == items + times, "every item is in it"

    return work


@cache
def _history(items: int) -> History[int]:
    return History(range(items))


def _chats(sizes: Sizes) -> Row:
    """Return the row of a question late in a chat over one early in a chat, stored in SQLite."""
    few, many = sizes.questions
    costs = asyncio.run(_asked(few, many, sizes.rounds))
    return _compared("a question, earlier ones of its chat", (few, many), costs, few)


async def _asked(few: int, many: int, rounds: int) -> dict[str, tuple[Cost, ...]]:
    model = ScriptedModel(["answer"], restart=True)
    with TemporaryDirectory() as folder:
        async with Agent(model, store=str(Path(folder) / "chats.db")) as agent:
            # An early chat grows by its round, so each round has a chat of its own.
            early = [await _chat(agent, few) for _ in range(rounds + 1)]
            late = await _chat(agent, many)
            contenders: dict[str, Prepare] = {
                "few": lambda: _questions(early.pop(), few),
                "many": lambda: _questions(late, few),
            }
            return await interleaved(contenders, rounds)


async def _chat(agent: Agent[None], questions: int) -> Chat[None]:
    chat = agent.chat()
    await _questions(chat, questions)()
    return chat


def _questions(chat: Chat[None], number: int) -> Work:
    async def work() -> None:
        for at in range(number):
            result = await chat.send(f"question {at}")
            assert result.text == "answer", "it was answered"

    return work
