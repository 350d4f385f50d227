"""Requests of the OpenAI chat wire: the head, the join, and what is remembered."""

from __future__ import annotations

import json

import pytest

from graphloop.errors import ConfigError
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.values import (
    ModelRequest,
    OutputSpec,
    Settings,
    TextPart,
    ToolChoice,
    ToolSpec,
)
from tests.openai_talk import LONDON, NYC, QUESTION, SYSTEM, body, result, said, with_settings

WEATHER = ToolSpec("get_weather", "Current weather.", '{ "type": "object" }')


# The array of the seed document "Messages & the Wire Format", its spaces left out.
SIX_MESSAGES = (
    '[{"role":"system","content":"You are a helpful weather assistant."},'
    '{"role":"user","content":"What\'s the weather in NYC and London?"},'
    '{"role":"assistant","content":"","tool_calls":['
    '{"id":"call_a","type":"function",'
    '"function":{"name":"get_weather","arguments":"{\\"city\\":\\"NYC\\"}"}},'
    '{"id":"call_b","type":"function",'
    '"function":{"name":"get_weather","arguments":"{\\"city\\":\\"London\\"}"}}]},'
    '{"role":"tool","tool_call_id":"call_a","content":"72°F and sunny"},'
    '{"role":"tool","tool_call_id":"call_b","content":"55°F and rainy"},'
    '{"role":"assistant","content":"NYC is 72°F and sunny; London is 55°F and rainy."}]'
)


def test_the_six_message_example_is_encoded_to_exactly_its_array() -> None:
    """The seed's array is the wire, key order included."""
    messages = (
        SYSTEM,
        QUESTION,
        said(NYC, LONDON),
        result("72°F and sunny", "call_a"),
        result("55°F and rainy", "call_b"),
        said(TextPart("NYC is 72°F and sunny; London is 55°F and rainy.")),
    )

    encoded = b"".join(OpenAIChat("gpt-4o").encoder().encode(ModelRequest(messages))).decode()

    head = '{"model":"gpt-4o","stream":true,"stream_options":{"include_usage":true},"messages":'
    assert head + SIX_MESSAGES + "}" == encoded


def test_the_head_has_one_order() -> None:
    """The head is the same in every turn, and a tool's schema is sent as it was written."""
    request = ModelRequest(
        (QUESTION,), (WEATHER,), ToolChoice("required"), Settings(temperature=0.5)
    )

    encoded = b"".join(OpenAIChat("m").encoder().encode(request)).decode()

    assert encoded.startswith(
        '{"model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":0.5,'
        '"tools":[{"type":"function","function":{"name":"get_weather",'
        '"description":"Current weather.","parameters":{ "type": "object" }}}],'
        '"tool_choice":"required","messages":['
    )


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ToolChoice("required"), "required"),
        (ToolChoice("none"), "none"),
        (ToolChoice("tool", "f"), {"type": "function", "function": {"name": "f"}}),
    ],
)
def test_a_tool_choice_is_sent_in_the_wires_own_form(choice: ToolChoice, expected: object) -> None:
    """How freely the model may choose decides whether a loop can end at all."""
    assert expected == body(ModelRequest((QUESTION,), (WEATHER,), choice))["tool_choice"]


def test_without_tools_nothing_about_tools_is_sent() -> None:
    """Servers refuse an empty list of tools, and a choice among none."""
    request = ModelRequest(
        (QUESTION,), (), ToolChoice("required"), Settings(parallel_tool_calls=False)
    )

    assert not {"tools", "tool_choice", "parallel_tool_calls"} & body(request).keys()


