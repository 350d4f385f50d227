"""What a running tool reports reaches the readers of its run's stream, and nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from graphloop import Agent, tool
from graphloop.parts.kinds import Part, SubAgent
from graphloop.stores.jsonl import JsonlStore
from graphloop.testing import ScriptedModel
from graphloop.tools import AnyTool, ToolContext, ToolProgress

MANY = 10_000


@tool
async def load(context: ToolContext) -> str:
    """Report much."""
    for number in range(MANY):
        await context.report(number, MANY, "loading")
    return "loaded"


@tool(name="load")
async def load_silently(context: ToolContext) -> str:
    """Report much."""
    return "loaded"


@tool
def plain(context: ToolContext) -> str:
    """Report without an await."""
    context.report(1)
    context.report(2)
    return "done"


@tool(thread=True)
def threaded(context: ToolContext) -> str:
    """Report from a thread."""
    context.report(1)
    context.report(2)
    return "done"


def calling(*names: str) -> ScriptedModel:
    """Return a model that calls these tools at once, and then answers."""
    return ScriptedModel([{"calls": [{"name": one, "arguments": {}} for one in names]}, "Done."])


def progress(parts: list[Part]) -> list[ToolProgress]:
    return [part for part in parts if isinstance(part, ToolProgress)]


async def drained(agent: Agent, **options: Any) -> list[Part]:
    return [part async for part in agent.stream("Go", **options).full_stream]


async def test_ten_thousand_reports_are_a_few_parts() -> None:
    """A page that draws each would stand still; the last one always comes."""
    loop = asyncio.get_running_loop()
    begun = loop.time()

    parts = await drained(Agent(calling("load"), tools=[load]))

    shown = progress(parts)
    assert 1 <= len(shown) <= 2 + (loop.time() - begun) / 0.05
    assert ToolProgress("c0.0", "load", MANY - 1, MANY, "loading") == shown[-1]
    kinds = [part.type for part in parts]
    assert kinds.index("tool-call") < kinds.index("tool-progress") < kinds.index("tool-result")


async def test_a_journal_is_the_same_with_and_without_reports(tmp_path: Path) -> None:
    """Reports are for eyes; a resume does not need them."""

    async def journal(reporting: AnyTool) -> bytes:
        store = JsonlStore(tmp_path / f"{id(reporting)}")
        agent = Agent(calling("load"), tools=[reporting], store=store, clock=lambda: 7.0)
        await drained(agent, run_id="r")
        (file,) = (tmp_path / f"{id(reporting)}").glob("r.jsonl")
        return file.read_bytes()

    assert await journal(load) == await journal(load_silently)


@pytest.mark.parametrize("one", [plain, threaded])
async def test_a_plain_function_reports_without_await(one: AnyTool) -> None:
    """Also in a thread."""
    shown = progress(await drained(Agent(calling(one.name), tools=[one])))

    assert shown[-1].done == 2


async def test_calls_side_by_side_report_each_under_its_key() -> None:
    """Two bars on a page."""
    shown = progress(await drained(Agent(calling("plain", "threaded"), tools=[plain, threaded])))

    last = {part.key: (part.tool_name, part.done) for part in shown}
    assert {"c0.0": ("plain", 2), "c0.1": ("threaded", 2)} == last


async def test_a_child_s_report_is_wrapped_like_its_other_parts() -> None:
    """The page of the parent tells whose bar it is."""
    child = Agent(calling("plain"), tools=[plain], name="child")
    call = {"name": "child", "arguments": {"prompt": "Go"}}
    parent = Agent(ScriptedModel([{"calls": [call]}, "Done."]), tools=[child.as_tool()])

    parts = await drained(parent)

    inner = [part.part for part in parts if isinstance(part, SubAgent)]
    assert ToolProgress("c0.0", "plain", 2) in inner
    assert not progress(parts)


async def test_a_report_is_seen_while_the_tool_still_works() -> None:
    """A bar that moves only at the end is no bar."""
    seen = asyncio.Event()

    @tool
    async def wait(context: ToolContext) -> str:
        """Wait until the report was seen."""
        await context.report(1)
        await seen.wait()
        return "seen"

    async for part in Agent(calling("wait"), tools=[wait]).stream("Go").full_stream:
        if isinstance(part, ToolProgress):
            seen.set()

    assert seen.is_set()


async def test_a_run_without_a_stream_reports_to_no_reader() -> None:
    """A tool reports whether or not there is a reader."""
    assert (await Agent(calling("load"), tools=[load]).generate("Go")).text == "Done."


async def test_a_report_after_the_abort_is_not_heard() -> None:
    """A tool that cleans up after its cancellation may still report."""
    reported: list[int] = []

    @tool
    async def stubborn(context: ToolContext) -> str:
        """Report after the cancellation."""
        try:
            await context.report(0)
            await asyncio.Event().wait()
        finally:
            await context.report(1)
            reported.append(1)
        return "never"

    stream = Agent(calling("stubborn"), tools=[stubborn]).stream("Go")
    parts: list[Part] = []
    async for part in stream.full_stream:
        parts.append(part)
        if isinstance(part, ToolProgress):
            stream.abort("enough")

    assert reported == [1]
    assert (await stream.result()).end_reason == "aborted"
    assert [part.done for part in progress(parts)] == [0]
    assert parts[-1].type == "finish"
