"""The Responses encoder: what a request says, and what it refuses to say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graphloop.conversation.compaction import prune_reasoning
from graphloop.errors import ConfigError
from graphloop.media import Inline, MediaPart, Url
from graphloop.providers.openai_responses.server_tools import (
    openai_code_interpreter,
    openai_file_search,
    openai_image_generation,
    openai_web_search,
)
from graphloop.providers.openai_responses.wire import OpenAIResponses
from graphloop.tools import provider_tool
from graphloop.values import (
    AssistantMessage,
    Message,
    ModelRequest,
    OpaquePart,
    OutputSpec,
    ReasoningPart,
    Settings,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from tests.responses_talk import (
    ITEMS,
    SEARCH,
    WIRE,
    body,
    call,
    message,
    reasoning,
    recorded,
    stream,
    text,
)
from tests.transcripts import decoded

GO = UserMessage("Go.")
PAY = ToolSpec("pay", "Pay.", '{"type":"object","properties":{}}')


def asked(
    *messages: Message,
    tools: tuple[ToolSpec, ...] = (),
    choice: ToolChoice | None = None,
    settings: Settings | None = None,
    output: OutputSpec | None = None,
) -> dict[str, Any]:
    """Return the body of a request."""
    return body(
        ModelRequest(
            messages or (GO,),
            tools,
            choice or ToolChoice(),
            settings or Settings(),
            output,
        )
    )


def test_a_request_stores_nothing_and_asks_for_encrypted_reasoning() -> None:
    """The journal holds the conversation; without the reasoning, the model begins to think anew."""
    sent = asked()

    assert sent == {
        "model": "gpt-5",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "input": [{"role": "user", "content": "Go."}],
    }
    assert list(sent)[-1] == "input"


@pytest.mark.parametrize(
    "model", ["gpt-4o", "gpt-3.5-turbo", "chatgpt-4o-latest", "ft:gpt-4.1-mini:org::id"]
)
def test_models_that_do_not_reason_are_not_asked_for_reasoning(model: str) -> None:
    """OpenAI refuses such a request."""
    plain = body(ModelRequest((GO,)), OpenAIResponses(model))
    forced = body(ModelRequest((GO,)), OpenAIResponses(model, encrypted_reasoning=True))

    assert "include" not in plain
    assert forced["include"] == ["reasoning.encrypted_content"]
    never = OpenAIResponses("gpt-5", encrypted_reasoning=False)
    assert "include" not in body(ModelRequest((GO,)), never)
    # The caller knows better, such as of a deployment on Azure.
    assert "include" not in asked(settings=Settings(options='{"include":null}'))


def test_settings_have_the_names_of_the_wire() -> None:
    """And options of the caller go along, beside what the loop needs."""
    options = {"reasoning": {"effort": "low"}, "include": ["file_search_call.results"]}
    settings = Settings(
        max_tokens=9,
        temperature=0.5,
        top_p=0.9,
        parallel_tool_calls=False,
        options=json.dumps(options),
    )

    sent = asked(tools=(PAY,), settings=settings)

    assert sent["max_output_tokens"] == 9
    assert (sent["temperature"], sent["top_p"]) == (0.5, 0.9)
    assert sent["parallel_tool_calls"] is False
    assert sent["reasoning"] == {"effort": "low"}
    assert sent["include"] == ["reasoning.encrypted_content", "file_search_call.results"]
    assert "parallel_tool_calls" not in asked(settings=settings)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (Settings(seed=1), "Settings.seed: expected none"),
        (Settings(stop_sequences=("x",)), "Settings.stop_sequences: expected none"),
        (Settings(options='{"store":true}'), "found 'store'"),
        (Settings(options='{"previous_response_id":"r"}'), "found 'previous_response_id'"),
        (Settings(options='{"conversation":"c"}'), "found 'conversation'"),
        (Settings(options='{"background":true}'), "found 'background'"),
        (Settings(options='{"input":[]}'), "found 'input'"),
        (Settings(options='{"instructions":"x"}'), "found 'instructions'"),
        (Settings(options='{"include":"x"}'), "expected an array at 'include'"),
    ],
)
def test_what_the_wire_cannot_express_is_refused(settings: Settings, told: str) -> None:
    """An option that is dropped without a word is a wrong answer."""
    with pytest.raises(ConfigError, match=told):
        asked(settings=settings)


def test_a_tool_is_not_strict_unless_it_says_so() -> None:
    """The server would make optional parameters required."""
    (tool,) = asked(tools=(PAY,))["tools"]

    assert tool == {
        "type": "function",
        "name": "pay",
        "description": "Pay.",
        "strict": False,
        "parameters": {"type": "object", "properties": {}},
    }


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ToolChoice("required"), "required"),
        (ToolChoice("none"), "none"),
        (ToolChoice("tool", "pay"), {"type": "function", "name": "pay"}),
        (ToolChoice("tool", "web_search"), {"type": "web_search"}),
    ],
)
def test_a_choice_names_a_tool_in_its_own_form(choice: ToolChoice, expected: object) -> None:
    """A tool of the server is chosen by its type."""
    tools = (PAY, openai_web_search().spec)

    assert asked(tools=tools, choice=choice)["tool_choice"] == expected
    assert "tool_choice" not in asked(tools=tools)


def test_the_tools_of_the_server_have_their_definitions() -> None:
    """As the pages of the provider show them."""
    tools = (
        openai_web_search(allowed_domains=["python.org"], search_context_size="low"),
        openai_file_search(["vs_1"], max_num_results=3),
        openai_code_interpreter(file_ids=["file_1"]),
        openai_code_interpreter(container="cntr_1"),
        openai_image_generation(size="1024x1024", quality="low"),
    )

    sent = [asked(tools=(tool.spec,))["tools"][0] for tool in tools]

    assert sent == [
        {
            "type": "web_search",
            "filters": {"allowed_domains": ["python.org"]},
            "search_context_size": "low",
        },
        {"type": "file_search", "vector_store_ids": ["vs_1"], "max_num_results": 3},
        {"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["file_1"]}},
        {"type": "code_interpreter", "container": "cntr_1"},
        {"type": "image_generation", "size": "1024x1024", "quality": "low"},
    ]
    assert [tool.name for tool in tools[:2]] == ["web_search", "file_search"]


def test_an_output_schema_is_strict_where_the_server_allows_it() -> None:
    """Other text settings stay beside the schema."""
    closed = '{"type":"object","properties":{},"required":[],"additionalProperties":false}'
    settings = Settings(options='{"text":{"verbosity":"low"}}')

    strict = asked(output=OutputSpec("my answer", closed, "An answer."), settings=settings)
    loose = asked(output=OutputSpec("a", '{"type":"object"}'))

    assert strict["text"] == {
        "verbosity": "low",
        "format": {
            "type": "json_schema",
            "name": "my_answer",
            "description": "An answer.",
            "strict": True,
            "schema": json.loads(closed),
        },
    }
    assert loose["text"]["format"]["strict"] is False
    with pytest.raises(ConfigError, match="an object without 'format' at 'text'"):
        asked(
            output=OutputSpec("a", closed),
            settings=Settings(options='{"text":{"format":{"type":"text"}}}'),
        )


def test_results_answer_the_calls_before_them_in_order() -> None:
    """By the server's own ids, which the loop makes unique."""
    twice = (ToolCall("c", "f", "{}"), ToolCall("c", "g", "{}"), ToolCall("", "h", ""))
    turn = AssistantMessage(twice, "openai-responses")
    results = [ToolResult("k", "c", name, name) for name in "fgh"]

    sent = asked(GO, turn, *results)["input"][1:]

    assert [(item["type"], item["call_id"]) for item in sent] == [
        *(("function_call", call_id) for call_id in ("c", "call00001", "call00002")),
        *(("function_call_output", call_id) for call_id in ("c", "call00001", "call00002")),
    ]
    assert sent[2]["arguments"] == "{}"
    with pytest.raises(ConfigError, match="after all 0 call"):
        asked(GO, results[0])


