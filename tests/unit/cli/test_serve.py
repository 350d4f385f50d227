"""`graphloop mcp serve`, as the client of the protocol's SDK and as a new user meet it."""

from __future__ import annotations

import sys

from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from tests.unit.cli.command_line import ROOT, graphloop, refused

WEATHER = str(ROOT / "examples/weather")


async def test_a_client_that_starts_the_command_asks_the_agent() -> None:
    """The command is what a client has in its configuration."""
    words = ["-m", "graphloop", "mcp", "serve", WEATHER, "--description", "Knows the weather."]
    async with Client(
        StdioServerParameters(command=sys.executable, args=words, cwd=ROOT)
    ) as client:
        tools = (await client.list_tools()).tools
        names = [tool.name for tool in tools]
        result = await client.call_tool(names[0], {"prompt": "What's the weather?"})

    assert names[1:] == ["run_status"]
    assert tools[0].description == "Knows the weather."
    (said,) = result.content
    assert isinstance(said, TextContent)
    assert said.text == "NYC is 72°F and sunny; London is 55°F and rainy."


def test_a_graph_is_no_agent() -> None:
    """A call has a prompt, and a graph may have none."""
    place = str(ROOT / "examples/custom_topology")

    assert "expected an agent, found a graph" in refused("mcp", "serve", place)


def test_a_missing_extra_is_named() -> None:
    """A plain install has no server, and says what to install."""
    done = graphloop("mcp", "serve", WEATHER, missing="mcp_types")

    assert done.returncode == 2
    assert "Fix: pip install 'graphloop[mcp]'" in done.stderr
    assert "Traceback" not in done.stderr
