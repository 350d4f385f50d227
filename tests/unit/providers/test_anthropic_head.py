"""The Anthropic wire as a provider sees it, and the head of a request in one order."""

import json

import pytest
from anthropic.types import ToolParam
from pydantic import TypeAdapter

from graphloop.errors import ConfigError
from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.values import (
    ModelRequest,
    OutputSpec,
    Settings,
    SystemMessage,
    ToolChoice,
    ToolSpec,
    evolve,
)
from tests.anthropic_talk import HELLO, WEATHER, WIRE, body

ANY_NUMBER = Settings()
MANY = Settings(parallel_tool_calls=True)
ONE = Settings(parallel_tool_calls=False)


def test_a_full_head_stands_in_one_order_before_the_messages() -> None:
    """Equal requests must be equal bytes, or no cache of the server is ever hit."""
    fields = body(
        ModelRequest(
            (SystemMessage("Be brief."), SystemMessage("Be kind."), HELLO),
            (WEATHER,),
            ToolChoice("required"),
            Settings(
                max_tokens=9,
                temperature=0.5,
                top_p=0.9,
                stop_sequences=("END",),
                parallel_tool_calls=False,
                options='{"top_k":5,"metadata":{"a":1}}',
            ),
        )
    )

    assert list(fields) == [
        *("model", "max_tokens", "stream", "temperature", "top_p", "stop_sequences"),
        *("top_k", "metadata", "tools", "tool_choice", "system", "messages"),
    ]
    assert (fields["max_tokens"], fields["temperature"], fields["top_p"]) == (9, 0.5, 0.9)
    assert (fields["stop_sequences"], fields["top_k"]) == (["END"], 5)
    assert fields["tools"] == [
        {
            "name": "get_weather",
            "description": "Weather now.",
            "input_schema": {"type": "object", "properties": {}},
        }
    ]
    assert fields["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    assert fields["system"] == "Be brief.\n\nBe kind."


@pytest.mark.parametrize(
    ("choice", "settings", "expected"),
    [
        (ToolChoice(), ANY_NUMBER, None),
        (ToolChoice(), MANY, None),
        (ToolChoice(), ONE, {"type": "auto", "disable_parallel_tool_use": True}),
        (ToolChoice("required"), ANY_NUMBER, {"type": "any"}),
        (ToolChoice("none"), ONE, {"type": "none"}),
        (ToolChoice("tool", "get_weather"), ANY_NUMBER, {"type": "tool", "name": "get_weather"}),
        (
            ToolChoice("tool", "get_weather"),
            ONE,
            {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True},
        ),
    ],
)
def test_every_tool_choice_has_its_form(
    choice: ToolChoice, settings: Settings, expected: object
) -> None:
    """The wire's words differ from ours, and `none` takes no flag."""
    assert body(ModelRequest((HELLO,), (WEATHER,), choice, settings)).get("tool_choice") == expected


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (ModelRequest((HELLO,), settings=Settings(seed=1)), "seed"),
        (ModelRequest((HELLO,), tool_choice=ToolChoice("required")), "tool_choice"),
        (ModelRequest((HELLO,), (WEATHER,), ToolChoice("tool", "get_wether")), "get_weather"),
    ],
)
def test_what_this_wire_cannot_say_is_refused_by_name(request_: ModelRequest, words: str) -> None:
    """An option that is dropped in silence is worse than an error."""
    with pytest.raises(ConfigError, match=words):
        WIRE.encoder().encode(request_)


def test_server_tools_of_the_options_stand_beside_the_own_tools() -> None:
    """They have no executor here, so options are the only way to declare them."""
    settings = Settings(options='{"tools":[{"type":"web_search_1","name":"web_search"}]}')
    choice = ToolChoice("tool", "web_search")

    fields = body(ModelRequest((HELLO,), (WEATHER,), choice, settings))

    assert [tool["name"] for tool in fields["tools"]] == ["get_weather", "web_search"]


SCHEMA = '{ "type": "object", "properties": {}, "additionalProperties": false }'
OUTPUT = OutputSpec("answer", SCHEMA)


def test_an_output_is_sent_as_the_format_of_the_answer() -> None:
    """Then the server lets the model write nothing but the schema's form."""
    request = ModelRequest((HELLO,), output=OUTPUT)

    whole = b"".join(WIRE.encoder().encode(request)).decode()

    assert f'"output_config":{{"format":{{"type":"json_schema","schema":{SCHEMA}}}}},' in whole
    assert list(json.loads(whole)) == ["model", "max_tokens", "stream", "output_config", "messages"]


