"""Tools of a provider are definitions in its own words, checked before they are sent."""

from __future__ import annotations

import asyncio
import json

import pytest
from anthropic.types import ToolUnionParam
from pydantic import TypeAdapter

from graphloop.errors import ToolDefinitionError
from graphloop.providers.anthropic.server_tools import (
    anthropic_code_execution,
    anthropic_web_fetch,
    anthropic_web_search,
)
from graphloop.tools.tool import AnyTool, ToolContext

CONTEXT = ToolContext("run-1", "c0.0", "call_1", 0, ())

EVERY: dict[str, AnyTool] = {
    "search": anthropic_web_search(),
    "local search": anthropic_web_search(
        max_uses=3,
        allowed_domains=["example.com/docs"],
        user_location={"city": "Oslo", "country": "NO"},
        version="20260318",
    ),
    "fetch": anthropic_web_fetch(),
    "limited fetch": anthropic_web_fetch(
        max_uses=1,
        blocked_domains=("example.com",),
        citations=True,
        max_content_tokens=5_000,
        version="20260309",
    ),
    "code": anthropic_code_execution(),
}


def sent(tool: AnyTool) -> object:
    return json.loads(tool.spec.definition)


@pytest.mark.parametrize("tool", EVERY.values(), ids=list(EVERY))
def test_every_definition_is_one_that_anthropic_publishes(tool: AnyTool) -> None:
    """The types of its own library name the fields and versions that there are."""
    published: TypeAdapter[object] = TypeAdapter(list[ToolUnionParam])

    checked = published.dump_python(published.validate_python([sent(tool)]))

    assert checked == [sent(tool)]


@pytest.mark.parametrize("tool", EVERY.values(), ids=list(EVERY))
def test_a_providers_tool_never_runs_here(tool: AnyTool) -> None:
    """CONTRACT §3.8: it is never executed locally, and nobody waits for its result."""
    assert tool.spec.kind == "provider"
    assert asyncio.run(tool.run("{}", CONTEXT)).status == "not_run"
    assert asyncio.run(tool.reconciled("{}", CONTEXT)) == "unknown"
    with pytest.raises(ToolDefinitionError, match=r"provider tool .* cannot be called"):
        tool()
