"""Peers: the same scripted turn through graphloop and other engines that are installed.

    pip install 'graphloop[bench]'
    python -m bench.peers             print the table
    python -m bench.peers --write     and write it into docs/performance.md

A turn is a reply with one call of an async `add`, and its result. Models answer from a script, so
what is measured is the engine. A peer that is not installed is named as such.
"""

from __future__ import annotations

import argparse
import asyncio
import operator
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from typing_extensions import TypedDict

from graphloop import Agent
from graphloop.testing import ScriptedModel

from .chart import Line, chart
from .floors import raw_loop, raw_replies
from .measure import Prepare, interleaved
from .replies import add, replies
from .report import replaced, where

__all__ = ["CONTENDERS", "Contender", "Measured", "main", "table"]

PROJECT: Final = Path(__file__).parent.parent
PAGE: Final = PROJECT / "docs" / "performance.md"
CHART: Final = PROJECT / "docs" / "cost-per-turn.svg"
FLOOR: Final = "raw loop"

Foreign: TypeAlias = Any
"""A value of a peer, whose types a checker knows only where the peer is installed."""

Run: TypeAlias = Callable[[], Awaitable[int]]
"""Runs a script to its end and returns how many results of tools there are."""


@dataclass(frozen=True, slots=True)
class Contender:
    """An engine that runs the script.

    Args:
        name: its name in the table.
        package: the distribution that it comes from; empty for what is always here.
        make: makes a run of so many turns, unmeasured.
        turns: the numbers of turns that are measured: fewer where a turn grows dear.
    """

    name: str
    package: str
    make: Callable[[int], Run]
    turns: tuple[int, ...] = (50, 200, 800)


@dataclass(frozen=True, slots=True)
class Measured:
    """The processor time of a turn in µs, by the number of turns; None if it is not installed."""

    name: str
    version: str
    turn_us: Mapping[int, float] | None


def main(arguments: Sequence[str]) -> None:
    """Measure, print the table, and write it if that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description="Measure peers.")
    parser.add_argument("--write", action="store_true", help="write the page and the chart")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured")
    asked = parser.parse_args(arguments)
    found = asyncio.run(measured(CONTENDERS, asked.rounds))
    page = f"{where()}\n\n{table(found)}"
    print(page)
    if asked.write:
        text = replaced(PAGE.read_text(encoding="utf-8"), page, "peers")
        PAGE.write_text(text, encoding="utf-8")
        lines = [Line(one.name, one.turn_us) for one in found if one.turn_us]
        CHART.write_text(chart("Processor time of a turn, µs", lines), encoding="utf-8")


async def measured(contenders: Sequence[Contender], rounds: int) -> list[Measured]:
    """Return the least cost of each contender; those of one length alternate."""
    here = {one.name: _version(one.package) for one in contenders}
    costs: dict[str, dict[int, float]] = {one.name: {} for one in contenders}
    for turns in sorted({turns for one in contenders for turns in one.turns}):
        racing = [one for one in contenders if turns in one.turns and here[one.name] is not None]
        found = await interleaved({one.name: _prepared(one, turns) for one in racing}, rounds)
        for name, spent in found.items():
            longest = next(one.turns[-1] for one in racing if one.name == name)
            costs[name][turns] = min(cost.cpu_s for cost in spent) / longest * 1e6
    return [Measured(one.name, here[one.name] or "", costs[one.name] or None) for one in contenders]


def _prepared(contender: Contender, turns: int) -> Prepare:
    """Return runs of one length that have as many turns together as the longest run."""

    def prepare() -> Callable[[], Awaitable[object]]:
        runs = [contender.make(turns) for _ in range(contender.turns[-1] // turns)]

        async def work() -> None:
            for run in runs:
                results = await run()
                assert results == turns, f"{contender.name}: {results} results of {turns}"

        return work

    return prepare


def _version(package: str) -> str | None:
    """Return the version of a distribution; None if it is not installed."""
    try:
        return version(package) if package else ""
    except PackageNotFoundError:
        return None


def table(found: Sequence[Measured]) -> str:
    """Return the costs as a Markdown table, as µs and as multiples of the raw loop's."""
    lengths = sorted({turns for one in found for turns in one.turn_us or ()})
    floor = next(one.turn_us for one in found if one.name == FLOOR) or {}
    lines = [
        ("engine", *[f"N = {turns}" for turns in lengths]),
        ("---",) * (len(lengths) + 1),
    ]
    for one in found:
        title = f"{one.name} {one.version}".strip()
        if one.turn_us is None:
            lines.append((title, *["not installed"] * len(lengths)))
            continue
        costs = one.turn_us
        cells = [
            f"{costs[turns]:,.0f} µs, {costs[turns] / floor[turns]:,.0f} x"
            if turns in costs
            else ""
            for turns in lengths
        ]
        lines.append((title, *cells))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


