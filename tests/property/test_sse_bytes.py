"""Contract 7: the decoder sees the same events wherever the network cuts the bytes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from graphloop.providers.base import ServerEvent
from graphloop.providers.sse import SseDecoder

LINE_ENDS = (b"\n", b"\r\n", b"\r")

fields = st.sampled_from([b"data: ", b"data:", b"data", b"event: ", b"event:", b"id: ", b": ", b""])
values = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=6
).map(str.encode)
lines = st.builds(bytes.__add__, fields, values) | st.just(b"")
starts = st.sampled_from([b"", b"\xef\xbb\xbf", b"\xef"])
ended_lines = st.builds(bytes.__add__, lines, st.sampled_from(LINE_ENDS))
streams = st.builds(bytes.__add__, starts, st.lists(ended_lines, max_size=12).map(b"".join))
shreds = st.lists(
    st.sampled_from([b"\r", b"\n", b"data: x", b"event: y", b"\xe2\x80\xa8", b"\xef\xbb\xbf"])
).map(b"".join)
transcripts = streams | shreds


def decoded(chunks: list[bytes]) -> list[ServerEvent]:
    decoder = SseDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return events + decoder.close()


def by_the_book(transcript: bytes) -> list[ServerEvent]:
    """Return the events of a whole transcript, by the standard's own slow words."""
    text = transcript.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    events: list[ServerEvent] = []
    name, data = b"", list[bytes]()
    for line in [*text.split(b"\n"), b""]:
        if line == b"":
            events += [ServerEvent(name.decode(errors="replace"), b"\n".join(data))] if data else []
            name, data = b"", []
        elif not line.startswith(b":"):
            field, value = line.split(b":", 1) if b":" in line else (line, b"")
            value = value[1:] if value[:1] == b" " else value
            name = value if field == b"event" else name
            data += [value] if field == b"data" else []
    return events


@given(transcripts, st.data())
def test_events_do_not_depend_on_where_the_bytes_are_cut(
    transcript: bytes, data: st.DataObject
) -> None:
    """A network may cut between CR and LF, within a character, within a byte-order mark."""
    at = sorted(data.draw(st.lists(st.integers(0, len(transcript)), max_size=20)))
    cuts = [0, *at, len(transcript)]
    chunks = [transcript[start:end] for start, end in pairwise(cuts)]

    assert decoded(chunks) == by_the_book(transcript)


@given(transcripts)
@example(b"\r\n\r\ndata: x\r\n\r\n")
@example(b"data: x\r\r\n\ndata: y")
@example(b"\xef\xbb\xbfdata: \xe2\x80\xa8\n\n")
def test_events_are_the_same_in_one_piece_and_byte_by_byte(transcript: bytes) -> None:
    """The two extremes of the network, exhaustively."""
    assert decoded([transcript]) == by_the_book(transcript)
    assert decoded([bytes([byte]) for byte in transcript]) == by_the_book(transcript)
