"""Running: the doors of an agent, where its runs are kept, and what is closed afterwards."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Unpack

import pytest

from graphloop import (
    Agent,
    EndReason,
    ModelPrice,
    RunResult,
    Tool,
    generate_object_sync,
    generate_text,
    generate_text_sync,
    stream_chat,
    tool,
)
from graphloop.agent.inputs import MessageInput
from graphloop.agent.options import AgentOptions
from graphloop.errors import BadReply, ConfigError, StoreError
from graphloop.parts.kinds import ErrorPart
from graphloop.providers.script import Entry
from graphloop.run import evolve
from graphloop.stores.base import Store
from graphloop.stores.codec import Codec
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.values import (
    AssistantMessage,
    Message,
    Reply,
    SystemMessage,
    ToolResult,
    Usage,
    UserMessage,
)
from tests.agents import drain, ticking
from tests.strategies import call, reply, said, wrong
from tests.unit.agent.doubles import gated, read


def test_the_three_doors_lead_to_one_answer() -> None:
    async def streamed() -> str:
        return "".join(
            [text async for text in stream_chat(ScriptedModel(["hi there"]), "go").text_stream]
        )

    assert "hi there" == asyncio.run(generate_text(ScriptedModel(["hi there"]), "go")).text
    assert "hi there" == generate_text_sync(ScriptedModel(["hi there"]), "go").text
    assert "hi there" == asyncio.run(streamed())


def test_a_stream_asks_nothing_until_it_is_looked_at() -> None:
    model = ScriptedModel(["done"])

    stream = stream_chat(model, "go")

    assert [] == model.requests
    assert stream.run is None


def no_tools() -> Iterator[object]:
    """Fail as soon as they are asked for."""
    raise LookupError("no tools today")
    yield


@pytest.mark.parametrize(
    ("model", "prompt", "options"),
    [
        (ScriptedModel([]), "go", {"max_steps": 0}),
        (ScriptedModel([]), "go", {"tools": [5]}),
        (ScriptedModel([]), "go", {"nonsense": 1}),
        (ScriptedModel([]), "go", {"tools": no_tools()}),
        (ScriptedModel([]), None, {}),
        ("nobody:x", "go", {}),
        (None, "go", {}),
    ],
    ids=["bound", "tools", "option", "raises", "question", "name", "model"],
)
async def test_a_stream_never_raises_before_it_is_looked_at(
    model: object, prompt: str | None, options: dict[str, object]
) -> None:
    parts, error = await drain(stream_chat(wrong(model), prompt, **wrong(options)))

    assert isinstance(error, ConfigError | LookupError)
    assert ErrorPart(error) == parts[-1]


def script(tmp_path: Path, text: str = "- hi\n") -> str:
    """Return the name of a model scripted in a file."""
    path = tmp_path / "script.yaml"
    path.write_text(text, encoding="utf-8")
    return f"script:{path}"


@pytest.mark.parametrize("text", ["- hi\n", "- error: broken\n"], ids=["done", "broken"])
async def test_what_was_opened_by_name_is_closed_once(
    tmp_path: Path, closed: list[str], text: str
) -> None:
    name = script(tmp_path, text)

    await drain(stream_chat(name, "go"))
    assert [name] == closed
    left = stream_chat(name, "go")
    await anext(left.full_stream)
    assert [name] == closed
    await left.aclose()
    assert [name] * 2 == closed
    with suppress(ValueError, BadReply):
        await generate_text(name, "go")
    assert [name] * 3 == closed


INSTEAD: list[tuple[Callable[[ScriptedModel], object], str]] = [
    (lambda model: Agent(model).generate_sync("go"), r"await Agent\.generate"),
    (lambda model: generate_text_sync(model, "go"), "await generate_text"),
    (lambda model: generate_object_sync(model, int, "go"), "await generate_object"),
]


@pytest.mark.parametrize(("ask", "instead"), INSTEAD, ids=["agent", "text", "object"])
async def test_a_synchronous_call_in_a_loop_says_what_to_await(
    ask: Callable[[ScriptedModel], object], instead: str
) -> None:
    model = ScriptedModel(["done"])

    with pytest.raises(ConfigError, match=instead):
        ask(model)

    # A coroutine that was never awaited warns when it is collected: an error in this suite.
    gc.collect()
    assert [] == model.requests


def test_a_wrong_option_is_refused_before_anything_is_asked() -> None:
    model = ScriptedModel(["done"])

    with pytest.raises(ConfigError, match="max_steps"):
        asyncio.run(generate_text(model, "go", max_steps=0))
    with pytest.raises(ConfigError, match="max_steps"):
        generate_text_sync(model, "go", max_steps=0)
    with pytest.raises(ConfigError, match="neither"):
        generate_text_sync(model)

    assert [] == model.requests


@tool(needs_approval=True)
def pay() -> str:
    """Pay."""
    return "paid"


def test_the_three_doors_take_answers_for_open_calls() -> None:
    asks = Tool(name="ask", parameters={"type": "object", "properties": {}}, kind="client")
    history: list[Message] = [UserMessage("go"), said(call("pay", "p"), call("ask", "a"))]
    tools, approvals, results = [pay, asks], {"p": True}, {"a": "yes"}

    async def main() -> list[RunResult]:
        stream = stream_chat(
            ScriptedModel(["done"]),
            messages=history,
            approvals=approvals,
            tool_results=results,
            tools=tools,
        )
        awaited = await generate_text(
            ScriptedModel(["done"]),
            messages=history,
            approvals=approvals,
            tool_results=results,
            tools=tools,
        )
        return [await stream.result(), awaited]

    synchronous = generate_text_sync(
        ScriptedModel(["done"]),
        messages=history,
        approvals=approvals,
        tool_results=results,
        tools=tools,
    )

    for result in (synchronous, *asyncio.run(main())):
        assert [one.content for one in result.messages if isinstance(one, ToolResult)] == [
            "paid",
            "yes",
        ]


class TwoTools:
    """A model that calls two tools, one after the other; the second waits for ever."""

    def __init__(self) -> None:
        self.inside = asyncio.Event()
        self.model = ScriptedModel([reply(call("note")), reply(call("wait")), "done"])
        free: dict[str, object] = {"type": "object"}
        self.tools = [
            Tool(name="note", parameters=free, execute=self._note),
            Tool(name="wait", parameters=free, execute=self._wait),
        ]

    async def _note(self, arguments: dict[str, object]) -> str:
        return "noted"

    async def _wait(self, arguments: dict[str, object]) -> str:
        self.inside.set()
        await asyncio.Event().wait()
        return "never"


@pytest.mark.parametrize("way", ["Agent.generate", "generate_text"])
async def test_a_signal_ends_a_buffered_call_with_what_there_is(way: str) -> None:
    world, signal = TwoTools(), asyncio.Event()
    if way == "Agent.generate":
        asked = Agent(world.model, tools=world.tools).generate("go", signal=signal)
    else:
        asked = generate_text(world.model, "go", tools=world.tools, signal=signal)
    running = asyncio.create_task(asked)
    await world.inside.wait()
    signal.set()
    result, tasks = await running, len(asyncio.all_tasks())

    assert (EndReason.ABORTED, ("the signal was set",)) == (result.end_reason, result.stopped_by)
    assert ["noted"] == [one.text for one in result.steps[0].tool_results]
    assert "unknown" == result.steps[1].tool_results[0].status
    assert 1 == tasks


def test_a_conversation_goes_on_with_what_the_run_added() -> None:
    said = ScriptedModel([reply(call()), "done", "more"])
    agent = Agent(said, tools=[read])
    first = agent.generate_sync("go")

    agent.generate_sync(
        messages=[UserMessage("go"), *first.messages, {"role": "user", "content": "on"}]
    )

    assert tuple(said.requests[1].messages) == tuple(said.requests[2].messages)[:3]
    assert UserMessage("on") == said.requests[2].messages[-1]


def test_a_question_follows_the_conversation_of_an_earlier_result() -> None:
    """The agent's instructions stand first once, however often a conversation goes on."""
    said = ScriptedModel([reply(call()), "done", "more", "yet more"])
    agent = Agent(said, tools=[read], instructions="Be brief.")
    first = agent.generate_sync("go")

    second = agent.generate_sync("on", messages=first.conversation)
    third = agent.generate_sync("and on", messages=second.conversation)

    assert (UserMessage("go"), *first.messages) == first.conversation
    assert (*first.conversation, UserMessage("on"), *second.messages) == second.conversation
    assert (SystemMessage("Be brief."), *third.conversation[:-1]) == tuple(
        said.requests[3].messages
    )


