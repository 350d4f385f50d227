"""Decode server-sent events from bytes, cut anywhere.

Owns the event-stream format of the WHATWG HTML standard, and not the data of the events.
Lines end at CRLF, LF or CR only: text tools also split at U+2028 and its kin, which stand unescaped
in real JSON and would break an event in two. Pure; one decoder per stream.
"""

from __future__ import annotations

from typing import final

from .base import ServerEvent

__all__ = ["SseDecoder"]

_BOM = b"\xef\xbb\xbf"


@final
class SseDecoder:
    """Turns the bytes of one stream into events, however cut.

    Work is linear in the bytes: an unended line is kept in pieces, not joined anew for each.
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
        """Take the next bytes; return the events they complete."""
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
        """End the stream; return an event without its empty line.

        There is none if it has no data. The standard drops such an event. Real servers forget the
        last empty line, and whether the stream was whole depends on the wire's terminal marker.
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
            elif line.startswith(b"data: "):
                data.append(line[6:])
            elif line == self._name_line:  # Nearly always: events of one name follow each other.
                name = self._last_name
            else:
                name = self._other(line, name)
        self._name = name
        return events

    def _other(self, line: bytes, name: str) -> str:
        """Take a line of any kind; return the event's name after it."""
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
        """Make every line end an LF.

        A CR ends its line at once, even if its LF is yet to come.
        """
        if not chunk:
            return chunk
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
