"""Requests on every wire: kept bytes, and the promises that no wire may break.

A new wire adds itself to `WIRES`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from graphloop.errors import ConfigError
from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.base import Wire
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.run import History
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
    ToolResult,
    ToolSpec,
    UserMessage,
    evolve,
)

SYSTEM, HELLO = SystemMessage("s"), UserMessage("hello")
CALL = AssistantMessage((ToolCall("a", "f", "{}"),))
SAID = AssistantMessage((TextPart("72"),))
RESULT = ToolResult("c0.0", "a", "f", "x")
MESSAGES: list[Message] = [SYSTEM, HELLO, CALL, RESULT]
WEATHER = ToolSpec("get_weather", "Weather now.", '{"type":"object", "properties":{}}')
SCHEMA = '{ "type": "object", "properties": {}, "additionalProperties": false }'

WIRES: tuple[Wire, ...] = (AnthropicMessages("m"), OpenAIChat("m"))
wires = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)


def body(wire: Wire, request: ModelRequest) -> bytes:
    """Return what a session sends first."""
    return b"".join(wire.encoder().encode(request))


@wires
@pytest.mark.parametrize(
    "earlier",
    [
        [],
        [SYSTEM],
        MESSAGES[:3],
        [HELLO],
        [SYSTEM, UserMessage("Another question")],
        [*MESSAGES, SAID, HELLO],
    ],
)
def test_what_was_encoded_before_never_changes_what_is_sent(
    wire: Wire, earlier: list[Message]
) -> None:
    """A compacted or replaced history must not be mixed with the one of before."""
    forms: Sequence[Sequence[Message]] = (MESSAGES, tuple(MESSAGES), History[Message](MESSAGES))
    for before in (earlier, History[Message](earlier)):
        for now in forms:
            encoder = wire.encoder()
            encoder.encode(ModelRequest(before))

            found = b"".join(encoder.encode(ModelRequest(now)))

            assert body(wire, ModelRequest(MESSAGES)) == found


@wires
def test_a_list_changed_by_its_owner_is_encoded_anew(wire: Wire) -> None:
    """Only a History is promised not to change."""
    encoder, messages = wire.encoder(), [*MESSAGES]
    encoder.encode(ModelRequest(messages))
    messages[1] = UserMessage("changed")

    found = b"".join(encoder.encode(ModelRequest(messages)))

    assert body(wire, ModelRequest(messages)) == found


@wires
def test_old_messages_are_not_encoded_again_and_parts_are_few(wire: Wire) -> None:
    """Work is in proportion to what is new; thousands of parts would slow each request."""
    encoder = wire.encoder()
    history = History[Message]([UserMessage("long " * 1_000), SAID])
    first, most = encoder.encode(ModelRequest(history)), 0

    second = encoder.encode(ModelRequest(history.append(HELLO, SAID)))
    for turn in range(500):
        history = history.append(UserMessage("go on" * (turn % 7)), SAID)
        most = max(most, len(encoder.encode(ModelRequest(history))))

    assert first[1] is second[1]
    assert most < 20
    assert body(wire, ModelRequest(history)) == b"".join(encoder.encode(ModelRequest(history)))


@wires
@pytest.mark.parametrize(
    "request_",
    [
        ModelRequest(MESSAGES, (WEATHER,), settings=Settings(max_tokens=1)),
        ModelRequest(MESSAGES, output=OutputSpec("answer", SCHEMA)),
    ],
)
def test_a_change_of_the_head_leaves_the_messages_alone(wire: Wire, request_: ModelRequest) -> None:
    """Tools, settings and the form of the answer may change from turn to turn."""
    encoder = wire.encoder()
    first = encoder.encode(ModelRequest(MESSAGES))

    second = encoder.encode(request_)

    assert first[1] is second[1]
    assert body(wire, request_) == b"".join(second)
    assert first == encoder.encode(ModelRequest(MESSAGES))


@wires
@pytest.mark.parametrize(
    ("request_", "place"),
    [
        *[
            (ModelRequest(MESSAGES, (ToolSpec("f", "", parameters),)), "'f': parameters")
            for parameters in ("", "{", "[]", "{}, 1")
        ],
        *[
            (ModelRequest(MESSAGES, output=OutputSpec("answer", schema)), "'answer': schema")
            for schema in ("", "{", "[]")
        ],
        (ModelRequest(MESSAGES, settings=Settings(options="[]")), "options"),
    ],
)
def test_json_that_is_no_object_is_refused_by_its_place(
    wire: Wire, request_: ModelRequest, place: str
) -> None:
    """Spliced in as it is written, it would break the whole body."""
    with pytest.raises(ConfigError, match=place):
        body(wire, request_)


@wires
@pytest.mark.parametrize("extra", ["{", "[]"])
def test_a_refused_request_harms_no_later_one(wire: Wire, extra: str) -> None:
    """The caller mends the message and goes on; half of it must not be remembered."""
    encoder = wire.encoder()
    before = b"".join(encoder.encode(ModelRequest(MESSAGES)))
    call = ToolCall("a", "f", "{}", extra)

    with pytest.raises(ConfigError, match="extra"):
        encoder.encode(ModelRequest([*MESSAGES, AssistantMessage((call,), wire.name)]))

    assert before == b"".join(encoder.encode(ModelRequest(MESSAGES)))


@wires
@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("get_weather-2", "get_weather-2"),
        ("functions.get weather", "functions_get_weather"),
        ("", "_"),
        ("x" * 200, "x" * 64),
        ("é\n", "__"),
    ],
)
def test_a_name_that_the_model_made_up_goes_back_as_a_legal_one(
    wire: Wire, name: str, legal: str
) -> None:
    """Servers refuse every later request of a history with any other."""
    turn = AssistantMessage((ToolCall("a", name, "{}"),), wire.name)

    assert f'"name":"{legal}"'.encode() in body(wire, ModelRequest((HELLO, turn, RESULT)))


@wires
@pytest.mark.parametrize("broken", ["", "{", '{"a":1', "[1]", "null", '"x"', "{}{}"])
def test_arguments_that_are_no_object_are_never_echoed(wire: Wire, broken: str) -> None:
    """Broken JSON in a history makes some servers fail every later request."""
    turns = [AssistantMessage((ToolCall("a", "f", text),)) for text in (broken, "{}")]

    sent, empty = [body(wire, ModelRequest((HELLO, turn, RESULT))) for turn in turns]

    assert sent == empty


@wires
def test_the_data_of_another_wire_stays_behind(wire: Wire) -> None:
    """Signatures and fields of a server mean nothing, or harm, to another server."""
    text, call = TextPart("So", '{"odd":1}'), ToolCall("a", "f", "{}", '{"odd":1}')
    foreign = (ReasoningPart("Hm", "odd"), OpaquePart('{"odd":1}'), text, call)
    plain = AssistantMessage((TextPart("So"), ToolCall("a", "f", "{}")))

    for other in ("", "odd"):
        turn = AssistantMessage(foreign, other, '{"odd":1}')
        assert body(wire, ModelRequest((HELLO, turn, RESULT))) == body(
            wire, ModelRequest((HELLO, plain, RESULT))
        )


@wires
def test_half_a_character_never_stops_a_request(wire: Wire) -> None:
    """A tool may return anything, and a stream may break in a character."""
    half, json_half = "\ud83d", '{"e":"\ud83d"}'
    call = ToolCall(half, "f", json_half, json_half)
    turn = AssistantMessage((TextPart(half), call), wire.name, json_half)
    tool = ToolSpec("t", half, '{"title":"\ud83d"}')
    settings = Settings(options=json_half, stop_sequences=(half,))
    messages = (
        SystemMessage(half),
        UserMessage(half + "\udc69"),
        turn,
        evolve(RESULT, content=half),
    )

    sent = body(wire, ModelRequest(messages, (tool,), settings=settings)).decode()

    assert json.loads(sent)
    assert "\U0001f469" in sent
    assert sent.count("\ufffd") >= 6
