"""The container of the server's tools: what is kept of it, and what the next request says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graphloop.errors import ConfigError
from graphloop.providers.anthropic.container import container_to_keep
from graphloop.run import History
from graphloop.values import (
    AssistantMessage,
    Message,
    ModelRequest,
    Settings,
    TextPart,
    ToolSpec,
    UserMessage,
)
from tests.anthropic_talk import HELLO, START, STOP, WEATHER, WIRE, body, message_delta
from tests.transcripts import heard

CODE = ToolSpec(
    "code_execution",
    "",
    "",
    kind="provider",
    definition='{"type":"code_execution_20250825","name":"code_execution"}',
)
SKILLS = {"skills": [{"type": "anthropic", "skill_id": "xlsx"}]}


def turn(container: str = "", wire: str = "anthropic", text: str = "Wait.") -> AssistantMessage:
    """Return a turn that told this container."""
    return AssistantMessage((TextPart(text),), wire, container_to_keep({"id": container}))


def sent(*messages: Message, options: object = None, tool: ToolSpec = CODE) -> Any:
    """Return what the request says of a container; "absent" where it says nothing."""
    settings = Settings(options="" if options is None else json.dumps(options))
    request = ModelRequest((HELLO, *messages), (tool,), settings=settings)
    return body(request).get("container", "absent")


@pytest.mark.parametrize(
    ("container", "kept"),
    [
        ({"id": "cnt_1", "expires_at": "2030-01-01T00:00:00Z"}, '{"container":"cnt_1"}'),
        ({"id": ""}, ""),
        ({"id": 5}, ""),
        ({}, ""),
        ("cnt_1", ""),
        (None, ""),
    ],
)
def test_a_turn_keeps_the_id_of_its_container(container: object, kept: str) -> None:
    """All else of it is for people, in the reply's metadata."""
    reply = heard(WIRE, (START, message_delta(stop_reason="x", container=container), STOP))[1]

    assert reply.message.extra == container_to_keep(container) == kept


@pytest.mark.parametrize(
    ("messages", "container"),
    [
        ([turn("cnt_1")], "cnt_1"),
        ([turn("cnt_1"), HELLO, turn("cnt_2"), HELLO], "cnt_2"),
        ([turn("cnt_1"), HELLO, turn(), HELLO], "cnt_1"),
        ([turn("cnt_1"), HELLO, turn("cnt_9", "script")], "cnt_1"),
        ([turn("cnt_1", text=" ")], "cnt_1"),
        ([turn()], "absent"),
        ([], "absent"),
    ],
)
def test_the_last_container_that_was_told_is_sent(messages: list[Message], container: str) -> None:
    """A turn that used none says nothing of it; what is no turn of this wire neither."""
    assert sent(*messages) == container


@pytest.mark.parametrize(
    ("options", "container"),
    [
        ({"container": "cnt_mine"}, "cnt_mine"),
        ({"container": {"id": "cnt_mine", **SKILLS}}, {"id": "cnt_mine", **SKILLS}),
        ({"container": None}, None),
        ({"container": SKILLS}, {**SKILLS, "id": "cnt_1"}),
        ({"container": {"id": None, **SKILLS}}, {"id": "cnt_1", **SKILLS}),
        ({"container": {}}, "cnt_1"),
        ({"top_k": 5}, "cnt_1"),
    ],
)
def test_a_container_that_the_caller_names_is_left_alone(
    options: object, container: object
) -> None:
    """What says no id is filled in (CONTRACT §5.6)."""
    assert sent(turn("cnt_1"), options=options) == container


def test_without_server_tools_no_container_is_sent() -> None:
    """Tools may have been withdrawn, or another agent has taken the conversation over."""
    assert sent(turn("cnt_1"), tool=WEATHER) == "absent"
    tools = {"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]}
    assert sent(turn("cnt_1"), tool=WEATHER, options=tools) == "cnt_1"


@pytest.mark.parametrize("options", ["", json.dumps({"container": SKILLS})])
def test_a_new_container_keeps_the_prefix(options: str) -> None:
    """The bytes that were sent are the beginning of what is sent next."""
    encoder, settings = WIRE.encoder(), Settings(options=options)
    messages: History[Message] = History((HELLO,))
    first = b"".join(encoder.encode(ModelRequest(messages, (CODE,), settings=settings)))
    messages = messages.append(turn("cnt_1"), UserMessage("Go on."))

    second = b"".join(encoder.encode(ModelRequest(messages, (CODE,), settings=settings)))

    beginning, _, _ = first.removesuffix(b"]}").partition(b'],"container"')
    assert second.startswith(beginning)
    assert json.loads(second)["container"] in ("cnt_1", {**SKILLS, "id": "cnt_1"})


def test_what_is_kept_must_be_json() -> None:
    """A history may come from anywhere; the message says where it is wrong."""
    with pytest.raises(ConfigError, match=r"messages\[1\]: extra"):
        sent(AssistantMessage((TextPart("x"),), "anthropic", "cnt_1"))

    assert sent(AssistantMessage((TextPart("x"),), "anthropic", '{"container":1}')) == "absent"
