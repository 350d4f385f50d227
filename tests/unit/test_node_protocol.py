"""Node: the closed set of outcomes, written once."""

from __future__ import annotations

from graphloop.node_protocol import Node, outcomes_of
from graphloop.nodes import (
    Append,
    Critique,
    Execute,
    Extend,
    Gate,
    ModelCall,
    PrepareStep,
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
