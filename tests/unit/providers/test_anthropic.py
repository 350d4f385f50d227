"""The Anthropic wire as a provider sees it: its name, its path, its headers."""

import pytest

from graphloop.errors import (
    ConfigError,
)
from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.values import (
    ModelRequest,
)
from tests.anthropic_talk import HELLO, WIRE


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
