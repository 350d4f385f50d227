"""Media: pictures, documents, sound and video, as parts of messages.

Owns `MediaPart` with its three sources, the functions that make a part of a caller's file, bytes or
URL, and the recognition of a media type by the first bytes.
Refuses bytes of an unknown type; a name alone never decides the type.
Start with `part.py`; `making.py` has the functions for callers.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door

if TYPE_CHECKING:
    from .making import MediaInput, audio, file, image, received, video
    from .part import FileId, Inline, MediaPart, MediaSource, Url

__all__ = [
    "FileId",
    "Inline",
    "MediaInput",
    "MediaPart",
    "MediaSource",
    "Url",
    "audio",
    "file",
    "image",
    "received",
    "video",
]

__getattr__ = front_door(
    __name__,
    {
        ".making": ("MediaInput", "audio", "file", "image", "received", "video"),
        ".part": ("FileId", "Inline", "MediaPart", "MediaSource", "Url"),
    },
)
