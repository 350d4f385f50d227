"""MediaPart: one value for pictures, documents, sound and video, from any source."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.json import decode, encode

from graphloop.media import FileId, Inline, MediaPart, MediaSource, Url
from graphloop.values import UserMessage
from tests.strategies import media_parts


@given(media_parts)
def test_a_part_survives_json(part: MediaPart) -> None:
    """Journals, mailboxes and saved conversations hold messages as JSON."""
    message = UserMessage((part,))

    assert message == decode(encode(message), type=UserMessage)


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [
        ("image/png", "image"),
        ("audio/wav", "audio"),
        ("video/mp4", "video"),
        ("application/pdf", "file"),
        ("text/plain", "file"),
    ],
)
def test_the_kind_of_a_part_is_one_of_four_words(media_type: str, kind: str) -> None:
    part = MediaPart(media_type, Inline(b"x"), "a")

    assert kind == part.kind
    assert f"{kind} 'a' of type {media_type!r}" == part.label


def test_the_repr_of_a_part_does_not_hold_its_bytes() -> None:
    """A log line, a traceback or a failed assertion would otherwise be megabytes long."""
    assert "Inline(<5000000 bytes>)" in repr(MediaPart("image/png", Inline(b"x" * 5_000_000)))


SOURCES: list[MediaSource] = [
    *(Inline(b"a"), Inline(b"b"), Url("https://x"), Url("https://y")),
    *(FileId("a"), FileId("a", "openai"), FileId("b")),
]


def test_the_identity_of_a_part_tells_its_source() -> None:
    """An approval is bound to the conversation; another picture of the same size is another one."""
    identities = {MediaPart("image/png", source).identity for source in SOURCES}

    assert len(SOURCES) == len(identities)


@given(st.binary())
def test_the_digest_of_bytes_is_their_sha256(data: bytes) -> None:
    assert Inline(data).digest == Inline(bytes(data)).digest
    assert Inline(data).digest.startswith("sha256:")
    assert len("sha256:") + 64 == len(Inline(data).digest)
