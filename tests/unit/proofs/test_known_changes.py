"""known_changes: what is known to be stricter, of parameters that are compared by themselves."""

from __future__ import annotations

from graphloop.nodes import AnswerCheck
from graphloop.outcomes import Done, Final
from graphloop.proofs.known_changes import (
    are_numbers,
    asked,
    capped,
    caps_of,
    checks_changed,
    offered,
    reordered,
    ruled,
)
from graphloop.temporal import Rules, at_most, never


def test_fewer_tools_are_stricter() -> None:
    """None offers all of them."""
    assert "stronger" == offered("tools", None, ("a",)).effect
    assert "stronger" == offered("tools", ("a", "b"), ("a",)).effect
    assert "changed" == offered("tools", ("a", "b"), ("b", "a")).effect
    assert "weaker" == offered("tools", ("a",), ("b",)).effect
    assert "weaker" == offered("tools", ("a",), None).effect


def test_bounds_are_compared_by_the_names_of_outcomes() -> None:
    """Two loads of a file may have made the outcomes twice."""
    one, other = caps_of(((Done, 1),)), caps_of(((Done, 2), (Final, 1)))

    assert {"done": 1} == one
    assert ["weaker", "stronger"] == [each.effect for each in capped(one, other)]
    assert not list(capped(one, one))


def test_a_check_that_is_gone_is_weaker() -> None:
    """And a new one is not."""
    check = AnswerCheck("strict", 1)

    assert ["weaker"] == [one.effect for one in checks_changed((check,), ())]
    assert ["stronger"] == [one.effect for one in checks_changed((), (check,))]


def test_rules_are_compared_by_what_they_forbid() -> None:
    """A stricter one takes the place of another."""
    assert "stronger" == ruled("rules", at_most("a", 2), at_most("a", 1)).effect
    assert "weaker" == ruled("rules", never("a"), Rules()).effect
    assert "changed" == ruled("rules", never("a"), never("a", reason="why")).effect


def test_who_has_to_agree_is_compared_tool_by_tool() -> None:
    """Where nothing is said, nobody has to."""
    found = list(asked("asks", {"a": True, "b": len, "c": len}, {"b": True, "c": max, "d": len}))

    assert [
        ("asks.a", "weaker"),
        ("asks.b", "stronger"),
        ("asks.c", "weaker"),
        ("asks.d", "stronger"),
    ] == [(one.name, one.effect) for one in found]
    assert not list(asked("asks", {"a": False, "b": True}, {"b": True}))


def test_an_order_is_told_where_nothing_else_differs() -> None:
    """A tool that came or went is told by itself."""
    assert ["changed"] == [one.effect for one in reordered("t", {"a": 1, "b": 2}, {"b": 2, "a": 1})]
    assert not list(reordered("t", {"a": 1, "b": 2}, {"b": 2}))
    assert not list(reordered("t", None, {"b": 2}))


def test_a_yes_is_no_number() -> None:
    """Though Python takes it for one."""
    assert are_numbers(1, None)
    assert not are_numbers(1, True)
    assert not are_numbers("1", 1)
