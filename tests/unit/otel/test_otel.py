"""Traces of runs: what an on-call engineer sees, live and from an old journal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from graphloop import Agent, Graph, allow, ask, deny, tool
from graphloop.effects import Effect
from graphloop.events import Event
from graphloop.loop import Standard, standard_edges
from graphloop.node_protocol import Kind, Leave, Reaction
from graphloop.otel import CAPTURE, spans
from graphloop.otel.attributes import provider_of
from graphloop.outcomes import Outcome
from graphloop.providers.services import SERVICES
from graphloop.run import EndReason, Run, evolve
from graphloop.stores import MemoryStore, SqliteStore
from graphloop.testing import ScriptedModel
from tests.unit.otel.exported import Exported
from tests.wire_server import Answer, WireServer, json_answer, sse

CANARY = "canary-51d0"
USAGE = {"input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 100, "reasoning_tokens": 2}
SEMCONV = "opentelemetry.semconv._incubating"


def names_in(*modules: str) -> set[str]:
    """Return the names that modules of the semantic conventions list."""
    found = [vars(import_module(f"{SEMCONV}.{one}")).values() for one in modules]
    return {value for values in found for value in values if isinstance(value, str)}


NAMES = names_in("attributes.gen_ai_attributes", "attributes.error_attributes")
OWN = {"graphloop.end_reason", "graphloop.approved"}


@tool
async def look(word: str) -> str:
    """Look something up."""
    return f"{CANARY} {word}"


@tool
async def crash() -> str:
    """Crash."""
    raise KeyError(CANARY)


def calls(*names: str) -> dict[str, object]:
    given = {"look": {"word": CANARY}, "helper": {"prompt": CANARY}}
    made = [
        {"id": f"id-{at}", "name": name, "arguments": given.get(name, {})}
        for at, name in enumerate(names)
    ]
    return {"calls": made, "usage": USAGE}


def agent(seen: Exported, *script: Any, **options: Any) -> Agent:
    options = {"watch": [seen.observer()], "clock": count(1_000.0).__next__, **options}
    final = {"text": CANARY, "usage": USAGE}
    return Agent(ScriptedModel([*script, *[final] * 3]), **options)


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return {**(span.attributes or {})}


def with_child(seen: Exported, store: MemoryStore, *script: Any, **options: Any) -> Agent:
    child = Agent(ScriptedModel([calls("look"), "below"]), name="kid", tools=[look])
    helper = child.as_tool(name="helper", description="Helps.")
    options = {"store": store, "tools": [look, crash, helper], "instructions": CANARY, **options}
    return agent(seen, *script, **options)


async def test_a_run_is_a_tree_of_spans_by_the_conventions() -> None:
    """Backends know these names; a name of our own would be a column that none of them reads."""
    seen = Exported()
    result = await with_child(seen, MemoryStore(), calls("look", "helper", "crash")).generate(
        CANARY, run_id="r"
    )

    (root,) = seen.named("invoke_agent agent")
    (below,) = seen.named("invoke_agent kid")
    (helper,) = seen.named("execute_tool helper")
    first = next(
        one for one in seen.spans if one.kind is SpanKind.CLIENT and seen.parent(one) is root
    )
    assert root.parent is None
    assert seen.parent(helper) is root
    assert seen.parent(below) is helper
    assert first.name.startswith("chat ")
    assert SpanKind.INTERNAL is root.kind
    assert {*NAMES, *OWN} >= {name for one in seen.spans for name in attributes(one)}
    assert {"r"} == {attributes(one)["gen_ai.conversation.id"] for one in seen.spans}
    assert 110 == attributes(first)["gen_ai.usage.input_tokens"]
    assert 100 == attributes(first)["gen_ai.usage.cache_read.input_tokens"]
    assert ("tool_calls",) == attributes(first)["gen_ai.response.finish_reasons"]
    total = result.total_usage
    assert total is not None
    assert total.total_tokens == (
        attributes(root)["gen_ai.usage.input_tokens"]
        + attributes(root)["gen_ai.usage.output_tokens"]
    )
    (failed,) = seen.named("execute_tool crash")
    assert ("error", StatusCode.ERROR) == (
        attributes(failed)["error.type"],
        failed.status.status_code,
    )
    assert [failed] == [one for one in seen.spans if one.status.status_code is StatusCode.ERROR]
    assert "completed" == attributes(root)["graphloop.end_reason"]
    assert CANARY not in repr(seen.tree())


async def test_the_tree_of_a_live_run_is_the_tree_of_its_journal() -> None:
    """An engineer who exports an old run must see the run that happened."""
    seen, store = Exported(), MemoryStore()
    one = with_child(seen, store, calls("look", "helper"), calls("helper", "look", "crash"))
    await one.generate("go", run_id="r")

    assert seen.tree() == await of_journal(one, store)


async def of_journal(one: Agent, store: MemoryStore) -> list[Any]:
    """Return the tree that the journals of run `r` give."""
    later = Exported()
    below = {run_id.removeprefix("r/"): await store.load(run_id) for run_id in await store.runs()}
    events = below.pop("r")
    spans(one.graph, events, below, tracer_provider=later.tracers)
    return later.tree()


async def test_a_parked_run_ends_its_span_and_its_resume_links_to_it() -> None:
    """A span that waits for a person for three days is exported by no backend."""
    seen, store = Exported(), MemoryStore()
    options = {"store": store, "tools": [look], "gate": ask("look")}
    one = agent(seen, calls("look"), **options)
    result = await one.generate("go", run_id="r")
    assert EndReason.PARKED is result.end_reason
    (first,) = seen.named("invoke_agent agent")
    (asked,) = seen.named("graphloop.ask")
    await one.runs.approve("r", "c0.0")
    assert "ok" == (await one.resume("r")).steps[0].tool_results[0].status

    second = seen.named("invoke_agent agent")[-1]
    assert "parked" == attributes(first)["graphloop.end_reason"]
    assert seen.parent(asked) is first
    assert first.context is not None
    assert [first.context.span_id] == [link.context.span_id for link in second.links]
    assert {StatusCode.UNSET} == {span.status.status_code for span in seen.spans}
    assert True is attributes(seen.named("graphloop.ask")[-1])["graphloop.approved"]
    assert seen.tree() == await of_journal(one, store)


async def test_another_process_links_to_the_span_that_parked() -> None:
    """A person's approval often reaches another worker than the one that asked."""
    there, here, store = Exported(), Exported(), MemoryStore()
    shelf: dict[str, str] = {}
    options = {"store": store, "tools": [look], "gate": ask("look")}
    await agent(there, calls("look"), **options, watch=[there.observer(shelf)]).generate(
        "go", run_id="r"
    )
    (first,) = there.named("invoke_agent agent")
    other = agent(here, **options, watch=[here.observer(shelf)], clock=count(2_000.0).__next__)
    await other.runs.approve("r", "c0.0")
    await other.resume("r")

    (second,) = here.named("invoke_agent agent")
    (link,) = second.links
    assert first.context is not None
    assert (first.context.trace_id, first.context.span_id) == (
        link.context.trace_id,
        link.context.span_id,
    )
    assert {} == shelf


