"""Constructors for the tools that Google's server runs itself, over the Gemini wire.

No gate can stop such a tool before it runs, because the server runs it within its reply. Each tool
is sent as its definition. Source: the pages under "Tools" of Google's Gemini API documentation.
"""

from __future__ import annotations

from ...tools import AnyTool, provider_tool
from .contents import GOOGLE_WIRE

__all__ = ["google_code_execution", "google_search", "google_url_context"]


def google_search(*, image_search: bool = False) -> AnyTool:
    """Return the tool that searches the web; the reply's metadata names the pages it found.

        Agent("google:gemini-3-flash", tools=[google_search()])

    Args:
        image_search: whether the model may search for pictures, too.
    """
    both: dict[str, object] = {"webSearch": {}, "imageSearch": {}}
    return _tool("google_search", "googleSearch", {"searchTypes": both} if image_search else {})


def google_url_context() -> AnyTool:
    """Return the tool that reads the web pages whose addresses are in the conversation.

    Agent("google:gemini-3-flash", tools=[google_url_context()])
    """
    return _tool("url_context", "urlContext", {})


def google_code_execution() -> AnyTool:
    """Return the tool that runs Python on Google's server.

    Agent("google:gemini-3-flash", tools=[google_code_execution()])
    """
    return _tool("code_execution", "codeExecution", {})


def _tool(name: str, field: str, options: dict[str, object]) -> AnyTool:
    return provider_tool({field: options}, name=name, wire=GOOGLE_WIRE)
