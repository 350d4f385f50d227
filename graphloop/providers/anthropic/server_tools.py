"""Tools that Anthropic's own server runs, in the middle of a reply.

The type strings and fields are those of Anthropic's API reference. Each tool has dated versions;
the default version works with every model that has the tool at all. The server checks the options.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypedDict

from ...tools import AnyTool, provider_tool

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
    """Roughly where the user is.

    `country` is an ISO code of two letters, `timezone` an IANA name.
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
    """Return Anthropic's web search.

    Args:
        max_uses: how many searches one model call may make; None for the server's own limit.
        allowed_domains: search nowhere else, as "example.com" or "example.com/docs".
        blocked_domains: search everywhere but there; not together with `allowed_domains`.
        user_location: prefer results near to it.
        version: of the tool; later versions filter their results by code, on later models only.
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
    """Return Anthropic's web fetch: it reads pages that the conversation names.

    Args:
        max_uses: how many pages one model call may read; None for the server's own limit.
        allowed_domains: read nowhere else, as "example.com" or "example.com/docs".
        blocked_domains: read everywhere but there; not together with `allowed_domains`.
        citations: whether the model says where in a page it found something.
        max_content_tokens: roughly, where the text of a page is cut.
        version: of the tool; later versions filter pages by code, on later models only.
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
    """Return Anthropic's code execution, in the server's own sandbox.

    Args:
        version: of the tool; later versions keep a Python session alive, on later models only.
    """
    return _tool("code_execution", version)


def _tool(name: str, version: str, **options: object) -> AnyTool:
    chosen = {option: value for option, value in options.items() if value is not None}
    return provider_tool({"type": f"{name}_{version}", "name": name, **chosen})