async def test_denied_and_aborted_are_no_errors() -> None:
    """An alert on errors must not wake a person because a rule worked."""
    seen, store = Exported(), MemoryStore()
    one = agent(seen, calls("look"), tools=[look], gate=deny("look"), store=store)
    await one.generate("go", run_id="d")
    stopping = agent(seen, calls("look"), tools=[look], store=store).stream("go", run_id="r")
    stopping.abort("enough")
    result = await stopping.result()

    assert EndReason.ABORTED is result.end_reason
    assert {StatusCode.UNSET} == {span.status.status_code for span in seen.spans}
    ends = [attributes(one)["graphloop.end_reason"] for one in seen.named("invoke_agent agent")]
    assert ["completed", "aborted"] == ends


async def test_an_abort_ends_all_spans_of_a_child() -> None:
    """A span that never ends is never exported, and its children have no parent."""
    seen, store, entered = Exported(), MemoryStore(), asyncio.Event()

    @tool
    async def hang() -> str:
        """Wait for ever."""
        entered.set()
        await asyncio.Event().wait()
        return ""

    child = Agent(ScriptedModel([calls("hang")]), name="kid", tools=[hang])
    helper = child.as_tool(name="helper", description="Helps.")
    one = agent(seen, calls("helper"), tools=[helper], store=store)
    stream = one.stream("go", run_id="r")
    reading = asyncio.create_task(stream.consume())
    await entered.wait()
    stream.abort()
    await reading

    names = {"invoke_agent agent", "invoke_agent kid", "execute_tool helper", "execute_tool hang"}
    assert names <= {span.name for span in seen.spans}
    assert seen.tree() == await of_journal(one, store)


