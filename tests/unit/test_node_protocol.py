"""Node: the closed set of outcomes, written once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphloop.node_protocol import Node, is_node, nodes_within, outcomes_of, unwrapped
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


def test_only_an_object_with_all_words_is_a_node() -> None:
    """A class of nodes makes nodes, and is none; a registry may be handed either."""
    assert is_node(Append())
    assert not any(map(is_node, (Append, "append", None, object())))


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
