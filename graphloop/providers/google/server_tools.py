"""Constructors for the tools that Google's server runs itself, over the Gemini wire.

No gate can stop such a tool before it runs, because the server runs it within its reply. Each tool
is sent as its definition. Source: the pages under "Tools" of Google's Gemini API documentation.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...tools import AnyTool, provider_tool
from ..wire_json import JsonObject
from .contents import GOOGLE_WIRE

__all__ = [
    "google_code_execution",
    "google_file_search",
    "google_maps",
    "google_search",
    "google_url_context",
]


def google_search(*, image_search: bool = False, exclude_domains: Sequence[str] = ()) -> AnyTool:
    """Return the tool that searches the web; the reply's metadata names the pages it found.

        Agent("google:gemini-3-flash", tools=[google_search()])

    Args:
        image_search: whether the model may search for pictures, too.
        exclude_domains: domains whose pages are left out, such as `"example.org"`.
    """
    both: JsonObject | None = {"webSearch": {}, "imageSearch": {}} if image_search else None
    excluded = list(exclude_domains) or None
    return _tool("google_search", "googleSearch", searchTypes=both, excludeDomains=excluded)


def google_file_search(
    stores: Sequence[str], *, metadata_filter: str | None = None, top_k: int | None = None
) -> AnyTool:
    """Return the tool that searches files which you have uploaded to Google.

        Agent("google:gemini-3-flash", tools=[google_file_search(["fileSearchStores/manuals"])])

    Args:
        stores: the names of the file search stores.
        metadata_filter: a condition on the files' metadata; None for all files.
        top_k: the number of pieces of text to find; the server's default if None.
    """
    return _tool(
        "file_search",
        "fileSearch",
        fileSearchStoreNames=list(stores),
        metadataFilter=metadata_filter,
        topK=top_k,
    )


def google_maps(*, widget: bool = False) -> AnyTool:
    """Return the tool that looks places up in Google Maps.

        Agent("google:gemini-3-flash", tools=[google_maps()])

    Args:
        widget: whether the reply's metadata has a token that a page shows the map with.
    """
    return _tool("google_maps", "googleMaps", enableWidget=widget or None)


def google_url_context() -> AnyTool:
    """Return the tool that reads the web pages whose addresses are in the conversation.

    Agent("google:gemini-3-flash", tools=[google_url_context()])
    """
    return _tool("url_context", "urlContext")


def google_code_execution() -> AnyTool:
    """Return the tool that runs Python on Google's server.

    Agent("google:gemini-3-flash", tools=[google_code_execution()])
    """
    return _tool("code_execution", "codeExecution")


def _tool(name: str, field: str, **options: object) -> AnyTool:
    given = {key: value for key, value in options.items() if value is not None}
    return provider_tool({field: given}, name=name, wire=GOOGLE_WIRE)