@pytest.mark.parametrize("seed", range(50))
async def test_spans_of_parallel_tools_do_not_mix(seed: int) -> None:
    """A tool's database span below another tool's span accuses the wrong tool."""
    seen = Exported()
    tracer = seen.tracers.get_tracer("tools")

    def worker(name: str, rounds: int) -> Any:
        async def work() -> str:
            """Work a few rounds of the event loop."""
            for _ in range(rounds):
                await asyncio.sleep(0)
            with tracer.start_as_current_span(f"inside {name}"):
                await asyncio.sleep(0)
            return name

        return tool(work, name=name)

    tools = [worker(name, (seed >> 2 * at) % 4) for at, name in enumerate("abc")]
    stream = agent(seen, calls("a", "b", "c"), tools=tools).stream("go")
    outside = {trace.get_current_span() async for _ in stream.full_stream}

    for name in "abc":
        (inside,) = seen.named(f"inside {name}")
        assert f"execute_tool {name}" == seen.parent(inside).name
    assert {trace.INVALID_SPAN} == outside


@pytest.fixture
def instrumented() -> Iterator[Exported]:
    """Instrument httpx, as a service does, with an exporter in memory."""
    seen = Exported()
    HTTPXClientInstrumentor().instrument(tracer_provider=seen.tracers)
    yield seen
    HTTPXClientInstrumentor().uninstrument()


