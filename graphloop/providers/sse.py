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
_LF = ord("\n")  # Bytes look for a number in a fifth of the time that one byte takes.


@final
class SseDecoder:
    """Decodes the bytes of one stream, in chunks of any size, into server-sent events.

    The work is linear in the number of bytes: the pieces of an unfinished event are joined only
    once, when the event ends.
    """

    __slots__ = ("_after_cr", "_at_start", "_head", "_name", "_pieces")

    def __init__(self) -> None:
        self._at_start = True
        self._after_cr = False
        self._pieces: list[bytes] = []
        # The name of the latest event, and the bytes of such an event before its data.
        self._name, self._head = "", b"data: "

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Decode the next bytes; return the events that they complete."""
        if self._at_start:
            chunk = self._without_bom(chunk)
        if self._after_cr or b"\r" in chunk:
            chunk = self._with_lf_only(chunk)
        pieces = self._pieces
        ends_line = bool(pieces) and pieces[-1].endswith(b"\n")
        if b"\n\n" not in chunk and not (ends_line and chunk.startswith(b"\n")):
            if chunk:
                pieces.append(chunk)
            return []
        *blocks, rest = b"".join((*pieces, chunk)).split(b"\n\n")
        self._pieces = [rest] if rest else []
        return self._take(blocks)

    def close(self) -> list[ServerEvent]:
        """End the stream; return a last event that has data but no closing empty line, if any.

        The standard drops such an event, but some real servers forget the last empty line. The
        wire's terminal marker decides whether the stream is complete.
        """
        last, self._pieces = b"".join(self._pieces), []
        return self._take([last])

    def _take(self, blocks: list[bytes]) -> list[ServerEvent]:
        """Return the events of blocks of lines; each block but the last ended at an empty line."""
        events: list[ServerEvent] = []
        name, head = self._name, self._head
        for block in blocks:
            data = block.removeprefix(head)
            # A fast path: event names mostly repeat, and most data is one line.
            if data is not block and _LF not in data:
                events.append(ServerEvent(name, data))
            elif event := self._parse_block(block):
                events.append(event)
                name, head = self._name, self._head
        return events

    def _parse_block(self, block: bytes) -> ServerEvent | None:
        """Parse the lines of a block without the fast path; None if they have no data."""
        name = b""
        data: list[bytes] = []
        for line in block.split(b"\n"):
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                data.append(value)
            elif field == b"event":
                name = value
        if not data:
            return None
        self._name = name.decode(errors="replace")
        self._head = b"event: %b\ndata: " % name if name else b"data: "
        return ServerEvent(self._name, b"\n".join(data))

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
