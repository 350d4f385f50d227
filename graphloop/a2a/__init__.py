"""A2A: an agent on another machine, which speaks the Agent2Agent protocol, as a tool.

Owns `remote`, which makes the tool. It needs the extra `a2a`.
Refuses other versions of the protocol than 1.0, and what a remote agent says of itself: the caller
names and describes the tool, so no stranger's text is in a prompt before the first answer.
Start with `remote.py`; `link.py` speaks to the server.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door

if TYPE_CHECKING:
    from .remote import remote

__all__ = ["remote"]

__getattr__ = front_door(__name__, {".remote": ("remote",)}, needs={".remote": "'graphloop[a2a]'"})
