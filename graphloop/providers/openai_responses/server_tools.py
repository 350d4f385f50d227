"""Constructors for the tools that OpenAI's server runs itself, over the Responses wire.

No gate can stop such a tool before it runs, because the server runs it within its reply. Each tool
is sent as its definition. Source: the pages under "Tools" of OpenAI's documentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ...tools import AnyTool, provider_tool
from .items import RESPONSES_WIRE

__all__ = [
    "openai_code_interpreter",
    "openai_file_search",
    "openai_image_generation",
    "openai_web_search",
]


def openai_web_search(
    *,
    allowed_domains: Sequence[str] = (),
    search_context_size: Literal["low", "medium", "high"] | None = None,
) -> AnyTool:
    """Return the tool that searches the web.

        Agent("openai-responses:gpt-5", tools=[openai_web_search(allowed_domains=["python.org"])])

    Args:
        allowed_domains: the only domains to search, without `https://`; empty for all.
        search_context_size: how much of the pages the model reads; the server's default if None.
    """
    filters = {"allowed_domains": list(allowed_domains)} if allowed_domains else None
    return _tool("web_search", filters=filters, search_context_size=search_context_size)


def openai_file_search(
    vector_store_ids: Sequence[str], *, max_num_results: int | None = None
) -> AnyTool:
    """Return the tool that searches files which you have uploaded to OpenAI.

        Agent("openai-responses:gpt-5", tools=[openai_file_search(["vs_123"])])

    Args:
        vector_store_ids: the ids of the vector stores with the files.
        max_num_results: the maximum number of results; the server's default if None.
    """
    stores = list(vector_store_ids)
    return _tool("file_search", vector_store_ids=stores, max_num_results=max_num_results)


def openai_code_interpreter(*, container: str = "", file_ids: Sequence[str] = ()) -> AnyTool:
    """Return the tool that runs Python in a container of OpenAI.

        Agent("openai-responses:gpt-5", tools=[openai_code_interpreter()])

    Args:
        container: the id of a container that exists; without it, the server makes a container.
        file_ids: the ids of uploaded files for the container that the server makes.
    """
    own = {"type": "auto", **({"file_ids": list(file_ids)} if file_ids else {})}
    return _tool("code_interpreter", container=container or own)


def openai_image_generation(
    *,
    size: str | None = None,
    quality: Literal["low", "medium", "high"] | None = None,
    background: Literal["transparent", "opaque"] | None = None,
) -> AnyTool:
    """Return the tool that makes pictures.

        Agent("openai-responses:gpt-5", tools=[openai_image_generation(size="1024x1024")])

    Args:
        size: width and height in pixels, such as `1024x1024`; the server's default if None.
        quality: the picture's quality; the server's default if None.
        background: the picture's background; the server's default if None.
    """
    return _tool("image_generation", size=size, quality=quality, background=background)


def _tool(kind: str, **options: object) -> AnyTool:
    chosen = {option: value for option, value in options.items() if value is not None}
    return provider_tool({"type": kind, **chosen}, name=kind, wire=RESPONSES_WIRE)
