"""The event-stream decoder, rule by rule of the WHATWG standard."""

from __future__ import annotations

import pytest

from graphloop.providers.base import ServerEvent
from graphloop.providers.sse import SseDecoder


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