def test_a_first_question_may_follow_an_empty_conversation() -> None:
    said = ScriptedModel(["done"])

    Agent(said).generate_sync("go", messages=[])

    assert [UserMessage("go")] == list(said.requests[0].messages)


def test_a_question_beside_answers_to_open_calls_is_refused() -> None:
    """The model reads the results of its calls before it reads another question."""
    said = ScriptedModel(["done"])
    history: list[Message] = [UserMessage("go"), AssistantMessage((call("pay", "p"),))]

    with pytest.raises(ConfigError, match="`prompt`: expected none beside `approvals`"):
        Agent(said, tools=[pay]).generate_sync("on", messages=history, approvals={"p": True})

    assert [] == said.requests


DANGLING: list[MessageInput] = [
    {"role": "user", "content": "go"},
    {"role": "tool", "tool_call_id": "x", "content": "?"},
]


def test_a_bad_history_is_mended_with_a_warning_or_refused() -> None:
    said = ScriptedModel(["done"])
    agent = Agent(said)

    result = agent.generate_sync(messages=DANGLING)

    assert [UserMessage("go")] == list(said.requests[0].messages)
    assert 1 == len(result.warnings)
    with pytest.raises(ConfigError, match="on_bad_history='refuse'"):
        agent.with_options(on_bad_history="refuse").generate_sync(messages=DANGLING)
    assert 1 == len(said.requests)


