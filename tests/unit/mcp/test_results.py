"""Results of MCP servers: what a model reads of media that a server sends."""

from __future__ import annotations

from base64 import b64encode

import pytest
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
)

from graphloop.mcp.results import value_of
from graphloop.media import Inline, MediaPart

JPEG = b"\xff\xd8\xff\xe0 rest"


def blob(data: bytes, media_type: str | None) -> EmbeddedResource:
    text = b64encode(data).decode()
    resource = BlobResourceContents(uri="file:///a.bin", blob=text, mime_type=media_type)
    return EmbeddedResource(resource=resource)


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (
            ImageContent(data=b64encode(JPEG).decode(), mime_type="image/png"),
            MediaPart("image/jpeg", Inline(JPEG)),
        ),
        (
            AudioContent(data=b64encode(b"sound").decode(), mime_type="audio/mp3"),
            MediaPart("audio/mpeg", Inline(b"sound")),
        ),
        (
            blob(b"{}", "application/json; charset=utf-8"),
            MediaPart("application/json", Inline(b"{}"), "a.bin"),
        ),
        (blob(b"%PDF-1.7", None), MediaPart("application/pdf", Inline(b"%PDF-1.7"), "a.bin")),
    ],
)
def test_a_careless_server_cannot_break_the_next_request(
    block: ContentBlock, part: MediaPart
) -> None:
    """A model's server refuses a type that it does not know, or that differs from the bytes."""
    assert [part] == value_of(CallToolResult(content=[block]))


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (ImageContent(data="", mime_type="image/png"), "[image/png: empty]"),
        (blob(b"", None), "[a.bin: empty]"),
    ],
)
def test_an_empty_file_is_told_in_words(block: ContentBlock, said: str) -> None:
    """A model's server refuses a file without bytes, and each further request of the run."""
    assert said == value_of(CallToolResult(content=[block]))
