"""Blobs: a line refers to large media, and the store keeps their bytes once."""

from __future__ import annotations

import json
import stat
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.errors import StoreError
from graphloop.events import Event, Setup, Started, ToolReturned
from graphloop.media import Inline, MediaPart
from graphloop.stores.blobs import INLINE_BYTES_MAX, BlobFiles, attached, detached
from graphloop.stores.codec import Codec
from graphloop.values import TextPart, ToolResult, UserMessage
from tests.strategies import events

LARGE = INLINE_BYTES_MAX + 1
DIGITS = b"608b801060d579a7b659a01755259a13dec8853b97d3d8062763c97ffac6ddae"
LINE = (
    b'{"crc":"b790ddec","blobs":["sha256:'
    + DIGITS
    + b'"],"v":1,"seq":5,"event":{"type":"ToolReturned","at":1.0,"effect":3,'
    b'"content":[{"type":"media","media_type":"image/png","source":{"type":"inline","data":"sha256:'
    + DIGITS
    + b'"}}]}}'
)


def asked(*media: bytes, text: str = "look") -> Event:
    """Return the first event of a run whose question has these media."""
    parts = [MediaPart("application/pdf", Inline(data), "a.pdf") for data in media]
    return Started(1.0, "r", "g", (UserMessage((TextPart(text), *parts)),), Setup())


@given(st.lists(st.integers(INLINE_BYTES_MAX - 2, INLINE_BYTES_MAX + 2), max_size=4), st.text())
def test_a_line_with_references_gives_the_same_event(sizes: list[int], text: str) -> None:
    """With each size around the limit, the same media twice, and any text beside them."""
    event = asked(*[bytes([at % 2]) * size for at, size in enumerate(sizes)], text=text)
    codec, blobs = Codec(), dict[str, bytes]()

    line = codec.encode(1, event, blobs)

    assert (1, event) == codec.decode(line, blobs.__getitem__)
    assert all(len(data) > INLINE_BYTES_MAX for data in blobs.values())
    assert len(blobs) == len({(at % 2, size) for at, size in enumerate(sizes) if size >= LARGE})
    assert len(line) < 2_000 + 30_000 * (len(sizes) - len(blobs)) + 6 * len(text)


@given(events)
def test_a_line_without_large_media_is_as_it_would_be_without_blobs(event: Event) -> None:
    """Journals of runs without media keep their form byte for byte."""
    blobs: dict[str, bytes] = {}

    assert Codec().encode(7, event) == Codec().encode(7, event, blobs)
    assert not blobs


def test_a_line_with_a_reference_has_this_form() -> None:
    """A store of a later version must read it, and a tool that counts uses need not decode it."""
    blobs: dict[str, bytes] = {}
    digest = Inline(b"a" * LARGE).digest

    line = json.loads(Codec().encode(1, asked(b"a" * LARGE), blobs))

    assert [*line] == ["crc", "blobs", "v", "seq", "event"]
    assert [digest] == line["blobs"] == [*blobs]
    part = line["event"]["messages"][0]["content"][1]
    assert {"type": "inline", "data": digest} == part["source"]


def test_a_line_with_a_reference_stays_as_it_was_first_written() -> None:
    """Journals outlive the version that wrote them."""
    event = ToolReturned(1.0, 3, (MediaPart("image/png", Inline(b"a" * LARGE)),))
    blobs: dict[str, bytes] = {}

    assert LINE == Codec().encode(5, event, blobs)
    assert (5, event) == Codec().decode(
        LINE, {Inline(b"a" * LARGE).digest: b"a" * LARGE}.__getitem__
    )


@dataclass
class Odd:
    """A user's state with the fields of a reference, or of large media."""

    type: str = "inline"
    data: str = ""


@dataclass
class Holder:
    odd: Odd = field(default_factory=Odd)


@pytest.mark.parametrize(
    "data",
    [
        Inline(b"a" * LARGE).digest,
        "A" * 30_001,  # Not the form in which bytes are written.
        "A" * 30_000,
        "ä" * 30_000,
        '"\\' * 20_000,
    ],
)
def test_a_state_that_looks_like_media_comes_back_unchanged(data: str) -> None:
    media = UserMessage((MediaPart("image/png", Inline(b"a" * LARGE)),))
    event = Started(1.0, "r", "g", (media,), Setup(), Holder(Odd(data=data)))
    codec, blobs = Codec(Holder), dict[str, bytes]()

    line = codec.encode(1, event, blobs)

    assert (1, event) == codec.decode(line, blobs.__getitem__)


@given(st.binary(max_size=200))
def test_text_that_is_no_journal_is_never_misread(line: bytes) -> None:
    """The two functions look for one form only, and leave all other bytes alone."""
    assert line == detached(line, {})
    assert line == attached(line, (), dict[str, bytes]().__getitem__)


def test_half_a_surrogate_pair_beside_media_is_kept() -> None:
    """Servers send it; such a line is written in another way, which has references, too."""
    content = (TextPart("\ud83d"), MediaPart("image/png", Inline(b"a" * LARGE)))
    event = Started(1.0, "r", "g", (ToolResult("k", "i", "n", content),), Setup())
    blobs: dict[str, bytes] = {}

    line = Codec().encode(1, event, blobs)

    assert blobs
    assert (1, event) == Codec().decode(line, blobs.__getitem__)


def test_a_line_with_references_is_refused_without_its_media() -> None:
    line = Codec().encode(1, asked(b"a" * LARGE), {})

    with pytest.raises(StoreError, match="expected a journal line"):
        Codec().decode(line)


@pytest.mark.parametrize("fsync", [True, False])
def test_a_blob_is_written_once_for_its_owner_alone(tmp_path: Path, fsync: bool) -> None:
    files, digest = BlobFiles(tmp_path / "blobs", fsync=fsync), Inline(b"a").digest

    files.write(digest, b"a")
    (path,) = (tmp_path / "blobs").iterdir()
    before = path.stat().st_mtime_ns
    files.write(digest, b"a")

    assert [path] == [*(tmp_path / "blobs").iterdir()]
    assert digest == f"sha256:{path.name}"
    assert before == path.stat().st_mtime_ns
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert b"a" == files.read(digest)


def test_a_half_written_blob_is_written_again(tmp_path: Path) -> None:
    """After a loss of power without `fsync`, a file may have its name but not its bytes."""
    files, digest = BlobFiles(tmp_path, fsync=False), Inline(b"abc").digest
    files.write(digest, b"abc")
    (path,) = tmp_path.iterdir()
    path.write_bytes(b"a")
    with pytest.raises(StoreError, match="found damaged bytes"):
        files.read(digest)

    files.write(digest, b"abc")

    assert b"abc" == files.read(digest)


def test_a_blob_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    files, digest = BlobFiles(tmp_path, fsync=False), Inline(b"abc").digest
    (tmp_path / digest.removeprefix("sha256:")).mkdir()  # A file cannot take this name.

    with pytest.raises(OSError, match=r"."):
        files.write(digest, b"abc")
    with pytest.raises(StoreError, match="cannot read"):
        files.read(digest)

    assert 1 == len([*tmp_path.iterdir()])