def test_a_failed_result_says_so() -> None:
    """The wire has no flag for errors, and takes pictures in a result."""
    turn = AssistantMessage((ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}")))
    picture = MediaPart("image/png", Inline(b"hi"))
    results = (
        ToolResult("k", "a", "f", "no disk", status="error"),
        ToolResult("l", "b", "f", (TextPart("look"), picture), status="error"),
    )

    *_, first, second = asked(GO, turn, *results)["input"]

    assert first["output"] == "Error: no disk"
    assert second["output"] == [
        {"type": "input_text", "text": "Error:"},
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"},
    ]


@pytest.mark.parametrize("name", ITEMS)
def test_the_items_of_a_reply_go_back_as_they_came(name: str) -> None:
    """Reasoning, ids, phases, citations and the runs of the server's tools."""
    reply = decoded(WIRE, recorded(stream(ITEMS[name])))[1]

    sent = asked(GO, reply.message)["input"][1:]

    if name == "made-up parallel call":
        assert [item["name"] for item in sent] == ["get_weather", "now"]
        return
    expected = [dict(item) for item in ITEMS[name]]
    for item in expected:
        if item["type"] == "reasoning":
            item.setdefault("content", [])
        if item["type"] == "function_call":
            del item["status"]
        for part in item.get("content", ()):
            part.pop("logprobs", None)
    if name == "same call ids":
        expected[1]["call_id"] = "call00001"
    if name == "bad arguments":
        expected[0]["arguments"] = "{}"
    assert sent == expected


def test_a_turn_of_another_wire_says_only_what_every_wire_says() -> None:
    """Its reasoning, opaque parts and extra fields are its own server's."""
    parts = (
        ReasoningPart("hm", "signed"),
        OpaquePart('{"type":"x"}'),
        TextPart("Yes.", '{"id":"x"}'),
        ToolCall("a", "f", "{}", '{"id":"x"}'),
    )

    sent = asked(SystemMessage("Be brief."), GO, AssistantMessage(parts, "anthropic"))["input"]

    assert sent == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Go."},
        {"type": "message", "role": "assistant", "content": "Yes."},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
    ]


