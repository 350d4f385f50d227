"""Node: the closed set of outcomes, written once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from graphloop.node_protocol import (
    NAME_MAX,
    Node,
    flaw_of,
    node_flaw_of,
    nodes_within,
    outcomes_of,
    turns_direction,
    unwrapped,
)
from graphloop.nodes import (
    Append,
    Critique,
    Execute,
    Extend,
    Fallback,
    Gate,
    ModelCall,
    PrepareStep,
    Retrying,
    StopCheck,
)
from graphloop.outcomes import Aborted, Go, Outcome, Stop

EVERY: tuple[Node[None, Outcome], ...] = (
    Append(),
    Critique("?"),
    Execute(),
    Extend(),
    Gate(),
    ModelCall(),
    PrepareStep(),
    StopCheck(),
)


def test_a_union_gives_its_members_and_a_class_itself() -> None:
    """A node with one outcome needs no union."""
    assert {Go, Stop} == outcomes_of(Go | Stop)
    assert {Go} == outcomes_of(Go)


def test_every_node_of_ours_can_stand_in_a_table() -> None:
    """Hashable, named, and with outcomes of its own."""
    assert len(EVERY) == len({node.name for node in EVERY}) == len(set(EVERY))
    assert all(node.outcomes for node in EVERY)


def test_every_node_that_waits_can_be_aborted() -> None:
    """A node without a way out would hold a cancelled run."""
    waiting = [node for node in EVERY if node.kind != "prepare" or node.name == "prepare_step"]

    assert all(Aborted in node.outcomes for node in waiting)


def test_wrapped_nodes_are_found_at_any_depth_each_after_its_wrapper() -> None:
    """What they bring, and what they ask for, is the graph's as well."""
    inner: Retrying[None] = Retrying(ModelCall("first"), 1, name="again")
    either: Fallback[None] = Fallback(inner, ModelCall("second"), name="either")

    found = [one.name for one in unwrapped([either, Append()])]

    assert (inner, ModelCall("second")) == nodes_within(either)
    assert () == nodes_within(Append())
    assert ["either", "again", "first", "second", "append"] == found


@dataclass(frozen=True)
class Knot(Append):
    """A node of somebody's own that holds another."""

    other: Node[Any, Outcome] | None = None


def test_a_node_that_holds_itself_is_found_once() -> None:
    """Nobody goes round for ever."""
    knot = Knot("knot")
    object.__setattr__(knot, "other", knot)

    assert [knot] == list(unwrapped([knot]))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "says nothing"),
        (" \n", "says nothing"),
        (" a", "begins or ends with white space"),
        ("a\xa0", "begins or ends with white space"),
        ("a\x1b[2J", "the control character '\\x1b'"),
        ("a\nb", "the control character '\\n'"),
        ("a\x85b", "the control character '\\x85'"),
        ("a\u2028b", "the control character '\\u2028'"),
        ("a\ud800b", "the control character '\\ud800'"),
        ("a/b", "a slash leads from a child to its nodes"),
        ("a" * (NAME_MAX + 1), "has more than 200 characters"),
    ],
)
def test_what_no_line_of_text_can_hold_is_no_name(name: str, said: str) -> None:
    """It would drive a terminal, or look like another name."""
    assert said in str(flaw_of(name))


@pytest.mark.parametrize("name", ["c0", "c12", "c-1"])
def test_no_node_is_called_as_the_calls_of_a_turn_are(name: str) -> None:
    """Answers and runs go by keys: those of a node and those of calls must not be the same."""
    assert flaw_of(name) is None
    assert "the calls of a turn have such keys" in str(node_flaw_of(name))


def test_what_turns_the_direction_of_a_line_is_known() -> None:
    """Marks and joiners stay: names are written with them, and the line stays as it is."""
    turning = [chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))]

    assert all(map(turns_direction, turning))
    assert not any(map(turns_direction, "aé\u200d\u200f\n"))
