"""GL3: every call is answered exactly once."""

from __future__ import annotations

import pytest

from graphloop.proofs.check import check
from tests.topology_data import MUTANTS, graph_of, standard

NAMES = (
    "append skipped after running",
    "calls skipped",
    "calls dropped for another reply",
    "executed twice",
    "cut calls let through",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_call_without_its_one_answer_is_found(name: str) -> None:
    """Each is one line of a table that leads elsewhere."""
    (mutant,) = (one for one in MUTANTS if one.name == name)

    report = check(graph_of(mutant.of(standard(hold=False))))

    found = [one for one in report.findings if one.code == mutant.code]
    assert found
    assert all(one.fix and one.witness and one.location for one in found)
    assert mutant.code in check(graph_of(standard())).proven