async def _add(a: int, b: int) -> int:
    return a + b


def _raw(turns: int) -> Run:
    script, results = raw_replies(turns), list[int]()

    async def model(asked: int) -> dict[str, object]:
        return script[asked]

    async def counted(a: int, b: int) -> int:
        results.append(await _add(a, b))
        return results[-1]

    async def run() -> int:
        await raw_loop(model, counted)
        return len(results)

    return run


def _graphloop(turns: int) -> Run:
    agent = Agent(ScriptedModel(replies(turns)), tools=[add], max_steps=turns + 1)

    async def run() -> int:
        result = await agent.generate("x")
        return sum(len(step.tool_results) for step in result.steps)

    return run


class _Messages(TypedDict):
    """The state of a LangGraph: a list that grows by what nodes return."""

    messages: Annotated[list[Any], operator.add]


async def _results(reply: Mapping[str, Any]) -> list[dict[str, object]]:
    """Return the results of a raw reply's calls, as a careful person writes them."""
    json = import_module("json")
    found: list[dict[str, object]] = []
    for call in reply["tool_calls"]:
        value = await _add(**json.loads(call["arguments"]))
        found.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(value)})
    return found


def _is_result(message: Mapping[str, Any]) -> bool:
    return bool(message["role"] == "tool")


def _langgraph(turns: int) -> Run:
    graphs = import_module("langgraph.graph")
    script = iter(raw_replies(turns))

    async def model(_: _Messages) -> dict[str, object]:
        return {"messages": [next(script)]}

    async def tools(state: _Messages) -> dict[str, object]:
        return {"messages": await _results(state["messages"][-1])}

    def route(state: _Messages) -> str:
        return "tools" if state["messages"][-1].get("tool_calls") else "end"

    graph = graphs.StateGraph(_Messages)
    graph.add_node("model", model)
    graph.add_node("tools", tools)
    graph.add_edge(graphs.START, "model")
    graph.add_conditional_edges("model", route, {"tools": "tools", "end": graphs.END})
    graph.add_edge("tools", "model")
    app = graph.compile()

    async def run() -> int:
        question = {"messages": [{"role": "user", "content": "x"}]}
        state = await app.ainvoke(question, {"recursion_limit": 2 * turns + 10})
        return sum(map(_is_result, state["messages"]))

    return run


def _pydantic_graph(turns: int) -> Run:
    graphs = import_module("pydantic_graph")
    script = iter(raw_replies(turns))
    builder = graphs.GraphBuilder(state_type=list, output_type=int, auto_instrument=False)

    async def model(context: Foreign) -> dict[str, object]:
        context.state.append(next(script))
        return dict(context.state[-1])

    async def tools(context: Foreign) -> None:
        context.state.extend(await _results(context.inputs))

    async def end(context: Foreign) -> int:
        return sum(map(_is_result, context.state))

    asks, calls, ends = (builder.step(one, node_id=one.__name__) for one in (model, tools, end))
    decision = builder.decision()
    decision = decision.branch(builder.match(dict, matches=_calls_tools).to(calls))
    decision = decision.branch(builder.match(dict).to(ends))
    builder.add(
        builder.edge_from(builder.start_node).to(asks),
        builder.edge_from(asks).to(decision),
        builder.edge_from(calls).to(asks),
        builder.edge_from(ends).to(builder.end_node),
    )
    graph = builder.build()

    async def run() -> int:
        return int(await graph.run(state=[{"role": "user", "content": "x"}]))

    return run


def _calls_tools(reply: Mapping[str, Any]) -> bool:
    return bool(reply.get("tool_calls"))


