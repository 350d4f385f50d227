"""Tools that a model's own server runs, in the middle of a reply.

Such a tool is a definition that its wire sends as it is: no call of it reaches this process.
Anthropic's tools have the type strings and fields of its API reference. Each has dated versions;
the first, the default here, works with every model that has the tool at all. Use `provider_tool`
for any other tool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, TypedDict, get_args

from pydantic import BaseModel

from ..errors import ToolDefinitionError, nearest
from ..spending import is_whole
from .tool import AnyTool, Tool

__all__ = [
    "UserLocation",
    "anthropic_code_execution",
    "anthropic_web_fetch",
    "anthropic_web_search",
    "provider_tool",
]

SearchVersion: TypeAlias = Literal["20250305", "20260209", "20260318"]
FetchVersion: TypeAlias = Literal["20250910", "20260209", "20260309", "20260318"]
CodeVersion: TypeAlias = Literal["20250825", "20260120", "20260521"]


class UserLocation(TypedDict, total=False):
    """Roughly where the user is; `country` is an ISO code of two letters, `timezone` IANA's."""

    city: str
    region: str
    country: str
    timezone: str


def provider_tool(definition: Mapping[str, object]) -> AnyTool:
    """Return a tool that the model's server runs, by its definition in the words of that server.

    Raises:
        ToolDefinitionError: it is not JSON, or has no `type` or no legal `name`.
    """
    name = definition.get("name")
    if not isinstance(name, str):
        raise ToolDefinitionError(
            f"provider_tool: expected a definition with a 'type' and a 'name', found "
            f"{definition!r}. Fix: copy it from the provider's page."
        )
    return Tool(name=name, parameters=_Nothing, kind="provider", definition=definition)


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

    Raises:
        ToolDefinitionError: an option cannot work; the message names it.
    """
    place = "anthropic_web_search"
    return _tool(
        "web_search",
        version,
        get_args(SearchVersion),
        {
            "max_uses": _count(f"{place}: max_uses", max_uses),
            **_domains(place, allowed_domains, blocked_domains),
            "user_location": _location(place, user_location),
        },
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
    """Return Anthropic's web fetch: it reads pages whose address stands in the conversation.

    Args:
        max_uses: how many pages one model call may read; None for the server's own limit.
        allowed_domains: read nowhere else, as "example.com" or "example.com/docs".
        blocked_domains: read everywhere but there; not together with `allowed_domains`.
        citations: whether the model says where in a page it found something.
        max_content_tokens: roughly, where the text of a page is cut.
        version: of the tool; later versions filter pages by code, on later models only.

    Raises:
        ToolDefinitionError: an option cannot work; the message names it.
    """
    place = "anthropic_web_fetch"
    if citations not in (True, False):
        raise ToolDefinitionError(
            f"{place}: citations: expected True or False, found {citations!r}. Fix: say True to "
            "have them."
        )
    return _tool(
        "web_fetch",
        version,
        get_args(FetchVersion),
        {
            "max_uses": _count(f"{place}: max_uses", max_uses),
            **_domains(place, allowed_domains, blocked_domains),
            "citations": {"enabled": True} if citations else None,
            "max_content_tokens": _count(f"{place}: max_content_tokens", max_content_tokens),
        },
    )


def anthropic_code_execution(*, version: CodeVersion = "20250825") -> AnyTool:
    """Return Anthropic's code execution: shell commands and files, in the server's own sandbox.

    Args:
        version: of the tool; later versions keep a Python session alive, on later models only.

    Raises:
        ToolDefinitionError: there is no such version.
    """
    return _tool("code_execution", version, get_args(CodeVersion), {})


class _Nothing(BaseModel):
    """The empty parameters of a tool: only its server knows the real ones."""


def _tool(
    name: str, version: str, versions: tuple[str, ...], options: Mapping[str, object]
) -> AnyTool:
    if version not in versions:
        raise ToolDefinitionError(
            f"anthropic_{name}: version: expected one of {', '.join(map(repr, versions))}, "
            f"found {version!r}. Fix: choose one, or use provider_tool(…) for another."
        )
    given = {option: value for option, value in options.items() if value is not None}
    return provider_tool({"type": f"{name}_{version}", "name": name, **given})


def _count(place: str, value: int | None) -> int | None:
    if value is None or (is_whole(value) and value >= 1):
        return value
    raise ToolDefinitionError(
        f"{place}: expected a whole number of at least 1, found {value!r}. Fix: raise it, or leave "
        "it out."
    )


def _domains(
    place: str, allowed: Sequence[str] | None, blocked: Sequence[str] | None
) -> dict[str, object]:
    if allowed is not None and blocked is not None:
        raise ToolDefinitionError(
            f"{place}: expected allowed_domains or blocked_domains, found both. Fix: drop one; "
            "an allowed list blocks every other domain."
        )
    return {
        "allowed_domains": _addresses(f"{place}: allowed_domains", allowed),
        "blocked_domains": _addresses(f"{place}: blocked_domains", blocked),
    }


def _addresses(place: str, given: Sequence[str] | None) -> list[str] | None:
    if given is None:
        return None
    if isinstance(given, str) or not given:
        raise ToolDefinitionError(
            f"{place}: expected a list of at least one domain, found {given!r}. "
            'Fix: write ["example.com"], or leave it out.'
        )
    for domain in given:
        if not _is_domain(domain):
            raise ToolDefinitionError(
                f"{place}: expected a domain without scheme, found {domain!r}. "
                'Fix: write it as "example.com" or "example.com/docs".'
            )
    return list(given)


def _is_domain(value: object) -> bool:
    return isinstance(value, str) and value != "" and "://" not in value and " " not in value


def _location(place: str, given: UserLocation | None) -> dict[str, object] | None:
    if given is None:
        return None
    known = tuple(UserLocation.__annotations__)
    unknown = [name for name in given if name not in known]
    if unknown or not given:
        found = f"{unknown[0]!r}.{nearest(unknown[0], known)}" if unknown else "nothing."
        raise ToolDefinitionError(
            f"{place}: user_location: expected some of {', '.join(known)}, found {found} "
            "Fix: give at least one of these."
        )
    return {"type": "approximate", **given}
