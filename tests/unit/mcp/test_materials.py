"""Resources and prompts of servers."""

from __future__ import annotations

import pytest

from graphloop.errors import ConfigError
from graphloop.mcp import Prompt, PromptArgument, Resource
from graphloop.media import Inline, MediaPart
from graphloop.values import AssistantMessage, TextPart, UserMessage
from tests.mcp_calls import Make

pytestmark = pytest.mark.deadline(50)


async def test_resources_are_listed_and_read(make: Make) -> None:
    """A program gives a model what it has chosen to."""
    async with make() as server:
        listed = {each.uri: each for each in await server.resources()}
        text = await server.read("desk://report")
        picture = await server.read("desk://pixel")

    assert listed["desk://report"] == Resource(
        "desk://report", "report", "A report.", "text/markdown"
    )
    assert text == (TextPart("# All is well"),)
    assert isinstance(picture[0], MediaPart)
    assert picture[0].media_type == "image/png"
    assert isinstance(picture[0].source, Inline)


async def test_prompts_become_messages(make: Make) -> None:
    """They begin a conversation."""
    async with make() as server:
        prompts = await server.prompts()
        messages = await server.prompt("letter", customer="Ada")

    assert prompts == (
        Prompt(
            "letter",
            "Write a letter.",
            (PromptArgument("customer", "", required=True), PromptArgument("tone")),
        ),
    )
    assert messages == (
        UserMessage((TextPart("Write to Ada, be kind."),)),
        AssistantMessage((TextPart("Dear"),)),
    )


async def test_what_a_server_refuses_is_an_error_of_the_caller(make: Make) -> None:
    """The message is the server's."""
    async with make(name="the desk") as server:
        with pytest.raises(ConfigError, match=r"'the desk' refuses: .*nothing"):
            await server.read("desk://nothing")
        with pytest.raises(ConfigError, match="'the desk' refuses"):
            await server.prompt("poem")
