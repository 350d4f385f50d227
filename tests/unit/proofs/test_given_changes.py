"""given_changes: what runs are given beside the table, compared by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from graphloop.front.graph import Graph
from graphloop.graph import END
from graphloop.nodes import Append
from graphloop.proofs.given_changes import given_changes
from graphloop.spending import Budget
from graphloop.temporal import at_most, never
from graphloop.tool_effects import EffectPolicy
from graphloop.tools import AnyTool, Tool


def graph(
    facts: Mapping[str, object], ignore: Mapping[tuple[str, str], str] | None = None
) -> Graph[None]:
    """Return a graph of which these things are known."""
    append = Append()
    made: Graph[None] = Graph("g", append, {append: {...: END}}, ignore=ignore)
    made.facts = facts
    return made


def tool(effect: EffectPolicy = "at_most_once", *, body: int = 1, **options: Any) -> AnyTool:
    """Return a tool with some options."""

    def one(_: object) -> int:
        return 1

    def two(_: object) -> int:
        return 2

    execute = two if body == 2 else one
    return Tool(name="a", parameters={"type": "object"}, execute=execute, effect=effect, **options)


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        ({"instructions": "Never."}, {}, "changed"),
        ({"tools": ("a", "b")}, {"tools": ("b", "a")}, "changed"),
        ({"tools": {"a": 1}}, {"tools": {"a": 1, "b": 2}}, "changed"),
        ({"approval_ttl_s": 60}, {}, "weaker"),
        ({"approval_ttl_s": 60}, {"approval_ttl_s": 30}, "stronger"),
        ({"signed": True}, {"signed": False}, "weaker"),
        ({"budget": Budget(usd=1)}, {"budget": Budget(usd=2)}, "weaker"),
        ({"budget": Budget()}, {"budget": Budget(usd=2)}, "stronger"),
        ({"needs_approval": {"pay": True}}, {"needs_approval": {}}, "weaker"),
        ({"needs_approval": {"pay": True}}, {"needs_approval": {"pay": len}}, "weaker"),
        ({"needs_approval": {}}, {"needs_approval": {"pay": True}}, "changed"),
        ({"verify": len}, {"verify": min}, "weaker"),
        ({"verify": len}, {}, "weaker"),
        ({"approve_tool_call": None}, {"approve_tool_call": len}, "weaker"),
        ({"model": "a"}, {"model": "b"}, "changed"),
        ({"tools": {"a": tool()}}, {"tools": {"a": tool("at_least_once")}}, "weaker"),
        ({"tools": {"a": tool("at_least_once")}}, {"tools": {"a": tool()}}, "stronger"),
        ({"tools": {"a": tool("pure")}}, {"tools": {"a": tool("idempotent")}}, "changed"),
        ({"tools": {"a": tool()}}, {"tools": {"a": tool(thread=True)}}, "changed"),
        ({"tools": {"a": tool()}}, {"tools": {"a": tool(result_chars_max=9)}}, "changed"),
        ({"tools": {"a": tool(body=1)}}, {"tools": {"a": tool(body=2)}}, "changed"),
        ({"agents": {"a": {"signed": True}}}, {"agents": {"a": {"signed": False}}}, "weaker"),
        ({"agents": {"a": {"rules": never("x")}}}, {"agents": {"a": {}}}, "weaker"),
        (
            {"agents": {"a": {"rules": at_most("x", 2)}}},
            {"agents": {"a": {"rules": at_most("x", 1)}}},
            "stronger",
        ),
        (
            {"agents": {"a": {"rules": never("x")}}},
            {"agents": {"a": {"rules": never("x", reason="why")}}},
            "changed",
        ),
        (
            {"agents": {"a": {"needs_approval": {"pay": True}}}},
            {"agents": {"a": {"needs_approval": {}}}},
            "weaker",
        ),
    ],
)
def test_what_is_given_is_compared_by_name(
    before: Mapping[str, object], after: Mapping[str, object], effect: str
) -> None:
    """Limits and guards have a direction; the rest is a change."""
    assert [effect] == [one.effect for one in given_changes(graph(before), graph(after))]
    assert not list(given_changes(graph(before), graph(before)))


def test_what_is_set_aside_is_told() -> None:
    """A finding that nobody is told of any more is one less."""
    one, other = {("append", "GL6"): "why"}, {("append", "GL6"): "because"}

    assert ["weaker"] == [each.effect for each in given_changes(graph({}), graph({}, one))]
    assert ["stronger"] == [each.effect for each in given_changes(graph({}, one), graph({}))]
    assert ["changed"] == [each.effect for each in given_changes(graph({}, one), graph({}, other))]
    both = {**one, ("", "GL4"): "so"}
    turned = dict(reversed(both.items()))
    assert ["changed"] == [
        each.effect for each in given_changes(graph({}, both), graph({}, turned))
    ]
