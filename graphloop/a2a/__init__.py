"""A2A: an agent on another machine, which speaks the Agent2Agent protocol, as a tool.

Owns `remote`, which makes the tool, and `message_part` and `media_part`, which read and write a
part of a message. They need the extra `a2a`.
Refuses other versions of the protocol than 1.0, and what a remote agent says of itself: the caller
names and describes the tool, so no stranger's text is in a prompt before the first answer.
Start with `remote.py`; `link.py` speaks to the server.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door

if TYPE_CHECKING:
    from .parts import media_part, message_part
    from .remote import remote

__all__ = ["media_part", "message_part", "remote"]

__getattr__ = front_door(
    __name__,
    {".parts": ("media_part", "message_part"), ".remote": ("remote",)},
    needs={".parts": "'graphloop[a2a]'", ".remote": "'graphloop[a2a]'"},
)
