"""StreamedPart: a part of a Gemini reply, which may grow over several chunks of the stream.

The server sends parts without an index. A part continues the part before it only if `takes` says
so; a part with a signature is always a part of its own, so that the signature goes back with it.
A field of the wrong type raises TypeError; the decoder converts this error to `BadReply`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...values import AssistantPart, OpaquePart
from ..base import Delta
from ..wire_json import JsonObject, json_text

__all__ = ["StreamedPart", "fields_without"]


class StreamedPart:
    """A part being assembled; this base class keeps kinds without a subclass.

    Attributes:
        fields: the part's fields, as the server sent them.
        index: the position of the part among the reply's parts of this class, from 0.
    """

    def __init__(self, start: JsonObject, index: int) -> None:
        self.fields: JsonObject = dict(start)
        self.index = index

    def opened(self) -> Sequence[Delta]:
        """Return the deltas to show when the part starts."""
        return ()

    def takes(self, part: JsonObject) -> bool:  # noqa: ARG002 - comes whole
        """Whether the next part of the stream continues this part."""
        return False

    def push(self, part: JsonObject) -> Sequence[Delta]:  # noqa: ARG002 - comes whole
        """Add a part that `takes` accepted; return what to show."""
        return ()

    def flush(self) -> Sequence[Delta]:
        """End the part; return the deltas that it held back. A second call returns none."""
        return ()

    @property
    def is_cut(self) -> bool:
        """Whether the server stopped in the middle of a tool call."""
        return False

    def whole(self) -> AssistantPart:
        """Return the assembled part as a message part."""
        return OpaquePart(json_text(self.fields))


def fields_without(fields: JsonObject, *known: str) -> JsonObject:
    """Return the fields that are neither null nor false nor `known`."""
    return {
        key: value
        for key, value in fields.items()
        if key not in known and value is not None and value is not False
    }