def agent(kept_in: Store | str | None = None, **options: Unpack[AgentOptions]) -> Agent:
    """Return an agent whose model asks for a tool that is not there, then is done."""
    model = ScriptedModel([reply(call("nowhere")), "done"], restart=True)
    merged: AgentOptions = {**options}
    merged["store"] = kept_in
    return Agent(model, **merged)


@pytest.mark.parametrize("name", ["runs", "runs.db", "runs.sqlite", "x.sqlite3"])
async def test_a_path_keeps_runs_by_their_ids(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    async with agent(str(path)) as one:
        await one.generate("go", run_id="mine")
        made_up = (await one.generate("go")).run_id
        with pytest.raises(StoreError, match="taken"):
            await one.generate("go", run_id="mine")

    async with agent(str(path)) as other:
        assert "done" == (await other.resume("mine")).text
        assert "done" == (await other.resume(made_up)).text
        with pytest.raises(StoreError, match="no run 'tuesday' in"):
            await other.resume("tuesday")
    assert path.is_dir() == (name == "runs")


@pytest.mark.parametrize(
    ("run_id", "message"),
    [
        ("", "found ''"),
        ("x" * 201, "at most 200 characters.*found 201"),
        ("\ud800", "half a surrogate pair"),
        ("r\nrun s: completed", "a control character"),
    ],
    ids=["empty", "long", "half", "line"],
)
async def test_an_id_that_no_store_can_write_down_is_refused(run_id: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        await agent().generate("go", run_id=run_id)
    await agent().generate("go", run_id="x" * 200)


async def test_what_could_never_be_read_again_is_not_begun() -> None:
    store = MemoryStore()

    with pytest.raises(ConfigError, match="`clock`: expected seconds since the epoch"):
        await agent(store, clock=lambda: float("nan")).generate("go", run_id="mine")
    with pytest.raises(ConfigError, match="`messages` is empty"):
        await agent(store).generate(messages=[])

    assert [] == list(await store.runs())


def test_the_same_clock_and_script_give_the_same_bytes() -> None:
    async def journal() -> list[bytes]:
        store, codec = MemoryStore(), Codec()
        await agent(store, clock=ticking()).generate("go", run_id="r")
        events = await store.load("r")
        return [codec.encode(seq, event) for seq, event in enumerate(events, 1)]

    assert asyncio.run(journal()) == asyncio.run(journal())


def test_a_price_is_asked_for_every_reply() -> None:
    known = agent(price=lambda _: 0.25).generate_sync("go")

    def first_only(answer: Reply) -> float | None:
        return 0.25 if answer.message.calls else None

    assert 0.5 == known.cost_usd
    assert agent(price=first_only).generate_sync("go").cost_usd is None
    assert agent().generate_sync("go").cost_usd is None


def broken(answer: Reply) -> float | None:
    """Fail to tell a price."""
    raise LookupError("no such model")


@pytest.mark.parametrize("amount", [None, float("nan"), float("inf"), "1", True])
def test_a_price_that_fails_is_no_price(amount: object) -> None:
    result = agent(price=broken if amount is None else lambda _: wrong(amount)).generate_sync("go")

    assert ("done", None) == (result.text, result.cost_usd)


def test_the_caller_s_prices_go_before_the_known_ones() -> None:
    answer = evolve(reply("done"), model="gpt-4o", usage=Usage(1_000_000, 0))
    known = ScriptedModel([answer], label="openai:gpt-4o", restart=True)

    assert 3.0 == Agent(known, prices={"gpt-4o": ModelPrice(3, 1)}).generate_sync("go").cost_usd
    assert 0.25 == Agent(known, price=lambda _: 0.25).generate_sync("go").cost_usd
    assert Agent(known).generate_sync("go").cost_usd not in {None, 3.0, 0.25}


@pytest.mark.parametrize(
    ("label", "priced"), [("openai:gpt-4o", True), ("anthropic:x", True), ("script", False)]
)
def test_replies_of_real_models_are_priced_by_the_table(label: str, priced: bool) -> None:
    model = ScriptedModel(["done"], label=label, model="gpt-4o")

    result = asyncio.run(Agent(model).generate("go"))

    assert priced == (result.cost_usd is not None)


async def test_an_agent_that_was_closed_can_be_used_again(tmp_path: Path) -> None:
    model = ScriptedModel([reply(call()), "first", "second"])
    one = Agent(model, tools=[gated()], store=str(tmp_path / "runs.db"))
    async with one:
        parked = await one.generate("go")
    assert isinstance(parked.store, SqliteStore)
    assert parked.store.closed

    resumed = await one.resume(parked, approvals={"c0.0": True})
    again = await one.generate("go")
    assert ("first", "second") == (resumed.text, again.text)
    assert parked.store is not resumed.store is again.store
    await one.aclose()

    given = SqliteStore(tmp_path / "given.db")
    async with Agent(ScriptedModel(["done"]), store=given) as other:
        await other.generate("go")
    assert not given.closed
    await given.aclose()


DEADLINE_S = 10.0


def waiter(store: Path, waits: Callable[[], object]) -> Agent:
    """Return an agent whose only tool waits in a thread."""

    def execute(arguments: dict[str, object]) -> str:
        waits()
        return "done"

    tool = Tool(name="wait", parameters={"type": "object"}, execute=execute, thread=True)
    script: list[Entry] = [reply(call("wait", "w")), "answer", reply(call("wait", "w")), "answer"]
    return Agent(ScriptedModel(script), tools=[tool], store=str(store))


def test_a_synchronous_call_leaves_the_others_their_store(tmp_path: Path) -> None:
    first_is_over, second_waits = threading.Event(), threading.Event()
    ended: list[EndReason] = []

    def wait() -> None:
        second_waits.set()
        assert first_is_over.wait(DEADLINE_S)

    one = waiter(tmp_path / "runs.db", wait)
    other = threading.Thread(
        target=lambda: ended.append(one.generate_sync("go", run_id="b").end_reason)
    )
    other.start()
    assert second_waits.wait(DEADLINE_S)
    assert "answer" == one.generate_sync("go", run_id="a").text
    first_is_over.set()
    other.join(DEADLINE_S)

    assert [EndReason.COMPLETED] == ended


def test_an_agent_that_is_shared_on_many_levels_is_closed_once(closed: list[str]) -> None:
    one = Agent(ScriptedModel(["done"], label="lowest"))
    for level in range(16):
        tools = [one.as_tool(name=name, description="helps") for name in ("one", "other")]
        model = ScriptedModel(["done"], label=str(level))
        one = Agent(model, tools=tools, max_agent_depth=16)

    assert "done" == one.generate_sync("go").text
    assert sorted(["lowest", *map(str, range(16))]) == sorted(closed)


async def test_a_result_is_not_lost_where_something_cannot_be_closed() -> None:
    async def refuse() -> None:
        raise OSError("cannot close")

    stream = Agent(ScriptedModel(["answer"])).stream("go")
    stream.on_over = refuse
    result = await stream.result()
    assert "answer" == result.text
    assert "OSError: cannot close" in result.warnings[-1]


def test_a_run_outside_of_asyncio_is_refused() -> None:
    asked = Agent(ScriptedModel(["done"])).generate("go")

    with pytest.raises(ConfigError, match=r"expected a running event loop of asyncio.*trio"):
        asked.send(None)

    gc.collect()
