"""Tools that the server runs itself: what a real exchange with a pause sends and gets back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from graphloop import Agent, EndReason, ask, tool
from graphloop.errors import ConfigError, Overloaded
from graphloop.parts import ToolCallPart, ToolResultPart
from graphloop.providers.anthropic.server_tools import (
    anthropic_code_execution,
    anthropic_web_search,
)
from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.base import (
    ModelSession,
    ProviderToolDelta,
    TextDelta,
    UsageSoFar,
    Wire,
)
from graphloop.providers.google.wire import GoogleGemini
from graphloop.providers.http import Endpoint, HttpProvider
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.providers.openai_responses.wire import OpenAIResponses
from graphloop.run import History
from graphloop.spending import UsageDetails
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.tools import AnyTool, provider_tool
from graphloop.values import (
    FinishReason,
    Message,
    ModelRequest,
    OpaquePart,
    Reply,
    TextPart,
    ToolSpec,
    Usage,
    UserMessage,
    evolve,
)
from tests.wire_server import Answer, WireServer, sse

Block = Mapping[str, Any]

SEARCH = ToolSpec(
    "web_search",
    "",
    "",
    kind="provider",
    definition='{"type":"web_search_20250305","name":"web_search","max_uses":2}',
)
ASK: History[Message] = History((UserMessage("When is high tide?"),))

CITATION = {
    "type": "web_search_result_location",
    "url": "https://example.com/",
    "title": "Tides",
    "encrypted_index": "E1==",
    "cited_text": "high at noon",
}
# What the server's turn holds, as it must come back: blocks of every kind it has.
PAUSED: tuple[Block, ...] = (
    {"type": "text", "text": "I look it up."},
    {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {"query": "tides — today", "n": 1.50},
    },
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [
            {
                "type": "web_search_result",
                "url": "https://example.com/",
                "title": "Tides",
                "encrypted_content": "AbC+/==",
                "page_age": None,
            }
        ],
    },
    {"type": "server_tool_use", "id": "srvtoolu_2", "name": "web_search", "input": {}},
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_2",
        "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
    },
    {
        "type": "mcp_tool_use",
        "id": "mcptoolu_1",
        "name": "tide",
        "server_name": "sea",
        "input": {"port": "Kiel"},
    },
    {
        "type": "mcp_tool_result",
        "tool_use_id": "mcptoolu_1",
        "is_error": True,
        "content": [{"type": "text", "text": "no such port"}],
    },
    {
        "type": "bash_code_execution_tool_result",
        "tool_use_id": "srvtoolu_3",
        "content": {"type": "bash_code_execution_result", "stdout": "12:00\n", "return_code": 0},
    },
    {"type": "text", "text": "At noon.", "citations": [CITATION]},
    {
        "type": "server_tool_use",
        "id": "srvtoolu_4",
        "name": "web_search",
        "input": {"query": "moon"},
    },
)
ANSWER: tuple[Block, ...] = ({"type": "text", "text": "High tide is at noon."},)


def streamed(
    blocks: tuple[Block, ...], stop_reason: str, searches: int, container: str = ""
) -> Answer:
    """Return the stream of a turn with these blocks: inputs and texts in pieces of 7."""
    start = {"id": "m", "model": "x", "usage": {"input_tokens": 9, "output_tokens": 1}}
    events: list[object] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(blocks):
        empty, deltas = _pieces(block)
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events += [
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        ]
        events.append({"type": "content_block_stop", "index": index})
    usage = {"output_tokens": 40, "server_tool_use": {"web_search_requests": searches}}
    told = {"id": container, "expires_at": "2030-01-01T00:00:00Z"} if container else None
    delta = {"stop_reason": stop_reason, "container": told}
    events.append({"type": "message_delta", "delta": delta, "usage": usage})
    events.append({"type": "message_stop"})
    return Answer(sse(*map(json.dumps, events)))


def _pieces(block: Block) -> tuple[Block, Sequence[Block]]:
    """Return what a block starts as, and the deltas that make it whole."""
    if block["type"] == "text":
        cited = [{"type": "citations_delta", "citation": c} for c in block.get("citations", ())]
        said = [{"type": "text_delta", "text": one} for one in _cut(block["text"])]
        return {"type": "text", "text": ""}, [*cited, *said]
    if "input" not in block:
        return block, []
    whole = json.dumps(block["input"]) if block["input"] else ""
    deltas = [{"type": "input_json_delta", "partial_json": one} for one in _cut(whole)]
    return {**block, "input": {}}, deltas


def _cut(text: str) -> list[str]:
    return [text[at : at + 7] for at in range(0, len(text), 7)]


def talked() -> tuple[list[bytes], list[Reply], list[object]]:
    """Ask, go on after a pause, and ask again: the bodies, the replies, and all that was live."""
    live: list[object] = []

    async def asked(session: ModelSession, history: History[Message]) -> Reply:
        items = [item async for item in session.stream(ModelRequest(history, (SEARCH,)))]
        reply = items.pop()
        assert isinstance(reply, Reply)
        live.extend(items)
        return reply

    async def main() -> tuple[list[bytes], list[Reply]]:
        answers = [
            streamed(PAUSED, "pause_turn", 2),
            streamed(ANSWER, "end_turn", 1),
            streamed(ANSWER, "end_turn", 0),
        ]
        async with WireServer(answers) as server:
            provider = HttpProvider(AnthropicMessages("m"), Endpoint(server.url, "k"))
            session = provider.session()
            paused = await asked(session, ASK)
            resumed = ASK.append(paused.message)
            ended = await asked(session, resumed)
            last = await asked(session, resumed.append(ended.message, UserMessage("Tomorrow?")))
            await provider.aclose()
            return [request.body for request in server.requests], [paused, ended, last]

    bodies, replies = asyncio.run(main())
    return bodies, replies, live


def test_a_paused_turn_goes_back_as_it_came_and_stays_as_it_is() -> None:
    """The server goes on only from its own words; a cache hits only on the same bytes."""
    bodies, _, _ = talked()

    first, second, third = map(json.loads, bodies)
    assert second["messages"] == [*first["messages"], {"role": "assistant", "content": [*PAUSED]}]
    assert first["tools"] == second["tools"] == third["tools"] == [json.loads(SEARCH.definition)]
    assert bodies[1].startswith(bodies[0].removesuffix(b"]}"))
    assert bodies[2].startswith(bodies[1].removesuffix(b"]}"))


def test_what_the_server_ran_is_no_call_of_ours() -> None:
    """A loop that ran it again would answer calls that nobody made."""
    _, (paused, ended, last), _ = talked()

    assert (paused.finish_reason, paused.raw_finish_reason) == (FinishReason.PAUSE, "pause_turn")
    assert paused.message.calls == ()
    kinds = [type(part) for part in paused.message.parts]
    assert kinds == [TextPart, *[OpaquePart] * 7, TextPart, OpaquePart]
    cited = paused.message.parts[8]
    assert isinstance(cited, TextPart)
    assert json.loads(cited.extra) == {"citations": [CITATION]}
    assert [ended.finish_reason, last.finish_reason] == [FinishReason.STOP] * 2


def test_only_words_are_shown_and_searches_are_counted() -> None:
    """A search costs money beside its tokens."""
    _, replies, live = talked()

    shown = "".join(one.text for one in live if isinstance(one, TextDelta))
    assert shown == "I look it up.At noon." + "High tide is at noon." * 2
    assert [reply.usage for reply in replies] == [
        Usage(9, 40, server_tool_calls=count, details=UsageDetails(web_searches=count))
        for count in (2, 1, 0)
    ]
    assert {type(one) for one in live} == {TextDelta, ProviderToolDelta, UsageSoFar}


async def test_a_stream_shows_what_the_server_runs() -> None:
    """A page can show the search; it is no call of ours."""
    answers = [streamed(PAUSED, "pause_turn", 2), streamed(ANSWER, "end_turn", 1)]
    async with WireServer(answers) as server:
        provider = HttpProvider(AnthropicMessages("m"), Endpoint(server.url, "k"))
        agent = Agent(provider, tools=[anthropic_web_search()])
        parts = [part async for part in agent.stream("When is high tide?").full_stream]
        await agent.aclose()

    runs = [part for part in parts if isinstance(part, ProviderToolDelta)]
    searched = '{"query": "tides \\u2014 today", "n": 1.5}'
    assert runs == [
        ProviderToolDelta(0, "web_search", "started"),
        ProviderToolDelta(0, "web_search", "running", searched),
        ProviderToolDelta(0, "web_search", "done"),
        ProviderToolDelta(1, "web_search", "started"),
        ProviderToolDelta(1, "web_search", "running", "{}"),
        ProviderToolDelta(1, "web_search", "failed"),
        ProviderToolDelta(2, "tide", "started"),
        ProviderToolDelta(2, "tide", "running", '{"port": "Kiel"}'),
        ProviderToolDelta(2, "tide", "failed"),
        ProviderToolDelta(3, "bash_code_execution", "done"),
        ProviderToolDelta(4, "web_search", "started"),
        ProviderToolDelta(4, "web_search", "running", '{"query": "moon"}'),
    ]
    assert not [part for part in parts if isinstance(part, ToolCallPart | ToolResultPart)]


WIRES: Mapping[str, Wire] = {
    "anthropic": AnthropicMessages("m"),
    "google": GoogleGemini("m"),
    "openai": OpenAIChat("m"),
    "openai-responses": OpenAIResponses("m"),
}
FORMS = {"a form of responses": "openai-responses", "a form of google": "google"}
SERVER_TOOLS: Mapping[str, AnyTool] = {
    "anthropic": anthropic_web_search(),
    "openai-responses": provider_tool({"type": "web_search"}, wire="openai-responses"),
    "google": provider_tool({"google_search": {}}, wire="google"),
    # Without a wire, the form decides.
    "a form of responses": provider_tool({"type": "web_search"}),
    "a form of google": provider_tool({"google_search": {}}),
}
on_another_wire = pytest.mark.parametrize(
    ("wire", "tool"),
    [
        pytest.param(wire, tool, id=f"{owner} on {name}")
        for name, wire in WIRES.items()
        for owner, tool in SERVER_TOOLS.items()
        if FORMS.get(owner, owner) != name
    ],
)


@on_another_wire
async def test_a_server_tool_of_another_wire_is_refused_at_once(wire: Wire, tool: AnyTool) -> None:
    """The caller must know that nobody will look anything up; the request is not sent."""
    async with WireServer() as server:
        provider = HttpProvider(wire, Endpoint(server.url, "k"))
        willing = Agent(ScriptedModel(["Yes."]), tools=[tool])

        with pytest.raises(ConfigError, match=f"tool '{tool.name}': .* Fix: "):
            Agent(provider, tools=[tool])
        with pytest.raises(ConfigError, match=f"'{tool.name}'"):
            willing.with_options(model=provider)
        with pytest.raises(ConfigError, match=f"'{tool.name}'"):
            await willing.generate("Look it up.", model=provider)
        with pytest.raises(ConfigError, match=f"'{tool.name}'"):
            await anext(provider.session().stream(ModelRequest(ASK, (tool.spec,))))

        assert server.requests == []
        assert Agent(provider, tools=[tool, pay], active_tools=["pay"])
        assert Agent(provider, tools=[tool], prepare_step=lambda _: None)


@on_another_wire
async def test_a_fallback_on_another_wire_is_sent_nothing(wire: Wire, tool: AnyTool) -> None:
    """A model that cannot search would answer from memory, as if it had searched."""
    async with WireServer() as server:
        provider = HttpProvider(wire, Endpoint(server.url, "k"))
        busy = ScriptedModel([Overloaded("busy")])
        agent = Agent(busy, tools=[tool], fallback_models=[provider])

        with pytest.raises(ConfigError, match=f"'{tool.name}'"):
            await agent.generate("Look it up.")

        assert server.requests == []


RUN_BY_CALLER: Mapping[str, Sequence[Mapping[str, object]]] = {
    "anthropic": [
        {"type": "bash_20250124", "name": "bash"},
        {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
        {"type": "memory_20250818", "name": "memory"},
        {"type": "computer_20251124", "name": "computer"},
        {"type": "custom", "name": "pay", "input_schema": {}},
    ],
    "google": [{"computerUse": {}}, {"computer_use": {}}],
    "openai-responses": [
        {"type": "apply_patch"},
        {"type": "computer"},
        {"type": "custom", "name": "pay"},
        {"type": "local_shell"},
        {"type": "namespace", "name": "crm", "tools": []},
        {"type": "shell"},
        {"type": "shell", "environment": {"type": "local"}},
        {"type": "tool_search", "execution": "client"},
    ],
}


@pytest.mark.parametrize(
    ("wire", "definition"),
    [
        pytest.param(wire, each, id=f"{wire} {' '.join(map(str, each.values()))}")
        for wire, definitions in RUN_BY_CALLER.items()
        for each in definitions
    ],
)
async def test_a_tool_that_its_server_does_not_run_is_refused(
    wire: str, definition: Mapping[str, object]
) -> None:
    """The reply would end with its call, no result would follow, and the run would be complete."""
    hosted = provider_tool(definition, name=None if "name" in definition else "tool", wire=wire)
    async with WireServer() as server:
        provider = HttpProvider(WIRES[wire], Endpoint(server.url, "k"))

        with pytest.raises(ConfigError, match=r"leaves to its caller.*give a function"):
            Agent(provider, tools=[hosted])
        with pytest.raises(ConfigError, match=r"options: tools: .*give a function"):
            Agent(provider, provider_options={"tools": [definition]})

        assert server.requests == []


@pytest.mark.parametrize(
    "definition",
    [
        {"type": "shell", "environment": {"type": "container_auto"}},
        {"type": "tool_search"},
        {"type": "programmatic_tool_calling"},
    ],
)
def test_the_same_tools_are_taken_where_the_server_runs_them(
    definition: Mapping[str, object],
) -> None:
    """OpenAI's container, its search and its programs."""
    OpenAIResponses("m").check_tool(provider_tool(definition).spec)