def _burr(turns: int) -> Run:
    core = import_module("burr.core")
    script = iter(raw_replies(turns))

    @core.action(reads=["messages"], writes=["messages", "calls"])  # type: ignore[untyped-decorator]
    async def model(state: Foreign) -> Foreign:
        reply = next(script)
        return state.append(messages=reply).update(calls=_calls_tools(reply))

    @core.action(reads=["messages"], writes=["messages"])  # type: ignore[untyped-decorator]
    async def tools(state: Foreign) -> Foreign:
        return state.extend(messages=await _results(state["messages"][-1]))

    @core.action(reads=["messages"], writes=[])  # type: ignore[untyped-decorator]
    async def end(state: Foreign) -> Foreign:
        return state

    async def run() -> int:
        # An application ends once, so making one is part of a run.
        built = core.ApplicationBuilder().with_actions(model=model, tools=tools, end=end)
        built = built.with_transitions(
            ("model", "tools", core.when(calls=True)),
            ("model", "end", core.default),
            ("tools", "model", core.default),
        )
        built = built.with_state(messages=[{"role": "user", "content": "x"}], calls=False)
        app = built.with_entrypoint("model").build()
        _, _, state = await app.arun(halt_after=["end"])
        return sum(map(_is_result, state["messages"]))

    return run


def _arguments(turns: int) -> Iterator[tuple[str, str]]:
    """Yield the id and the arguments of the call of each turn."""
    for turn in range(turns):
        yield f"call_{turn}", f'{{"a":{turn},"b":0}}'


def _pydantic_ai(turns: int) -> Run:
    ai, messages = import_module("pydantic_ai"), import_module("pydantic_ai.messages")
    calls = [
        messages.ModelResponse([messages.ToolCallPart("add", text, call_id)])
        for call_id, text in _arguments(turns)
    ]
    script = iter([*calls, messages.ModelResponse([messages.TextPart("done")])])

    def answer(_: Foreign, __: Foreign) -> Foreign:
        return next(script)

    model = import_module("pydantic_ai.models.function").FunctionModel(answer)
    agent = ai.Agent(model)

    @agent.tool_plain(name="add")  # type: ignore[untyped-decorator]
    async def _(a: int, b: int) -> int:
        return await _add(a, b)

    async def run() -> int:
        limits = ai.UsageLimits(request_limit=None)
        result = await agent.run("x", usage_limits=limits)
        parts = [part for message in result.all_messages() for part in message.parts]
        return sum(isinstance(part, messages.ToolReturnPart) for part in parts)

    return run


def _openai_agents(turns: int) -> Run:
    agents, wire = import_module("agents"), import_module("openai.types.responses")
    answer = wire.ResponseOutputText(text="done", type="output_text", annotations=[])
    last = wire.ResponseOutputMessage(
        id="end", content=[answer], role="assistant", status="completed", type="message"
    )
    outputs = [
        wire.ResponseFunctionToolCall(
            call_id=call_id, name="add", arguments=text, type="function_call"
        )
        for call_id, text in _arguments(turns)
    ]
    script = iter([*outputs, last])

    async def respond(*_: object, **__: object) -> Foreign:
        return agents.ModelResponse([next(script)], agents.Usage(), response_id=None)

    model = type("Scripted", (agents.Model,), {"get_response": respond, "stream_response": respond})
    tool = agents.function_tool(_add, name_override="add")
    agent = agents.Agent(name="peer", model=model(), tools=[tool])
    config = agents.RunConfig(tracing_disabled=True)

    async def run() -> int:
        result = await agents.Runner.run(agent, "x", max_turns=turns + 2, run_config=config)
        return sum(item.type == "tool_call_output_item" for item in result.new_items)

    return run


SLOW: Final = (50, 200)
CONTENDERS: Final = (
    Contender(FLOOR, "", _raw),
    Contender("graphloop", "", _graphloop),
    Contender("pydantic-graph", "pydantic-graph", _pydantic_graph),
    Contender("LangGraph", "langgraph", _langgraph),
    Contender("Burr", "burr", _burr, SLOW),
    Contender("pydantic-ai", "pydantic-ai-slim", _pydantic_ai, SLOW),
    Contender("openai-agents", "openai-agents", _openai_agents, SLOW),
)


if __name__ == "__main__":
    main(sys.argv[1:])
