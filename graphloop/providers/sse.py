"""Decode server-sent events from chunks of bytes that may be cut anywhere.

This module parses the event-stream format of the WHATWG HTML standard, not the data of the events.
Only CRLF, LF and CR end a line. `str.splitlines` also splits at U+2028 and similar characters,
which real JSON contains unescaped. Each stream needs its own decoder, which does no I/O.
"""

from __future__ import annotations

from typing import final

from .base import ServerEvent

__all__ = ["SseDecoder"]

_BOM = b"\xef\xbb\xbf"


@final
class SseDecoder:
    """Decodes the bytes of one stream, in chunks of any size, into server-sent events.

    The work is linear in the number of bytes: the pieces of an unfinished line are joined only
    once, when the line ends.
    """

    __slots__ = ("_after_cr", "_at_start", "_data", "_last_name", "_name", "_name_line", "_pieces")

    def __init__(self) -> None:
        self._at_start = True
        self._after_cr = False
        self._pieces: list[bytes] = []
        self._name = ""
        self._data: list[bytes] = []
        self._name_line, self._last_name = b"event", ""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Decode the next bytes; return the events that they complete."""
        if self._at_start:
            chunk = self._without_bom(chunk)
        if self._after_cr or b"\r" in chunk:
            chunk = self._with_lf_only(chunk)
        if self._pieces and b"\n" in chunk:
            chunk = b"".join((*self._pieces, chunk))
            self._pieces.clear()
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if rest:
            self._pieces.append(rest)
        return self._take(lines)

    def close(self) -> list[ServerEvent]:
        """End the stream; return a last event that has data but no closing empty line, if any.

        The standard drops such an event, but some real servers forget the last empty line. The
        wire's terminal marker decides whether the stream is complete.
        """
        line = b"".join(self._pieces)
        self._pieces.clear()
        return self._take([line, b""] if line else [b""])

    def _take(self, lines: list[bytes]) -> list[ServerEvent]:
        events: list[ServerEvent] = []
        name, data = self._name, self._data
        for line in lines:
            if not line:
                if data:
                    events.append(ServerEvent(name, b"\n".join(data)))
                    data.clear()
                name = ""
            elif line == self._name_line:  # A fast path: event names mostly repeat.
                name = self._last_name
            elif line[:6] == b"data: ":
                data.append(line[6:])
            else:
                name = self._parse_line(line, name)
        self._name = name
        return events

    def _parse_line(self, line: bytes, name: str) -> str:
        """Parse a line without the fast path; return the event name that holds after the line."""
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name_line, self._last_name = line, value.decode(errors="replace")
            return self._last_name
        return name

    def _without_bom(self, chunk: bytes) -> bytes:
        start = b"".join(self._pieces) + chunk
        self._pieces.clear()
        if len(start) < len(_BOM) and _BOM.startswith(start):
            if start:
                self._pieces.append(start)
            return b""
        self._at_start = False
        return start.removeprefix(_BOM)

    def _with_lf_only(self, chunk: bytes) -> bytes:
        """Return `chunk` with LF for every CR and CRLF.

        A CR at a chunk's end ends its line at once; an LF at the next chunk's start is dropped.
        """
        if not chunk:
            return chunk
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