def test_every_setting_reaches_the_body() -> None:
    """Every option takes effect; OpenAI's reasoning models refuse `max_tokens`."""
    for model in ("o1-mini", "o3", "gpt-5.1", "gpt-6", "ft:o4-mini:org::id", "openai/gpt-5"):
        limited = with_settings(Settings(max_tokens=5), model)
        assert ("max_tokens" in limited, limited["max_completion_tokens"]) == (False, 5)
    settings = Settings(9, 0.5, 0.9, ("END",), 7, parallel_tool_calls=False)

    found = with_settings(settings, tools=(WEATHER,))

    expected = {
        "max_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["END"],
        "seed": 7,
        "parallel_tool_calls": False,
    }
    assert expected == {name: found[name] for name in expected}


SCHEMA = '{ "type": "object", "properties": {}, "additionalProperties": false }'


def test_an_output_is_sent_as_the_format_of_the_answer() -> None:
    """Its schema byte for byte, under a name the wire allows."""
    request = ModelRequest((QUESTION,), (WEATHER,), output=OutputSpec("my answer", SCHEMA, "It."))

    encoded = b"".join(OpenAIChat("m").encoder().encode(request)).decode()

    assert (
        ',"response_format":{"type":"json_schema","json_schema":{"name":"my_answer",'
        f'"description":"It.","strict":true,"schema":{SCHEMA}}}}},"tools":[' in encoded
    )
    json.loads(encoded)


def test_without_an_output_nothing_is_said_of_a_format() -> None:
    """Servers without the field refuse it; one of the options is sent as it is."""
    options = Settings(options='{"response_format":{"type":"json_object"}}')

    assert "response_format" not in body(ModelRequest((QUESTION,)))
    assert with_settings(options)["response_format"] == {"type": "json_object"}


def test_two_forms_of_one_answer_are_refused() -> None:
    """One of them would be dropped in silence."""
    options = Settings(options='{"response_format":{"type":"json_object"}}')

    with pytest.raises(ConfigError, match=r"response_format.*'answer'"):
        with_settings(options, output=OutputSpec("answer", SCHEMA))


STRICT = ToolSpec(
    "get_weather",
    "Current weather.",
    '{"type":"object","properties":{},"required":[],"additionalProperties":false}',
    definition='{"strict":true}',
)


def test_a_function_s_own_fields_are_sent_with_it() -> None:
    """The server keeps the model to the schema where it can."""
    sent = body(ModelRequest((QUESTION,), (STRICT,)))["tools"][0]["function"]

    assert list(sent) == ["name", "description", "parameters", "strict"]
    assert sent["strict"] is True


@pytest.mark.parametrize(
    ("definition", "parameters", "says"),
    [
        ('{"cache_control":{}}', "{}", r"knows \(strict\), found 'cache_control'.* Fix"),
        ('{"strikt":true}', "{}", r"Did you mean 'strict'"),
        ('{"strict":"yes"}', "{}", r"strict: expected true or false, found 'yes'"),
        ('{"strict":true}', '{"type":"object"}', r"strict: expected parameters .* Fix"),
    ],
)
def test_a_field_that_this_wire_does_not_take_is_refused(
    definition: str, parameters: str, says: str
) -> None:
    """The server would ignore it, or answer 400 in the middle of a run."""
    tool = ToolSpec("f", "", parameters, definition=definition)

    with pytest.raises(ConfigError, match=f"tool 'f': provider_options.*{says}"):
        OpenAIChat("m").check_tool(tool)
    with pytest.raises(ConfigError, match=f"tool 'f': provider_options.*{says}"):
        body(ModelRequest((QUESTION,), (tool,)))


def test_a_providers_tool_is_refused_before_sending() -> None:
    """Dropped in silence, the model would make up what it should have looked up."""
    tool = ToolSpec("web_search", "", "", kind="provider", definition='{"type":"web_search"}')
    encoder = OpenAIChat("m").encoder()

    with pytest.raises(ConfigError, match=r"'web_search'.*another wire"):
        encoder.encode(ModelRequest((QUESTION,), (WEATHER, tool)))

    assert b"get_weather" in b"".join(encoder.encode(ModelRequest((QUESTION,), (WEATHER,))))
