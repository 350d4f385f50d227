"""given_changes: what runs are given beside the table, compared by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from graphloop.front.graph import Graph
from graphloop.graph import END
from graphloop.model_price import ModelPrice
from graphloop.nodes import Append
from graphloop.proofs.given_changes import given_changes
from graphloop.providers.retries import Retries
from graphloop.providers.timeouts import Timeouts
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
        ({"needs_approval": {}}, {"needs_approval": {"pay": True}}, "stronger"),
        ({"needs_approval": {"pay": len}}, {"needs_approval": {"pay": True}}, "stronger"),
        ({"needs_approval": {"pay": len}}, {"needs_approval": {"pay": max}}, "weaker"),
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
        ({"tools": {"a": 1, "b": 2}}, {"tools": {"b": 2, "a": 1}}, "changed"),
        ({"retries": Retries()}, {"retries": Retries(attempts_max=9)}, "weaker"),
        ({}, {"retries": Retries(attempts_max=9)}, "weaker"),
        ({"retries": Retries(attempts_max=9)}, {}, "stronger"),
        ({"retries": Retries()}, {"retries": Retries(delay_s=1.0)}, "changed"),
        ({}, {"timeouts": Timeouts(total_s=0)}, "weaker"),
        ({"timeouts": Timeouts(silence_s=0)}, {"timeouts": Timeouts(silence_s=9)}, "stronger"),
        ({"price": len}, {"price": max}, "weaker"),
        ({"prices": {"m": ModelPrice(1, 2)}}, {"prices": {"m": ModelPrice(1, 1)}}, "weaker"),
        ({"prices": {"m": ModelPrice(1, 2)}}, {"prices": {"m": ModelPrice(1, 3)}}, "stronger"),
        ({"prices": {"m": ModelPrice(1, 2)}}, {}, "weaker"),
        ({}, {"prices": {"m": ModelPrice(1, 2)}}, "changed"),
        ({"stop_when": (len,)}, {"stop_when": (len, max)}, "stronger"),
        ({"stop_when": (len, max)}, {"stop_when": (len,)}, "weaker"),
        ({"stop_when": (len, max)}, {"stop_when": (max, len)}, "changed"),
        ({"verify": None}, {"verify": len}, "stronger"),
        ({"agents": {"a": {"signed": True}}}, {"agents": {"a": {"signed": False}}}, "weaker"),
        ({"agents": {"a": {"verify": len}}}, {"agents": {"a": {}}}, "weaker"),
        ({"agents": {"a": {}}}, {"agents": {"a": {}, "verify": {}}}, "changed"),
        ({"agents": {"a": ("Works.", False)}}, {"agents": {"a": ("Works.", True)}}, "changed"),
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


@pytest.mark.parametrize("name", ["a", "signed", "verify", "gate", "rules", "max_tokens", "agents"])
def test_a_tool_may_have_the_name_of_an_option(name: str) -> None:
    """It is a tool all the same, and what it is kept from is told."""

    def facts(effect: EffectPolicy = "at_most_once", *, asks: bool = False) -> Graph[None]:
        return graph(
            {"tools": {name: tool(effect)}, "needs_approval": {name: True} if asks else {}}
        )

    none = graph({"tools": {}, "needs_approval": {}})
    looser = list(given_changes(facts(), facts("at_least_once")))

    assert [("weaker", f"tools.{name}.effect")] == [(one.effect, one.name) for one in looser]
    assert [("changed", (name,))] == [
        (one.effect, one.after) for one in given_changes(none, facts())
    ]
    assert ["changed"] == [one.effect for one in given_changes(facts(), none)]
    assert ["weaker"] == [one.effect for one in given_changes(facts(asks=True), facts())]


def test_a_tool_that_is_gone_asks_nobody_any_more_and_that_is_no_loss() -> None:
    """What cannot be called needs nobody's consent."""

    def asked(*names: str) -> dict[str, object]:
        tools = {name: tool() for name in ("a", *names)}
        return {"tools": tools, "needs_approval": dict.fromkeys(names, True)}

    before, after = asked("pay"), asked()
    kept: dict[str, object] = {"tools": before["tools"], "needs_approval": {}}

    assert ["changed"] == [one.effect for one in given_changes(graph(before), graph(after))]
    assert ["weaker"] == [one.effect for one in given_changes(graph(before), graph(kept))]
    inner = graph({"agents": {"kid": before}}), graph({"agents": {"kid": after}})
    assert ["changed"] == [one.effect for one in given_changes(*inner)]
    agent: dict[str, object] = {**after, "agents": {"pay": "another"}}
    assert "weaker" in {one.effect for one in given_changes(graph(before), graph(agent))}


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
