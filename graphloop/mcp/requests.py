"""Requests: the calls that a client of the SDK sends, and what its errors mean."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Final, TypeAlias, TypeVar, cast

import anyio
from httpx2 import HTTPError
from mcp import Client, MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    CallToolResult,
    CreateMessageResult,
    ElicitResult,
    InputRequiredResult,
    InputResponses,
    ListRootsResult,
)
from pydantic import ValidationError

from ..errors import ToolError
from ..tools import ToolContext
from .definitions import Definition
from .live_call import LiveCall
from .materials import Prompt, Resource
from .results import definition_of, prompt_of, resource_of
from .server_questions import Json, Rounds

__all__ = [
    "REFUSALS",
    "Page",
    "all_pages",
    "as_tool_errors",
    "error_words",
    "first_cause",
    "is_lost",
    "prompts_page",
    "refusal_words",
    "request_of",
    "resources_page",
    "tools_page",
]

T = TypeVar("T")
Page: TypeAlias = tuple[list[T], str | None]
"""A page of a list, and the cursor of the next; None after the last."""

REFUSALS: Final = (MCPError, RuntimeError, ValueError)
"""Errors of an answer: the server's own; a result that misses its schema; another form."""
PAGES_MAX: Final = 100
"""The most pages of a list that are read; a server could send pages for ever."""


def request_of(
    name: str,
    arguments: dict[str, object],
    call: ToolContext | LiveCall,
    rounds: Rounds | None = None,
) -> Callable[[Client], Awaitable[CallToolResult | InputRequiredResult]]:
    """Return the request of a call; a live call reports to the context that it has by then."""

    async def told(progress: float, total: float | None, message: str | None) -> None:
        context = call.context if isinstance(call, LiveCall) else call
        await context.report(progress, total, message or "")

    async def ask(client: Client) -> CallToolResult | InputRequiredResult:
        responses = (
            None if rounds is None or not rounds.responses else _as_sdk_types(rounds.responses)
        )
        return await client.session.call_tool(
            name,
            arguments,
            progress_callback=told,
            input_responses=responses,
            request_state=None if rounds is None else rounds.state,
            allow_input_required=True,
        )

    return ask


async def tools_page(client: Client, cursor: str | None) -> Page[Definition]:
    """Return a page of the server's tools, as it describes them now."""
    found = await client.list_tools(cursor=cursor, cache_mode="refresh")
    return [definition_of(tool) for tool in found.tools], found.next_cursor


async def resources_page(client: Client, cursor: str | None) -> Page[Resource]:
    """Return a page of what the server lets its clients read."""
    found = await client.list_resources(cursor=cursor)
    return [resource_of(each) for each in found.resources], found.next_cursor


async def prompts_page(client: Client, cursor: str | None) -> Page[Prompt]:
    """Return a page of the server's prompts."""
    found = await client.list_prompts(cursor=cursor)
    return [prompt_of(each) for each in found.prompts], found.next_cursor


async def all_pages(
    client: Client, page: Callable[[Client, str | None], Awaitable[Page[T]]]
) -> list[T]:
    """Return the items of all pages; a cursor that repeats ends them, and so does their number."""
    found: list[T] = []
    cursor, known = None, set[str]()
    for _ in range(PAGES_MAX):
        items, cursor = await page(client, cursor)
        found += items
        if not cursor or cursor in known:
            break
        known.add(cursor)
    return found


def _as_sdk_types(responses: Mapping[str, Json]) -> InputResponses:
    """Return answers as the SDK's types; each of them has a field that no other has."""
    kinds: Mapping[str, type[ElicitResult | ListRootsResult | CreateMessageResult]] = {
        "action": ElicitResult,
        "roots": ListRootsResult,
        "role": CreateMessageResult,
    }
    return {
        key: kinds[next(field for field in kinds if field in response)].model_validate(response)
        for key, response in responses.items()
    }


@contextmanager
def as_tool_errors() -> Generator[None, None, None]:
    """Raise the errors of an answer as ToolErrors."""
    try:
        yield
    except REFUSALS as error:
        raise ToolError(refusal_words(error)) from error


def refusal_words(error: Exception) -> str:
    """Return what one of the `REFUSALS` says, for models and people."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"the answer has another form than MCP gives it: {place}: {first['msg']}."


def first_cause(error: BaseException) -> BaseException:
    """Return the first error within a group of errors, whose own message says nothing."""
    cause = error
    while isinstance(cause, BaseExceptionGroup):
        # isinstance does not know the type of the errors.
        cause = cast("BaseExceptionGroup[BaseException]", cause).exceptions[0]
    return cause


def error_words(error: BaseException | None) -> str:
    """Return the type and the message of the error that began it."""
    if error is None:
        return "it was closed"
    cause = first_cause(error)
    if isinstance(cause, MCPError):
        return str(cause)
    return f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__


def is_lost(error: BaseException) -> bool:
    """Whether an error says that the connection has ended, rather than the request failed."""
    cause = first_cause(error)
    if isinstance(cause, MCPError):
        return cause.code == CONNECTION_CLOSED
    return isinstance(cause, HTTPError | anyio.ClosedResourceError | anyio.BrokenResourceError)
