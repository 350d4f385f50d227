"""Whole replies: a server without streaming sends its reply in one piece.

The wire format turns the piece into the events of a stream, so that one decoder reads both forms.
"""

from __future__ import annotations

from typing import TypeGuard, final

from ..errors import BadReply, StreamTruncated
from .base import BufferedWire, ServerEvent, Wire

__all__ = ["WholeReply", "comes_whole"]


def comes_whole(wire: Wire) -> TypeGuard[BufferedWire]:
    """Whether requests of this wire format ask for a reply in one piece."""
    return not getattr(wire, "stream", True)


@final
class WholeReply:
    """Collects a response in place of an event decoder, and gives its events at the end.

    Attributes:
        body: the bytes so far.
    """

    def __init__(self, wire: BufferedWire) -> None:
        self._wire = wire
        self._chunks: list[bytes] = []

    @property
    def body(self) -> bytes:
        """All bytes that have arrived."""
        return b"".join(self._chunks)

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Keep bytes of the response; there is no event before the end."""
        self._chunks.append(chunk)
        return []

    def close(self) -> list[ServerEvent]:
        """Return the events of the reply.

        Raises:
            BadReply: the response is a stream, or not JSON.
            StreamTruncated: the response is empty.
        """
        if not self.body.strip():
            raise StreamTruncated(
                "reply: expected a JSON object in one piece, found an empty response. Fix: ask "
                "again; if it stays, check the base URL."
            )
        if self.body.lstrip().startswith((b"data:", b"event:", b":")):
            raise BadReply(
                "reply: expected a JSON object in one piece, found a stream of events. Fix: leave "
                "stream=False out, since the server streams."
            )
        return [*self._wire.events_of(self.body)]
