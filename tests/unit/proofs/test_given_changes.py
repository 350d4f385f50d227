"""given_changes: what runs are given beside the table, compared by name."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from graphloop.front.graph import Graph
from graphloop.graph import END
from graphloop.nodes import Append
from graphloop.proofs.given_changes import given_changes
from graphloop.spending import Budget


def graph(
    facts: Mapping[str, object], ignore: Mapping[tuple[str, str], str] | None = None
) -> Graph[None]:
    """Return a graph of which these things are known."""
    append = Append()
    made: Graph[None] = Graph("g", append, {append: {...: END}}, ignore=ignore)
    made.facts = facts
    return made


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
