"""What registered tools take."""

from __future__ import annotations

from graphloop import tool
from graphloop.topology.agent_spec.tool_inputs import input_properties, registered_tool


def search(query: str, places: list[str], most: int = 3) -> str:
    """Search.

    Args:
        query: what for.
        places: where.
        most: how many.
    """
    return query


def untyped(*anything: str) -> str:
    """Take anything."""
    return "".join(anything)


def test_a_function_is_the_tool_that_it_is_made() -> None:
    """Registered tools may be either; what is neither takes nothing."""
    made = registered_tool(search)

    assert made is not None
    assert "search" == made.spec.name
    held = tool(search)
    assert held is registered_tool(held)
    assert registered_tool(3) is None
    assert registered_tool(untyped) is None


def test_what_a_tool_takes_has_a_title_and_a_plain_type() -> None:
    """Other tools read no more than that of a schema."""
    assert [
        {"title": "query", "type": "string", "description": "what for."},
        {"title": "places", "description": "where."},
        {"title": "most", "type": "integer", "description": "how many."},
    ] == input_properties(tool(search))