@pytest.mark.parametrize(
    ("wire", "options", "is_taken"),
    [
        ("anthropic", {"cache_control": {"type": "ephemeral"}}, True),
        ("openai", {"cache_control": {"type": "ephemeral"}}, False),
        ("anthropic", {"defer_loading": True, "allowed_callers": ["direct"]}, True),
        ("openai", {"defer_loading": True}, False),
        ("openai-responses", {"allowed_callers": ["programmatic"], "output_schema": {}}, True),
        ("google", {"responseJsonSchema": {"type": "string"}}, True),
        ("google", {"allowed_callers": ["direct"]}, False),
    ],
)
async def test_a_function_s_own_fields_are_taken_or_refused(
    wire: str, options: Mapping[str, object], is_taken: bool
) -> None:
    """At construction for a named model, before a request for a fallback."""
    own = tool(pay, provider_options=options)
    async with WireServer() as server:
        provider = HttpProvider(WIRES[wire], Endpoint(server.url, "k"))
        if is_taken:
            assert Agent(provider, tools=[own])
            return
        with pytest.raises(ConfigError, match="tool 'pay': provider_options"):
            Agent(provider, tools=[own])
        agent = Agent(ScriptedModel([Overloaded("busy")]), tools=[own], fallback_models=[provider])
        with pytest.raises(ConfigError, match="tool 'pay': provider_options"):
            await agent.generate("Pay.")
        assert server.requests == []


