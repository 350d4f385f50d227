"""A toolbox holds the tools of one run, each under a name of its own."""

from __future__ import annotations

import pytest

from graphloop.errors import ToolDefinitionError
from graphloop.tools.tool import Tool, tool
from graphloop.tools.toolbox import Toolbox
from tests.unit.tools.doubles import Query, run, search


def test_a_toolbox_holds_tools_and_functions_in_order() -> None:
    """Everything users write as `tools=` is accepted."""
    client = Tool(name="ask", parameters=Query)
    box = Toolbox([search, client])

    assert [spec.name for spec in box.specs] == ["search", "ask"]
    assert box.get("ask") is client
    assert box.get("__class__") is None
    assert Toolbox().specs == ()


def test_a_mapping_renames_its_tools() -> None:
    """The key is the name the model calls."""
    original = tool(search, needs_approval=True)
    box = Toolbox({"find": original, "seek": search})
    found = box.get("find")

    assert [spec.name for spec in box.specs] == ["find", "seek"]
    assert found is not None
    assert found.needs_approval is True
    assert found.spec.parameters == original.spec.parameters
    assert original.name == "search"
    assert run(found, '{"text": "a"}').content == "a:10"


def test_all_names_that_occur_twice_are_told() -> None:
    """Of two tools with one name, one would never be called."""
    ask = Tool(name="ask", parameters=Query)

    with pytest.raises(ToolDefinitionError, match="named 'search', 'ask'"):
        Toolbox([search, ask, search, ask, Tool(name="other", parameters=Query)])


@pytest.mark.parametrize("wrong", [3, ["search"], {"a": None}])
def test_what_is_no_tool_is_refused(wrong: object) -> None:
    """A string is not a tool, and a single tool is not a list of them."""
    with pytest.raises(ToolDefinitionError, match="Fix: "):
        Toolbox(wrong)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
