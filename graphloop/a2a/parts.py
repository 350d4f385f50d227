"""Parts: the parts of A2A messages and artifacts as parts of ours, and media as parts of theirs.

Numbers of a data part are floats, so whole ones become integers again. No URL is ever loaded.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import cast

from a2a.types import Part
from google.protobuf.json_format import MessageToDict

from ..media import FileId, Inline, MediaPart, Url, received
from ..tools import ToolReturn
from ..values import TextPart

__all__ = ["answer_content", "media_part", "message_part"]


def answer_content(said: Sequence[Sequence[Part]]) -> object:
    """Return the parts of an answer in a form that a tool may return; the data also as data."""
    parts: list[TextPart | MediaPart] = []
    for artifact in said:
        # The pieces of a streamed text are parts of one artifact.
        for streamed, pieces in groupby(artifact, key=lambda part: part.HasField("text")):
            if streamed:
                parts.append(TextPart("".join([part.text for part in pieces])))
            else:
                parts += [message_part(part) for part in pieces]
    data = [
        _whole_numbers(MessageToDict(one.data))
        for each in said
        for one in each
        if one.HasField("data")
    ]
    texts = [one.text for one in parts if isinstance(one, TextPart)]
    content = "\n".join(texts) if len(texts) == len(parts) else parts
    if not data:
        return content
    return ToolReturn(content, data[0] if len(data) == 1 else data)


def message_part(part: Part) -> TextPart | MediaPart:
    """Return a part of a message; a URL is only named, and never loaded."""
    match part.WhichOneof("content"):
        case "text":
            return TextPart(part.text)
        case "raw" if not part.raw:
            return TextPart(f"[file {part.filename!r}: empty]")
        case "raw":
            return received(part.raw, part.media_type, part.filename)
        case "url":
            return TextPart(f"[file {part.filename!r} at {part.url}]")
        case _:
            return TextPart(
                json.dumps(_whole_numbers(MessageToDict(part.data)), ensure_ascii=False)
            )


def media_part(part: MediaPart) -> Part:
    """Return media as a part of a message; a file of the model's server is only named."""
    match part.source:
        case Inline(data=data):
            return Part(raw=data, media_type=part.media_type, filename=part.name)
        case Url(url=url):
            return Part(url=url, media_type=part.media_type, filename=part.name)
        case FileId():
            return Part(text=f"[{part.label}]")


def _whole_numbers(value: object) -> object:
    """Return JSON data with whole numbers as integers: the protocol has floats only."""
    match value:
        case dict():
            return {
                key: _whole_numbers(one) for key, one in cast("dict[str, object]", value).items()
            }
        case list():
            return [_whole_numbers(one) for one in cast("list[object]", value)]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value