def test_an_output_stands_beside_the_effort_of_the_options() -> None:
    """One field of the wire holds both."""
    settings = Settings(options='{"output_config":{"effort":"low"},"top_k":5}')

    fields = body(ModelRequest((HELLO,), settings=settings, output=OUTPUT))

    form = {"type": "json_schema", "schema": json.loads(SCHEMA)}
    assert fields["output_config"] == {"effort": "low", "format": form}
    assert fields["top_k"] == 5


@pytest.mark.parametrize("config", ['{"format":{}}', "[]", "null"])
def test_two_forms_of_one_answer_are_refused(config: str) -> None:
    """One of them would be dropped in silence."""
    settings = Settings(options=f'{{"output_config":{config}}}')

    with pytest.raises(ConfigError, match=r"output_config.*'answer'"):
        body(ModelRequest((HELLO,), settings=settings, output=OUTPUT))


SEARCH = ToolSpec(
    "web_search",
    "",
    "",
    kind="provider",
    definition='{"type":"web_search_20250305", "name":"web_search", "max_uses":5}',
)


def test_a_tool_of_the_provider_is_sent_by_its_own_definition() -> None:
    """Only the server knows what it means; not a byte of it is ours to change."""
    request = ModelRequest((HELLO,), (SEARCH, WEATHER), ToolChoice("tool", "web_search"))

    whole = b"".join(WIRE.encoder().encode(request)).decode()

    assert f'"tools":[{SEARCH.definition},{{"name":"get_weather",' in whole
    assert json.loads(whole)["tool_choice"] == {"type": "tool", "name": "web_search"}


OPTIONS = {
    "cache_control": {"type": "ephemeral", "ttl": "1h"},
    "defer_loading": True,
    "allowed_callers": ["code_execution_20250825"],
    "strict": True,
    "input_examples": [{"city": "Oslo"}],
    "eager_input_streaming": True,
}


def test_a_function_s_own_fields_are_those_that_anthropic_publishes() -> None:
    """A long list of tools is cached, loaded when it is searched, or called by code."""
    tool = evolve(WEATHER, definition=json.dumps(OPTIONS))

    sent = body(ModelRequest((HELLO,), (tool,)))["tools"][0]

    published: TypeAdapter[object] = TypeAdapter(ToolParam)
    assert json.loads(published.dump_json(published.validate_python(sent))) == sent
    assert {name: sent[name] for name in OPTIONS} == OPTIONS
    assert sent["input_schema"]["additionalProperties"] is False


def test_a_strict_function_that_the_api_cannot_enforce_is_refused() -> None:
    """Anthropic answers 400 to an open object in a strict tool."""
    tool = ToolSpec("f", "", '{"type":"object"}', definition='{"strict":true}')

    with pytest.raises(ConfigError, match=r"tool 'f': parameters: .*any name.*leave strict out"):
        WIRE.check_tool(tool)


@pytest.mark.parametrize(
    ("definition", "says"),
    [
        ('{"cache_controll":{}}', "Did you mean 'cache_control'"),
        ('{"defer_loading":1}', "defer_loading: expected true or false, found 1"),
        ('{"cache_control":true}', "cache_control: expected an object"),
        ('{"allowed_callers":{}}', "allowed_callers: expected an array"),
    ],
)
def test_a_field_that_this_wire_does_not_take_is_refused(definition: str, says: str) -> None:
    """Before the request, with the field and what it takes."""
    tool = evolve(WEATHER, definition=definition)

    with pytest.raises(ConfigError, match=says):
        WIRE.check_tool(tool)


@pytest.mark.parametrize("definition", ["", "[]", "{"])
def test_a_definition_that_is_no_object_is_refused(definition: str) -> None:
    """It would break the whole request."""
    tool = ToolSpec("web_search", "", "", kind="provider", definition=definition)

    with pytest.raises(ConfigError, match="'web_search': definition"):
        body(ModelRequest((HELLO,), (tool,)))


def test_the_wire_names_itself_its_path_and_its_headers() -> None:
    """What the HTTP side needs to know, and nothing it could get wrong."""
    wire = AnthropicMessages("m", max_tokens_default=5, betas=("a", "b"))

    assert (wire.name, wire.model, wire.path) == ("anthropic", "m", "/v1/messages")
    assert WIRE.headers("k") == {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    assert wire.headers("k")["anthropic-beta"] == "a,b"
    assert b'"max_tokens":5' in b"".join(wire.encoder().encode(ModelRequest((HELLO,))))
    assert not wire.decoder().complete


def test_a_wire_without_a_model_or_with_no_tokens_is_refused() -> None:
    """Both would fail at the server, later and in other words."""
    with pytest.raises(ConfigError, match="model"):
        AnthropicMessages("")
    with pytest.raises(ConfigError, match="max_tokens_default"):
        AnthropicMessages("m", max_tokens_default=0)
