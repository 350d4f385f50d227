"""GL6: fields of the state, read and written."""

from __future__ import annotations

from typing import Any

import pytest

from graphloop.proofs.data import misread, unwritten_at_first
from graphloop.proofs.ground import Ground
from graphloop.proofs.report import Finding, Unknown
from tests.topology_data import Essay, graph_of


def found(*nodes: dict[str, Any], state: str = "Essay") -> list[Finding | Unknown]:
    """Return what is wrong with nodes of one's own in a row."""
    names = [f"n{at}" for at in range(len(nodes))]
    afters = [*names[1:], "END"]
    own = {"type": "own", "outcomes": ["ready"]}
    topology = {
        "name": "g",
        "state": state,
        "start": "n0",
        "nodes": {name: own | said for name, said in zip(names, nodes, strict=True)},
        "edges": {name: {"ready": after} for name, after in zip(names, afters, strict=True)},
    }
    return list(misread(Ground(graph_of(topology))))


def test_only_fields_without_a_value_are_unwritten() -> None:
    """A default is a value."""
    assert unwritten_at_first(Essay) == ("draft",)


def test_a_field_that_is_written_before_it_is_read_is_fine() -> None:
    """So is what a run begins with."""
    assert not found({"writes": ["draft"]}, {"reads": ["draft", "topic"]})


def test_a_field_that_is_read_too_early_is_an_error_with_the_way() -> None:
    """It would be None."""
    (finding,) = found({}, {"reads": ["draft"]}, {"writes": ["draft"]})

    assert isinstance(finding, Finding)
    assert finding.witness == ("n0", "n1")


@pytest.mark.parametrize(("reads", "count"), [([], 1), (["score"], 0)])
def test_a_write_that_is_always_overwritten_is_in_vain(reads: list[str], count: int) -> None:
    """Unless somebody reads it; what stands at the end is the result."""
    assert count == len(found({"writes": ["score"]}, {"reads": reads, "writes": ["score"]}))


def test_a_node_that_does_not_say_what_it_reads_makes_it_unknown() -> None:
    """Unknown is never proven."""
    (one,) = found({"reads": None})

    assert isinstance(one, Unknown)
    assert "'n0'" in one.reason


def test_without_a_state_there_is_nothing_to_misread() -> None:
    """Most graphs have none."""
    assert not found({"reads": None}, state="")
