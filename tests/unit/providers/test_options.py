"""Provider options: merged, or refused by name; never dropped."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from graphloop.errors import ConfigError
from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.base import Wire
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.values import ModelRequest, Settings, ToolChoice, ToolSpec, UserMessage

ANTHROPIC: Wire = AnthropicMessages("m")
OPENAI: Wire = OpenAIChat("m")
on_both_wires = pytest.mark.parametrize("wire", [ANTHROPIC, OPENAI], ids=lambda wire: wire.name)

WEATHER = ToolSpec("get_weather", "Weather now.", '{"type":"object"}')
SEARCH = {"type": "web_search", "name": "web_search"}
EVERYWHERE: Mapping[str, str] = {
    "messages": "messages",
    "model": "provider:NAME",
    "stream": "drained stream",
    "temperature": "Settings.temperature",
    "tool_choice": "ToolChoice",
    "top_p": "Settings.top_p",
}
OWNED = [
    *(
        (wire, name, instead)
        for wire in (ANTHROPIC, OPENAI)
        for name, instead in EVERYWHERE.items()
    ),
    (ANTHROPIC, "max_tokens", "Settings.max_tokens"),
    (ANTHROPIC, "stop_sequences", "Settings.stop_sequences"),
    (ANTHROPIC, "system", "SystemMessage"),
    (OPENAI, "max_completion_tokens", "Settings.max_tokens"),
    (OPENAI, "max_tokens", "Settings.max_tokens"),
    (OPENAI, "n", "one answer"),
    (OPENAI, "parallel_tool_calls", "Settings.parallel_tool_calls"),
    (OPENAI, "seed", "Settings.seed"),
    (OPENAI, "stop", "Settings.stop_sequences"),
]


def body(
    wire: Wire,
    options: object,
    tools: tuple[ToolSpec, ...] = (),
    choice: ToolChoice = ToolChoice(),
) -> dict[str, object]:
    settings = Settings(options=json.dumps(options))
    request = ModelRequest((UserMessage("hello"),), tools, choice, settings)
    fields: dict[str, object] = json.loads(b"".join(wire.encoder().encode(request)))
    return fields


@pytest.mark.parametrize(
    ("wire", "name", "instead"), OWNED, ids=[f"{wire.name}-{name}" for wire, name, _ in OWNED]
)
def test_an_owned_field_is_refused_with_advice(wire: Wire, name: str, instead: str) -> None:
    """Merged it would change the conversation, dropped it would have no effect."""
    with pytest.raises(ConfigError, match=rf"Settings\.options: .* found '{name}'.*{instead}"):
        body(wire, {"metadata": {}, name: None})


@on_both_wires
def test_every_other_field_is_merged(wire: Wire) -> None:
    """What a server offers today need not wait for a release of ours."""
    plain = body(wire, {})

    assert body(wire, {"top_k": 4, "metadata": {"a": [1.5, None]}}) == {
        **plain,
        "top_k": 4,
        "metadata": {"a": [1.5, None]},
    }


@on_both_wires
def test_tools_of_the_server_stand_behind_the_runs_own(wire: Wire) -> None:
    """They have no executor here, so options are the only way to declare them."""
    alone = body(wire, {"tools": [SEARCH]}, (), ToolChoice("required"))
    beside = body(wire, {"tools": [SEARCH]}, (WEATHER,))

    assert alone["tools"] == [SEARCH]
    assert "tool_choice" in alone
    assert isinstance(beside["tools"], list)
    assert "get_weather" in json.dumps(beside["tools"][0])
    assert beside["tools"][1:] == [SEARCH]


@on_both_wires
def test_tools_that_are_no_array_are_refused(wire: Wire) -> None:
    """An option that cannot take effect complains."""
    with pytest.raises(ConfigError, match=r"expected an array .* found 5"):
        body(wire, {"tools": 5})
