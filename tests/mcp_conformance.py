"""A client for the official conformance tests: it calls each tool of the server at a URL.

    npx @modelcontextprotocol/conformance client --scenario tools_call \
        --command "python tests/mcp_conformance.py"
"""

from __future__ import annotations

import asyncio
import json
import sys

from graphloop import Agent
from graphloop.mcp import http
from graphloop.policy import approve
from graphloop.testing import ScriptedModel
from graphloop.tools import AnyTool

SAMPLES = {"number": 2, "integer": 2, "string": "two", "boolean": True}


def call_of(tool: AnyTool) -> dict[str, object]:
    """Return a call with a value for each required argument."""
    schema = json.loads(tool.spec.parameters)
    properties = schema.get("properties", {})
    needed = {name: SAMPLES[properties[name]["type"]] for name in schema.get("required", ())}
    return {"name": tool.name, "arguments": needed}


async def main(url: str) -> None:
    """Let an agent call all tools; a person takes the defaults of each form."""
    async with http(url, ask=True) as server:
        tools = await server.tools()
        calls = [{"calls": [call_of(tool)]} for tool in tools]
        model = ScriptedModel([*calls, "Done."])
        agent = Agent(model, tools=tools, approve_tool_call=lambda _: approve())
        result = await agent.generate("Call each tool.")
        print(result.text)  # noqa: T201 - a program


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
