"""Requests of one session: the bytes of sent messages are kept, and never mixed with others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.base import Wire
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.run import History
from graphloop.values import (
    AssistantMessage,
    Message,
    ModelRequest,
    OutputSpec,
    Settings,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
)

SYSTEM, HELLO = SystemMessage("s"), UserMessage("hello")
CALL = AssistantMessage((ToolCall("a", "f", "{}"),))
SAID = AssistantMessage((TextPart("72"),))
RESULT = ToolResult("c0.0", "a", "f", "x")
MESSAGES: list[Message] = [SYSTEM, HELLO, CALL, RESULT]
WEATHER = ToolSpec("get_weather", "Weather now.", '{"type":"object", "properties":{}}')
SCHEMA = '{ "type": "object", "properties": {}, "additionalProperties": false }'

wires = pytest.mark.parametrize("wire", [AnthropicMessages("m"), OpenAIChat("m")], ids=repr)


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