@pytest.mark.parametrize("name", sorted(WIRES.keys() & SERVER_TOOLS.keys()))
def test_a_wire_takes_its_own_server_tools(name: str) -> None:
    """With or without the name of the wire, where the form is its own."""
    spec = SERVER_TOOLS[name].spec

    for sent in (spec, evolve(spec, wire="")):
        WIRES[name].check_tool(sent)


CALL: tuple[Block, ...] = ({"type": "tool_use", "id": "t1", "name": "pay", "input": {}},)


def pay() -> str:
    """Pay."""
    return "paid"


def payer(url: str, runs: Path) -> tuple[Agent, SqliteStore]:
    """Return an agent as a new process would make it: with its own connection and store."""
    store = SqliteStore(runs)
    provider = HttpProvider(AnthropicMessages("m"), Endpoint(url, "k"))
    agent = Agent(provider, tools=[anthropic_code_execution(), pay], gate=ask("pay"), store=store)
    return agent, store


def test_a_paused_turn_goes_on_in_its_own_container(tmp_path: Path) -> None:
    """The code that the server was running stands in it (CONTRACT, row W26)."""

    async def asked() -> list[dict[str, Any]]:
        answers = [
            streamed(PAUSED, "pause_turn", 2, "cnt_1"),
            streamed(PAUSED, "pause_turn", 2, "cnt_2"),
            streamed(ANSWER, "end_turn", 1),
        ]
        async with WireServer(answers) as server:
            agent, store = payer(server.url, tmp_path / "runs.db")
            result = await agent.generate("When is high tide?")
            await agent.aclose()
            await store.aclose()
            assert result.text.endswith("High tide is at noon.")
            return [json.loads(request.body) for request in server.requests]

    bodies = asyncio.run(asked())

    assert [one.get("container") for one in bodies] == [None, "cnt_1", "cnt_2"]


def test_a_resumed_run_goes_on_in_its_container(
    tmp_path: Path,
) -> None:
    """The journal holds its id; so does a conversation that is handed on."""

    async def asked() -> list[dict[str, Any]]:
        answers = [
            streamed(CALL, "tool_use", 0, "cnt_1"),
            streamed(ANSWER, "end_turn", 1),
            streamed(ANSWER, "end_turn", 1),
        ]
        async with WireServer(answers) as server:
            first, store = payer(server.url, tmp_path / "runs.db")
            parked = await first.generate("Pay.", run_id="r")
            await first.aclose()
            await store.aclose()
            assert parked.end_reason is EndReason.PARKED
            second, store = payer(server.url, tmp_path / "runs.db")
            paid = await second.resume("r", approvals={"c0.0": True})
            await second.generate(messages=[*paid.messages, UserMessage("And now?")])
            await second.aclose()
            await store.aclose()
            return [json.loads(request.body) for request in server.requests]

    bodies = asyncio.run(asked())

    assert [one.get("container") for one in bodies] == [None, "cnt_1", "cnt_1"]