def test_reasoning_that_nothing_follows_is_not_sent() -> None:
    """The server refuses it: the reply was cut there."""
    cut = AssistantMessage((ReasoningPart("hm", "signed"),), "openai-responses")

    assert asked(GO, cut, GO)["input"] == [{"role": "user", "content": "Go."}] * 2


def test_a_message_that_lost_its_reasoning_refers_to_none() -> None:
    """The server refuses an item by its id if the reasoning that it followed is missing."""
    items = (
        reasoning("rs_1", "Hm.", encrypted="e"),
        {**SEARCH, "id": "ws_1"},
        message("msg_1", text("Said.")),
        call("fc_1", "call_1", "pay", {}),
    )
    _, reply = decoded(WIRE, recorded(stream(items)))
    said = reply.message
    results = [ToolResult("c0.0", "call_1", "pay", "Paid.")]
    later: list[Message] = [
        UserMessage("And?"),
        AssistantMessage((TextPart("Done."),)),
        UserMessage("Well."),
    ]

    whole = asked(GO, said, *results, *later)["input"]
    pruned = asked(*prune_reasoning((GO, said, *results, *later), 1))["input"]

    assert [item.get("id") for item in whole[1:5]] == ["rs_1", "ws_1", "msg_1", "fc_1"]
    assert pruned[1:3] == [
        {"type": "message", "role": "assistant", "content": "Said."},
        {"type": "function_call", "call_id": "call_1", "name": "pay", "arguments": "{}"},
    ]
    assert "_1" not in json.dumps(pruned).replace("call_1", "")


@pytest.mark.parametrize("content", ['"text"', "[]", "1", "null"])
def test_an_extra_of_another_form_is_refused_by_name(content: str) -> None:
    """A caller may build a message by hand, with a text in place of the fields of a text."""
    part = TextPart("Hi.", f'{{"content":{content}}}')

    with pytest.raises(ConfigError, match=r"TextPart\.extra: content: expected an object, found"):
        asked(GO, AssistantMessage((part,), "openai-responses"), GO)


@pytest.mark.parametrize(
    "approval", [{}, {"require_approval": "always"}, {"require_approval": {"never": {}}}]
)
def test_a_server_tool_whose_approval_no_run_can_wait_for_is_refused(
    approval: dict[str, Any],
) -> None:
    """OpenAI's server would end its reply with a question that reaches no person."""
    server = {"type": "mcp", "server_label": "crm", "server_url": "https://crm.example", **approval}
    hosted = provider_tool(server, name="crm", wire="openai-responses").spec
    options = Settings(options=json.dumps({"tools": [server]}))

    with pytest.raises(ConfigError, match=r"tool 'crm': require_approval: expected 'never'"):
        WIRE.check_tool(hosted)
    with pytest.raises(ConfigError, match=r"Settings\.options: tools: require_approval: expected"):
        asked(settings=options)


def test_a_server_tool_that_asks_for_no_approval_is_sent() -> None:
    """The caller has said that OpenAI's server need not ask."""
    server = {"type": "mcp", "server_label": "crm", "require_approval": "never"}
    hosted = provider_tool(server, name="crm", wire="openai-responses").spec

    assert asked(tools=(hosted,))["tools"] == [server]


def test_a_picture_of_the_model_without_its_bytes_is_refused() -> None:
    """The caller may have written the message; the wire has no form for it."""
    drawn = AssistantMessage((MediaPart("image/png", Url("https://x/a.png")),), "openai-responses")

    with pytest.raises(ConfigError, match="expected media that the wire"):
        asked(GO, drawn)