async def test_http_requests_of_tools_and_models_lie_below_their_spans(
    instrumented: Exported,
) -> None:
    """The slow request is found only where it belongs to the call that made it."""
    seen = instrumented
    call = {"index": 0, "id": "a", "function": {"name": "fetch", "arguments": "{}"}}
    asking = json.dumps(
        {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    )
    saying = '{"id":"c","choices":[{"delta":{"content":"done"},"finish_reason":"stop"}]}'
    answers = [Answer(sse(asking, "[DONE]")), json_answer(200, "{}"), Answer(sse(saying, "[DONE]"))]
    async with WireServer(answers) as server:

        @tool
        async def fetch() -> str:
            """Fetch a page."""
            async with httpx.AsyncClient() as client:
                return (await client.get(f"{server.url}/page")).text

        one = Agent(
            "openai:gpt-5",
            api_key="k",
            base_url=server.url,
            tools=[fetch],
            watch=[seen.observer()],
        )
        async with one:
            assert "done" == (await one.generate("go")).text

    below = [seen.parent(span).name for span in seen.spans if span.name in {"GET", "POST"}]
    assert ["chat gpt-5", "execute_tool fetch", "chat gpt-5"] == below
    assert "openai" == attributes(seen.named("chat gpt-5")[0])["gen_ai.provider.name"]


async def test_content_is_recorded_only_when_the_environment_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Prompts in a trace store are a leak, unless the operator wants them there."""
    monkeypatch.setenv(CAPTURE, "true")
    seen = Exported()
    await with_child(seen, MemoryStore(), calls("look")).generate(CANARY)

    found = {
        name
        for one in seen.spans
        for name, value in attributes(one).items()
        if CANARY in str(value)
    }
    assert {
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.system_instructions",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
    } == found
    assert NAMES >= found


async def test_metrics_have_the_names_of_the_conventions() -> None:
    """A dashboard for any GenAI service shows this one, too."""
    seen = Exported()
    await agent(seen, calls("look"), tools=[look]).generate("go")

    found = seen.metrics()
    assert {
        "gen_ai.client.operation.duration",
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.client.token.usage",
    } == found.keys()
    assert names_in("metrics.gen_ai_metrics") >= found.keys()
    assert 2 == sum(point.count for point in found["gen_ai.client.operation.duration"])
    assert 2 == sum(p.count for p in found["gen_ai.client.operation.time_to_first_chunk"])
    sums = {p.attributes["gen_ai.token.type"]: p.sum for p in found["gen_ai.client.token.usage"]}
    assert {"input": 220, "output": 10} == sums
    names = {name for points in found.values() for point in points for name in point.attributes}
    assert NAMES >= names


async def test_a_parked_child_has_a_span_below_each_span_of_its_parent() -> None:
    """The approval of a nested call is where the time went; it must not hang in the air."""
    seen, store = Exported(), MemoryStore()
    child = Agent(ScriptedModel([calls("look"), "below"]), name="kid", tools=[look])
    helper = child.as_tool(name="helper", description="Helps.")
    one = agent(
        seen, calls("helper"), tools=[helper], store=store, gate=ask("look") | allow("helper")
    )
    parked = await one.generate("go", run_id="r")
    assert EndReason.PARKED is parked.end_reason
    await one.runs.approve("r", parked.pending[0].key)
    assert EndReason.COMPLETED is (await one.resume("r")).end_reason

    above = [seen.parent(seen.parent(span)) for span in seen.named("invoke_agent kid")]
    assert seen.named("invoke_agent agent") == above
    assert [0, 1] == [len(span.links) for span in seen.named("invoke_agent kid")]
    assert seen.tree() == await of_journal(one, store)


async def test_a_parked_run_that_is_cancelled_has_the_same_spans_in_its_journal() -> None:
    """The three days until a person gave up are no time of a span."""
    seen, store = Exported(), MemoryStore()
    one = agent(seen, calls("look"), store=store, tools=[look], gate=ask("look"))
    assert EndReason.PARKED is (await one.generate("go", run_id="r")).end_reason

    assert EndReason.ABORTED is (await one.runs.cancel("r")).end_reason

    first, second = seen.named("invoke_agent agent")
    assert ["parked", "aborted"] == [
        attributes(span)["graphloop.end_reason"] for span in (first, second)
    ]
    assert 1 == len(second.links)
    assert seen.tree() == await of_journal(one, store)


async def test_a_parked_child_that_is_cancelled_has_the_same_spans_in_its_journal() -> None:
    """A child's driver resumes it to end it, as that of its parent does."""
    seen, store = Exported(), MemoryStore()
    child = Agent(ScriptedModel([calls("look"), "below"]), name="kid", tools=[look])
    helper = child.as_tool(name="helper", description="Helps.")
    one = agent(
        seen, calls("helper"), tools=[helper], store=store, gate=ask("look") | allow("helper")
    )
    await one.generate("go", run_id="r")
    await one.runs.cancel("r")

    assert 2 == len(seen.named("invoke_agent agent"))
    assert seen.tree() == await of_journal(one, store)


async def test_an_iterated_run_is_one_span() -> None:
    """A caller who looks at each turn does not cut the run into pieces."""
    seen, store = Exported(), MemoryStore()
    one = agent(seen, calls("look"), calls("look"), tools=[look], store=store)
    async with one.iter("go", run_id="r") as turns:
        async for _ in turns:
            pass

    assert 1 == len(seen.named("invoke_agent agent"))
    assert seen.tree() == await of_journal(one, store)


async def test_a_run_that_is_left_ends_its_spans_as_interrupted() -> None:
    """A client that goes away must not hide the trace of what it paid for."""
    seen, store = Exported(), MemoryStore()
    stream = agent(seen, calls("look"), tools=[look], store=store).stream("go", run_id="r")
    async for _ in stream.full_stream:
        break
    await stream.aclose()

    (root,) = seen.named("invoke_agent agent")
    assert "interrupted" == attributes(root)["graphloop.end_reason"]
    assert StatusCode.UNSET is root.status.status_code


@dataclass(frozen=True)
class Letter:
    drafts: int = 0


class Drafted(Outcome):
    """The letter has one more draft."""


class Draft:
    """A node of the user's that reads the state itself, also in a replay."""

    name: str = "draft"
    kind: Kind = "pure"
    outcomes = frozenset({Drafted})

    def enter(self, run: Run[Letter], /) -> Reaction[Letter, Drafted]:
        """Count, and go on."""
        return Leave(evolve(run, state=Letter(run.state.drafts + 1)), Drafted())

    def on(
        self, run: Run[Letter], event: Event, answered: Effect | None, /
    ) -> Reaction[Letter, Drafted]:
        """Never asked."""
        raise AssertionError


async def test_a_journal_from_a_disk_has_spans_where_nodes_read_the_state(tmp_path: Path) -> None:
    """A store on a disk returns states as plain JSON; the nodes of a table read a `Letter`."""
    begin, nodes = Draft(), Standard()
    rows: dict[Any, Any] = {begin: {...: nodes.prepare}, **standard_edges(nodes)}
    graph: Graph[Letter] = Graph("post", begin, rows, state_type=Letter)
    live, later = Exported(), Exported()
    async with aclosing(SqliteStore(tmp_path / "runs.db")) as store:
        run = graph.run(
            Letter(),
            prompt="Go.",
            model=ScriptedModel(["Hi."]),
            store=store,
            run_id="r",
            watch=[live.observer()],
        )
        assert 1 == (await run).state.drafts

        spans(graph, await store.load("r"), tracer_provider=later.tracers)

    assert live.tree() == later.tree()


async def test_the_questions_of_a_chat_are_one_conversation() -> None:
    """A backend shows a chat as one conversation, live, after a resume, and from the journals."""
    live, resumed, later, store = Exported(), Exported(), Exported(), MemoryStore()
    pausing = with_child(live, store, calls("helper"), gate=ask("helper") | allow("look"))
    chat = pausing.chat("user-42")
    parked = await chat.send("first")
    back = with_child(resumed, store, gate=ask("helper") | allow("look"))
    again = back.chat("user-42")
    (call,) = parked.pending
    await again.send(approvals={call.key: True})
    await again.send("second")
    copy = await again.fork("user-43")
    await copy.send("third")

    for run_id in await again.run_ids():
        below = {
            one.removeprefix(f"{run_id}/"): await store.load(one)
            for one in await store.runs()
            if one.startswith(f"{run_id}/")
        }
        spans(back.graph, await store.load(run_id), below, tracer_provider=later.tracers)

    def conversations(seen: Exported) -> set[str]:
        return {attributes(one)["gen_ai.conversation.id"] for one in seen.spans}

    assert {"user-42"} == conversations(live) == conversations(later)
    assert {"user-42", "user-43"} == conversations(resumed)
    assert resumed.named("invoke_agent kid")
    assert later.named("invoke_agent kid")


def test_values_are_those_of_the_conventions() -> None:
    """A provider by another name would be another provider to a backend."""
    conventions = vars(import_module(f"{SEMCONV}.attributes.gen_ai_attributes"))
    known = {one.value for one in conventions["GenAiProviderNameValues"]}
    named = {
        "anthropic": "anthropic",
        "azure": "azure.ai.openai",
        "bedrock": "aws.bedrock",
        "deepseek": "deepseek",
        "google": "gcp.gemini",
        "bedrock-anthropic": "aws.bedrock",
        "groq": "groq",
        "mistral": "mistral_ai",
        "openai": "openai",
        "openai-responses": "openai",
        "xai": "x_ai",
        "xai-responses": "x_ai",
    }
    assert {*named.values()} <= known
    assert named == {name: provider_of(f"{name}:some-model") for name in named}
    assert not {name for name in SERVICES if name in known and name != provider_of(name)}
