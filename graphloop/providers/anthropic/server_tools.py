"""Tools that Anthropic's server runs itself while the model writes a reply.

Type strings and fields follow Anthropic's API reference. Each tool has dated versions; the default
version works with every model that supports the tool. The server checks the options.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypedDict

from ...tools import AnyTool, provider_tool
from .blocks import ANTHROPIC_WIRE

__all__ = [
    "UserLocation",
    "anthropic_code_execution",
    "anthropic_web_fetch",
    "anthropic_web_search",
]

SearchVersion: TypeAlias = Literal["20250305", "20260209", "20260318"]
FetchVersion: TypeAlias = Literal["20250910", "20260209", "20260309", "20260318"]
CodeVersion: TypeAlias = Literal["20250825", "20260120", "20260521"]


class UserLocation(TypedDict, total=False):
    """The user's approximate location, for a web search.

    `country` is a two-letter ISO code, and `timezone` is an IANA name such as "Europe/Berlin".
    """

    city: str
    region: str
    country: str
    timezone: str


def anthropic_web_search(
    *,
    max_uses: int | None = None,
    allowed_domains: Sequence[str] | None = None,
    blocked_domains: Sequence[str] | None = None,
    user_location: UserLocation | None = None,
    version: SearchVersion = "20250305",
) -> AnyTool:
    """Return a tool with which Anthropic's server searches the web.

    Args:
        max_uses: the maximum number of searches per model call; None for the server's own limit.
        allowed_domains: search only these, such as "example.com" or "example.com/docs".
        blocked_domains: exclude these domains; cannot be combined with `allowed_domains`.
        user_location: prefer results near this location.
        version: the tool's version; later versions filter results by code and need later models.
    """
    return _tool(
        "web_search",
        version,
        max_uses=max_uses,
        allowed_domains=allowed_domains,
        blocked_domains=blocked_domains,
        user_location=None if user_location is None else {"type": "approximate", **user_location},
    )


def anthropic_web_fetch(
    *,
    max_uses: int | None = None,
    allowed_domains: Sequence[str] | None = None,
    blocked_domains: Sequence[str] | None = None,
    citations: bool = False,
    max_content_tokens: int | None = None,
    version: FetchVersion = "20250910",
) -> AnyTool:
    """Return a tool with which Anthropic's server reads web pages named in the conversation.

    Args:
        max_uses: the maximum number of pages per model call; None for the server's own limit.
        allowed_domains: read only these, such as "example.com" or "example.com/docs".
        blocked_domains: exclude these domains; cannot be combined with `allowed_domains`.
        citations: whether the model cites the passages of a page that it uses.
        max_content_tokens: the approximate length in tokens at which a page's text is cut.
        version: the tool's version; later versions filter pages by code and need later models.
    """
    return _tool(
        "web_fetch",
        version,
        max_uses=max_uses,
        allowed_domains=allowed_domains,
        blocked_domains=blocked_domains,
        citations={"enabled": True} if citations else None,
        max_content_tokens=max_content_tokens,
    )


def anthropic_code_execution(*, version: CodeVersion = "20250825") -> AnyTool:
    """Return a tool with which Anthropic's server runs code in its own sandbox.

    Args:
        version: the tool's version; later versions keep a Python session and need later models.
    """
    return _tool("code_execution", version)


def _tool(name: str, version: str, **options: object) -> AnyTool:
    chosen = {option: value for option, value in options.items() if value is not None}
    definition = {"type": f"{name}_{version}", "name": name, **chosen}
    return provider_tool(definition, wire=ANTHROPIC_WIRE)
