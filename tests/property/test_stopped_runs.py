"""A run that was stopped starts nothing, and nothing that started is started again (GL13).

Held on tables whose `Aborted` rows lead anywhere: through the kernel, through a graph that runs in
one process, and through a journal that ends behind the stop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from types import EllipsisType
from typing import Any, Final

from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphloop import EndReason, RunResult, Tool
from graphloop.agent.graph import Graph
from graphloop.effects import CallModel, CallTool, CheckCalls, Effect, StartRun
from graphloop.errors import GraphError
from graphloop.events import (
    CallCheck,
    CallsChecked,
    Cancelled,
    Event,
    ModelReplied,
    Started,
    ToolReturned,
)
from graphloop.graph import END
from graphloop.graph import NodeGraph as StaticGraph
from graphloop.node_protocol import Node
from graphloop.nodes import Append, Execute, Gate, ModelCall, PrepareStep
from graphloop.outcomes import Aborted, ApprovalNeeded, Calls, Done, Outcome, Ready, Settled
from graphloop.proofs.calls import CallProduct, find_call_faults
from graphloop.proofs.checking import check
from graphloop.proofs.proof_graph import ProofGraph
from graphloop.proofs.report import Finding
from graphloop.replay import replay_steps
from graphloop.run import Run
from graphloop.step import begin, step
from graphloop.stores.jsonl import JsonlStore
from graphloop.testing import ScriptedModel
from graphloop.testing.choices import Choices
from graphloop.testing.fuzzing import Fuzzer, fuzz
from graphloop.values import Reply, ToolResult, call_key
from tests.sizes import sized
from tests.strategies import QUESTION, call, reply, setup
from tests.varied_graphs import Varied, seeded, varied

WORLDS: Final = 2
"""In how many worlds each graph runs, to be stopped behind each of its events."""


def led_back() -> Graph[None]:
    """Return a loop whose aborted calls are led past a second gate to a second execute."""
    prepare, model, append = PrepareStep(), ModelCall(), Append()
    gate, execute = Gate(), Execute()
    gate2, execute2 = Gate("gate2"), Execute("execute2")
    return Graph(
        "led-back",
        prepare,
        {
            prepare: {Calls: gate, Ready: model, ...: END},
            model: {Calls: gate, ...: append},
            gate: {Settled: execute, ...: append},
            execute: {Done: append, ApprovalNeeded: gate, Aborted: gate2},
            gate2: {Settled: execute2, ...: append},
            execute2: {...: append},
            append: {...: END},
        },
    )


def calls_in(effects: tuple[Effect, ...]) -> list[str]:
    """Return the keys of the calls that are started."""
    return [one.key for one in effects if isinstance(one, CallTool | StartRun)]


def results_in(run: Run[Any]) -> list[tuple[str, str]]:
    """Return the key and the status of each result of a conversation."""
    return [(one.key, one.status) for one in run.messages if isinstance(one, ToolResult)]


def answer(run: Run[Any], effect: Effect, reply_: Reply) -> Event:
    """Return what an effect of the table is answered by."""
    match effect:
        case CallModel(id=number):
            return ModelReplied(run.at, number, reply_)
        case CheckCalls(id=number, calls=calls):
            return CallsChecked(run.at, number, (CallCheck(),) * len(calls))
        case _:
            return ToolReturned(run.at, effect.id, "fine")


def test_no_table_starts_a_call_again_that_may_have_started() -> None:
    """Its result says that it may have run; the calls that waited did not run."""
    graph = led_back()
    taken = begin(graph, Started(0.0, "r", graph.name, QUESTION, setup()), None)
    while not calls_in(taken.effects):
        event = answer(taken.run, taken.effects[0], reply(*[call()] * 7))
        taken = step(graph, taken.run, event)
    first, second = taken.effects[:2]
    assert [f"c0.{place}" for place in range(5)] == calls_in(taken.effects)
    taken = step(graph, taken.run, ToolReturned(1.0, first.id, "fine"))
    assert ["c0.5"] == calls_in(taken.effects)

    stopped = step(graph, taken.run, Cancelled(2.0, unstarted=(second.id,)))

    assert ((), True) == (stopped.effects, stopped.run.ended)
    expected = ["ok", "not_run", *["unknown"] * 4, "not_run"]
    assert expected == [status for _, status in results_in(stopped.run)]


class Slow:
    """A tool that counts its runs, and hangs."""

    def __init__(self) -> None:
        self.runs = 0
        self.under_way = asyncio.Event()

    async def __call__(self, arguments: dict[str, object]) -> str:
        """Hang."""
        self.runs += 1
        self.under_way.set()
        await asyncio.Event().wait()
        return "never"


async def aborted(tool: Slow, store: JsonlStore) -> RunResult:
    """Run the table until its tool runs, and stop it there."""
    slow = Tool(name="read", parameters={"type": "object"}, execute=tool)
    stream = led_back().stream(
        None,
        model=ScriptedModel([reply(call())]),
        prompt="go",
        tools=[slow],
        store=store,
        run_id="r",
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(stream.result())
        await tool.under_way.wait()
        stream.abort("enough")
    return running.result()


def test_a_tool_that_was_stopped_runs_once_in_one_process(tmp_path: Path) -> None:
    """The caller is told that it may have run."""
    tool = Slow()

    result = asyncio.run(aborted(tool, JsonlStore(tmp_path)))

    assert (1, EndReason.ABORTED) == (tool.runs, result.end_reason)
    assert [("c0.0", "unknown")] == [(one.key, one.status) for one in result.steps[0].tool_results]


def cut_behind_the_stop(directory: Path) -> None:
    """Leave of the one journal what was written when the run was stopped."""
    (journal,) = directory.glob("*.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    stop = next(at for at, line in enumerate(lines) if b'"Cancelled"' in line)
    journal.write_bytes(b"".join(lines[: stop + 1]))


async def test_a_stopped_tool_runs_once_though_its_process_died_at_the_stop(
    tmp_path: Path,
) -> None:
    """The journal ends with the stop; another process that resumes it starts nothing."""

    await aborted(Slow(), JsonlStore(tmp_path))
    cut_behind_the_stop(tmp_path)
    tool = Slow()
    slow = Tool(name="read", parameters={"type": "object"}, execute=tool)
    result = await led_back().resume(
        "r", model=ScriptedModel([]), tools=[slow], store=JsonlStore(tmp_path)
    )
    runs = tool.runs

    assert (0, EndReason.ABORTED) == (runs, result.end_reason)
    assert [("c0.0", "unknown")] == [(one.key, one.status) for one in result.steps[0].tool_results]


def led_anywhere(made: Varied, rng: Random) -> StaticGraph[None]:
    """Return the graph with each `Aborted` row led anywhere."""
    graph = made.graph
    targets = (*graph.nodes.values(), END)
    edges: dict[Node[None, Outcome], dict[type[Outcome] | EllipsisType, Any]] = {}
    for name, row in graph.table.items():
        led = edges[graph.nodes[name]] = {}
        for outcome, target in row.items():
            led[outcome] = END if target == "END" else graph.nodes[target]
        if Aborted in row:
            led[Aborted] = rng.choice(targets)
    return StaticGraph(graph.name, graph.nodes[graph.start], edges)


def stops(run: Run[Any], rng: Random) -> Iterator[Cancelled]:
    """Yield stops of a run: all of its effects have started, none has, or some."""
    calls = [at for at, one in run.pending.items() if isinstance(one, CallTool | StartRun)]
    some = tuple([at for at in calls if rng.random() < 0.5])
    for unstarted in dict.fromkeys(((), tuple(calls), some)):
        yield Cancelled(run.at, "enough", unstarted=unstarted, timeout=rng.random() < 0.2)


def started_by(run: Run[Any], stop: Cancelled) -> set[str]:
    """Return the keys of the calls of the turn that may have started as a run is stopped."""
    return {
        one.key
        for at, one in run.pending.items()
        if at not in stop.unstarted and isinstance(one, CallTool | StartRun)
        if run.turn.has_call(one.key)
    }


def is_passed(graph: StaticGraph[Any]) -> bool:
    """Whether a check finds nothing; it stops at the usual fault, for a whole check is dear."""
    misled = find_call_faults(CallProduct(ProofGraph(graph)))
    if any(isinstance(one, Finding) and one.severity == "error" for one in misled):
        return False
    return check(graph).ok


def assert_stops(
    graph: StaticGraph[Any], run: Run[Any], stop: Cancelled, passes: Callable[[], bool]
) -> None:
    """Assert that a stopped run starts nothing, and ends; `passes` tells what the check says."""
    started = started_by(run, stop)
    try:
        taken = step(graph, run, stop)
    except GraphError:
        # A table may lead to a model without a turn: a finding, not a run.
        assert not passes()
        return
    ending = EndReason.TIMEOUT if stop.timeout else EndReason.ABORTED
    assert ((), True) == (taken.effects, taken.run.ended)
    assert taken.run.ending is not None
    assert ending is taken.run.ending.reason
    told = dict(results_in(taken.run)[len(results_in(run)) :])
    assert all(told.get(key, "unknown") == "unknown" for key in started), told


def assert_all_stops(seed: int) -> int:
    """Assert the property of one graph behind every event; return at how many moments."""
    rng = seeded(seed)
    made = varied(rng, wild=rng.random() < 0.5)
    graph = led_anywhere(made, rng)
    passes = cache(lambda: is_passed(graph))
    fuzzer, moments = Fuzzer(replace(made.subject, graph=graph)), 0
    for world in range(seed, seed + WORLDS):
        trial, _ = fuzzer.tried(Choices.seeded(world))
        started = Counter[str]()
        with suppress(GraphError):  # As above: such a trial is over where its graph is broken.
            for taken in replay_steps(graph, trial.events):
                run = taken.run
                allowed = {call_key(run.turn.number, place) for place in run.turn.again}
                started.update(one for one in calls_in(taken.effects) if one not in allowed)
                assert not [key for key, times in started.items() if times > 1]
                for stop in () if run.ended else stops(run, rng):
                    assert_stops(graph, run, stop, passes)
                    moments += 1
    return moments


@example(seed=0)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=sized(12, 2_000), deadline=None)
def test_a_stopped_run_starts_nothing_at_any_moment_of_any_table(seed: int) -> None:
    """Nothing is issued after a stop, and nothing that was issued is issued again."""
    assert_all_stops(seed)


def test_the_table_that_leads_aborted_calls_back_is_proven() -> None:
    """The kernel keeps what no table can break."""
    report = check(led_back())

    assert () == report.findings
    assert "GL13" in report.proven


def test_the_fuzzer_finds_nothing_in_the_table_that_is_proven() -> None:
    """The two agree."""
    assert () == fuzz(led_back(), seeds=60).failing
