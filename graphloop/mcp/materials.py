"""Materials: what an MCP server offers beside tools: resources to read, and prompts."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Prompt", "PromptArgument", "Resource"]


class Resource(Struct, frozen=True):
    """Data that a server lets its clients read.

    Attributes:
        uri: the address for `Server.read`.
        name: the server's name of the resource.
        description: a text for people and models.
        media_type: the media type; empty if the server does not tell it.
        size: the size in bytes; None if the server does not tell it.
    """

    uri: str
    name: str
    description: str = ""
    media_type: str = ""
    size: int | None = None


class PromptArgument(Struct, frozen=True):
    """An argument of a prompt, which is a text."""

    name: str
    description: str = ""
    required: bool = False


class Prompt(Struct, frozen=True):
    """A template of messages, for `Server.prompt`."""

    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()
