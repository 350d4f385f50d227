"""Observers see every journaled step, surround effects, and cannot fail a run."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pytest

from graphloop import Agent, tool
from graphloop.driver import Observer
from graphloop.effects import CallModel, CallTool, Effect
from graphloop.errors import ConfigError
from graphloop.graph import NodeGraph
from graphloop.run import Run
from graphloop.step import Step
from graphloop.stores import MemoryStore
from graphloop.testing import ScriptedModel

HERE: ContextVar[str] = ContextVar("HERE", default="outside")


class Eye:
    """Keeps all that an observer can notice."""

    def __init__(self) -> None:
        self.seen: list[tuple[tuple[str, ...], str, int]] = []
        self.rested: list[str] = []
        self.effects: list[str] = []

    def see(self, step: Step[Any], graph: NodeGraph[Any], path: tuple[str, ...], /) -> None:
        self.seen.append((path, step.run.id, step.run.seq))

    @contextmanager
    def around(self, effect: Effect, run: Run[Any], /) -> Generator[None]:
        self.effects.append(type(effect).__name__)
        mine = isinstance(effect, CallTool | CallModel)
        token = HERE.set(effect.call.id if isinstance(effect, CallTool) else "model")
        try:
            yield
        finally:
            assert mine or HERE.get() == "model"
            HERE.reset(token)

    def rest(self, run: Run[Any], /) -> None:
        self.rested.append(run.node)


def calls(*names: str) -> dict[str, object]:
    return {"calls": [{"id": f"id-{at}", "name": name} for at, name in enumerate(names)]}


async def test_an_observer_sees_each_journaled_event_of_a_run_and_its_children() -> None:
    """A trace that lacks an event cannot equal the trace of the journal."""
    store, eye = MemoryStore(), Eye()
    child = Agent(ScriptedModel(["below"]), name="child")
    agent = Agent(
        ScriptedModel([{"calls": [{"name": "helper", "arguments": {"prompt": "x"}}]}, "done"]),
        tools=[child.as_tool(name="helper", description="Helps.")],
        store=store,
        watch=[eye],
    )

    result = await agent.generate("go", run_id="r")

    below = [(path, run_id) for path, run_id, _ in eye.seen if path]
    assert {(("c0.0",), "r/c0.0")} == {*below}
    for run_id in ("r", "r/c0.0"):
        events = await store.load(run_id)
        assert list(range(1, len(events) + 1)) == [n for _, one, n in eye.seen if one == run_id]
    assert ["END"] == eye.rested
    assert () == result.warnings


@pytest.mark.parametrize("seed", range(50))
async def test_contexts_of_parallel_tools_do_not_mix(seed: int) -> None:
    """A span of one tool below another tool's span is worse than no span."""
    found: dict[str, set[str]] = {"a": set(), "b": set(), "c": set()}

    def waiter(name: str, rounds: int) -> Any:
        async def wait() -> str:
            """Wait a few rounds of the event loop."""
            for _ in range(rounds):
                found[name].add(HERE.get())
                await asyncio.sleep(0)
            found[name].add(HERE.get())
            return name

        return tool(wait, name=name)

    tools = [waiter(name, (seed >> 2 * at) % 4) for at, name in enumerate("abc")]
    stream = Agent(
        ScriptedModel([calls("a", "b", "c"), "done"]), tools=tools, watch=[Eye()]
    ).stream("go")

    outside = {HERE.get() async for _ in stream.full_stream}

    assert {"a": {"id-0"}, "b": {"id-1"}, "c": {"id-2"}} == found
    assert {"outside"} == outside


async def test_an_observer_error_becomes_one_warning_and_never_a_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A broken exporter must not stop an agent in production."""

    class Broken:
        def see(self, step: object, graph: object, path: object, /) -> None:
            raise LookupError("bug")

        def around(self, effect: object, run: object, /) -> Any:
            raise ValueError("worse")

        def rest(self, run: object, /) -> None:
            raise asyncio.CancelledError

    @tool
    async def look() -> str:
        """Look."""
        return "seen"

    model = ScriptedModel([calls("look"), "done"])
    result = await Agent(model, tools=[look], watch=[Broken()]).generate("go")

    assert "done" == result.text
    assert (
        "`watch`: Broken.see raised LookupError: bug",
        "`watch`: Broken.around raised ValueError: worse",
    ) == result.warnings
    assert 3 == len(caplog.records)
    assert 'raise LookupError("bug")' in caplog.text


async def test_an_observer_sees_a_run_that_its_reader_leaves() -> None:
    """The events that a driver saves before it leaves are a part of the journal, too."""
    eye, store = Eye(), MemoryStore()
    stream = Agent(ScriptedModel(["done"]), watch=[eye], store=store).stream("go", run_id="r")
    async for _ in stream.full_stream:
        break
    await stream.aclose()

    assert len(await store.load("r")) == len(eye.seen)
    assert 1 == len(eye.rested)


class Late:
    """An observer whose method is a coroutine function, which a run never awaits."""

    async def see(self, *_: object) -> None:
        """Note nothing."""


@pytest.mark.parametrize("wrong", [7, "text", [object()], [Eye], [Late()]])
def test_an_observer_without_see_is_refused(wrong: Any) -> None:
    """A class in place of its instance would fail at each step of each run."""
    with pytest.raises(ConfigError, match=r"`watch.*Fix: "):
        Agent(ScriptedModel([]), watch=wrong)


def test_the_example_is_an_observer() -> None:
    """The protocol fits a class with the method `see` alone."""
    eye: Observer = Eye()

    assert callable(eye.see)
