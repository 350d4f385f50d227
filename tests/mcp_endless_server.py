"""An MCP server that never ends a call: `python tests/mcp_endless_server.py`, on standard input.

The tool `ask` asks a person each time, `think` a model, and `wait` nobody. Each error of its client
would end the call, so the text of the 99th answer is the only one that it gives.
"""

from __future__ import annotations

import asyncio
from typing import Any

from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

FORM: types.ElicitRequestedSchema = {"type": "object", "properties": {"size": {"type": "integer"}}}
REQUESTS: dict[str, types.InputRequests] = {
    "ask": {
        "size": types.ElicitRequest(
            params=types.ElicitRequestFormParams(message="Which size?", requested_schema=FORM)
        )
    },
    "think": {
        "thought": types.CreateMessageRequest(
            params=types.CreateMessageRequestParams(
                messages=[
                    types.SamplingMessage(role="user", content=types.TextContent(text="Think."))
                ],
                max_tokens=9,
            )
        )
    },
    "wait": {},
}
Context = ServerRequestContext[dict[str, Any], Any]


async def listed(
    context: Context, params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    """Return the tools."""
    del context, params
    return types.ListToolsResult(
        tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in REQUESTS]
    )


async def called(
    context: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    """Ask once more."""
    del context
    number = int(params.request_state or "0") + 1
    if number == 99:
        return types.CallToolResult(content=[types.TextContent(text="At last.")])
    return types.InputRequiredResult(
        input_requests=REQUESTS[params.name], request_state=str(number)
    )


async def main() -> None:
    """Serve standard input."""
    server = Server("endless", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
