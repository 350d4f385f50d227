"""Bytes of a stream, cut anywhere: whole events, and whole characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.providers.base import ServerEvent
from graphloop.providers.sse import SseDecoder
from graphloop.providers.text import TextJoiner, whole_text
from tests.transcripts import any_text


def decoded(*chunks: bytes) -> list[ServerEvent]:
    decoder = SseDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return events + decoder.close()


def test_an_event_is_returned_with_the_bytes_that_end_it() -> None:
    """Streaming means now: an event must not wait for the next one."""
    decoder = SseDecoder()

    assert decoder.feed(b"data: a") == []
    assert decoder.feed(b"\n") == []
    assert decoder.feed(b"\ndata: b\n\n") == [ServerEvent("", b"a"), ServerEvent("", b"b")]
    assert decoder.close() == []


def test_a_cr_ends_its_line_at_once_and_swallows_a_later_lf() -> None:
    """Waiting for the LF that may follow a CR would hold an event back for ever."""
    decoder = SseDecoder()

    assert decoder.feed(b"data: a\r\n\r") == [ServerEvent("", b"a")]
    assert decoder.feed(b"") == []
    assert decoder.feed(b"\n") == []
    assert decoder.feed(b"data: b\r\r") == [ServerEvent("", b"b")]


@pytest.mark.parametrize(
    ("transcript", "events"),
    [
        (b"event: ping\ndata: {}\n\n", [ServerEvent("ping", b"{}")]),
        (b"data: {}\nevent: late\n\n", [ServerEvent("late", b"{}")]),
        (b"event: a\nevent: b\ndata: 1\n\n", [ServerEvent("b", b"1")]),
        (b"event: a\n\ndata: 1\n\n", [ServerEvent("", b"1")]),
        (b"data: 1\ndata: 2\ndata:\n\n", [ServerEvent("", b"1\n2\n")]),
        (b"event: m\ndata: 1\ndata: 2\n\n", [ServerEvent("m", b"1\n2")]),
        (b"data:1\n\ndata:  2\n\n", [ServerEvent("", b"1"), ServerEvent("", b" 2")]),
        (b"data: \n\ndata\n\n", [ServerEvent("", b""), ServerEvent("", b"")]),
        (b": comment\n\n:\n\ndata: 1\n\n", [ServerEvent("", b"1")]),
        (b": comment\ndata: 1\n\n", [ServerEvent("", b"1")]),
        (b"id: 7\nretry: 10\ndatum: x\ndata: 1\n\n", [ServerEvent("", b"1")]),
        (b"\n\n\n\ndata: 1\n\n\n\n", [ServerEvent("", b"1")]),
        (b"\xef\xbb\xbfdata: 1\n\n", [ServerEvent("", b"1")]),
        (b"\xef\xbb", []),
        (b"data: a: b\n\n", [ServerEvent("", b"a: b")]),
        (b"event: \xff\ndata: 1\n\n", [ServerEvent("\ufffd", b"1")]),
        (b"", []),
    ],
)
def test_lines_mean_what_the_standard_says(transcript: bytes, events: list[ServerEvent]) -> None:
    """Each rule has a server that makes use of it."""
    assert decoded(transcript) == events
    assert decoded(transcript.replace(b"\n", b"\r")) == events
    assert decoded(transcript.replace(b"\n", b"\r\n")) == events


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e"])
def test_separators_that_only_python_knows_end_no_line(separator: str) -> None:
    """They stand unescaped in real JSON; splitting there loses half an answer."""
    data = f'{{"text": "a{separator}b"}}'.encode()

    assert decoded(b"data: " + data + b"\n\n") == [ServerEvent("", data)]


def test_an_unended_last_event_comes_at_the_close() -> None:
    """Servers forget the last empty line; whether the stream was whole the wire's marker says."""
    assert decoded(b"data: 1\n\nevent: end\ndata: 2") == [
        ServerEvent("", b"1"),
        ServerEvent("end", b"2"),
    ]
    assert decoded(b"data: 1\n\nevent: end\n") == [ServerEvent("", b"1")]


@given(st.lists(any_text))
def test_pieces_join_to_the_whole_text_however_they_are_cut(pieces: list[str]) -> None:
    """Where a server cuts is chance; what is stored must not depend on it."""
    joiner = TextJoiner()

    shown = [joiner.push(piece) for piece in pieces] + [joiner.flush()]

    assert whole_text("".join(pieces)) == "".join(shown) == joiner.text
    for piece in shown:
        piece.encode()


def test_a_half_left_alone_becomes_the_replacement_character() -> None:
    """Text that cannot be encoded fails far from where it came from."""
    joiner = TextJoiner()

    assert joiner.push("\udc69\ud83d") == "\ufffd"
    assert joiner.flush() == "\ufffd"
    assert joiner.flush() == ""
    assert joiner.text == "\ufffd\ufffd"


def test_pieces_after_a_flush_are_a_new_beginning() -> None:
    """A block may be stopped and still get a delta; the half before must not join it."""
    joiner = TextJoiner()
    joiner.push("\ud83d")
    joiner.flush()

    assert joiner.push("\udc69") == "\ufffd"
