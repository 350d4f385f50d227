"""Chats: conversations that go on over many runs, and over many processes."""

from typing import TYPE_CHECKING

from ...lazy import front_door

if TYPE_CHECKING:
    from .chat import Chat, ChatOptions

__all__ = ["Chat", "ChatOptions"]

# An agent without chats needs none of these modules.
__getattr__ = front_door(__name__, {".chat": ("Chat", "ChatOptions")})
