"""Item: an output item of a Responses reply, which grows with the events about it.

An item starts with `output_item.added`, grows with its deltas, and is whole with `output_item.done`
or with the last event of the stream. Servers leave out each of these, so an item takes what comes.
A field of the wrong type raises TypeError or AttributeError; the decoder converts these errors to
`BadReply`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...errors import StreamTruncated
from ...values import AssistantPart, OpaquePart
from ..base import Delta
from ..text import TextJoiner, whole_text
from ..wire_json import JsonObject, json_text

__all__ = ["Item", "piece_of", "rest_of"]


class Item:
    """An output item being assembled; this base class keeps types without a subclass.

    Such items are compactions, calls of tools without a schema, and unknown types.

    Attributes:
        fields: the item's fields, as the latest event gave them.
        index: the position of the item among the reply's items of this class, from 0.
        is_shown: whether other wire formats can represent the item.
        is_done: whether the server has sent the whole item.
    """

    is_shown = False
    is_done = False

    def __init__(self, start: JsonObject, index: int) -> None:
        self.fields = dict(start)
        self.index = index

    def opened(self) -> Sequence[Delta]:
        """Return the deltas to show when the item starts."""
        return ()

    def push(self, kind: str, event: JsonObject) -> Sequence[Delta]:  # noqa: ARG002 - has no deltas
        """Add an event about this item, of the type `response.<kind>`; return what to show."""
        return ()

    def done(self, item: JsonObject) -> Sequence[Delta]:
        """Take the whole item; return the deltas that its events have not shown."""
        self.fields |= item
        self.is_done = True
        return ()

    def flush(self) -> Sequence[Delta]:
        """End the item; return the deltas that it held back. A second call returns none."""
        return ()

    def text_at(self, index: object) -> TextJoiner | None:  # noqa: ARG002 - has no text
        """Return the text at a content index, which text deltas extend; None without texts."""
        return None

    @property
    def is_cut(self) -> bool:
        """Whether the server stopped in the middle of a tool call."""
        return False

    @property
    def is_refusal(self) -> bool:
        """Whether the model refused to answer."""
        return False

    def parts(self) -> Iterable[AssistantPart]:
        """Return the assembled item as message parts."""
        return (OpaquePart(json_text(self.fields)),)

    def fields_without(self, *known: str) -> JsonObject:
        """Return the item's fields that are neither null nor `known`."""
        return {
            key: value
            for key, value in self.fields.items()
            if key not in known and value is not None
        }


def piece_of(event: JsonObject) -> str:
    """Return the text of a delta, which may begin or end with half a character."""
    piece = event.get("delta")
    if not isinstance(piece, str):
        raise TypeError(f"delta: expected a string, found {piece!r}")
    return piece


def rest_of(whole: str, seen: str) -> str:
    """Return the end of `whole` that its deltas, which make up `seen`, have not brought.

    Servers may change white space, or leave `whole` empty.

    Raises:
        StreamTruncated: the deltas do not make up `whole`, since one of them was lost.
    """
    if whole.startswith(seen):
        return whole[len(seen) :]
    if whole and whole_text(whole).split() != seen.split():
        raise StreamTruncated(
            f"expected deltas that make up {whole!r:.200}, found {seen!r:.200}: a part of the "
            "stream was lost. Fix: ask again; the reply so far is no answer."
        )
    return ""
