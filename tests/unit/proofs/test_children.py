"""GL7 to GL9: children side by side, joins, gates and budgets."""

from __future__ import annotations

import pytest

from graphloop.proofs.check import check
from tests.topology_data import MUTANTS, graph_of, standard

NAMES = ("two writers side by side", "join that waits for too many", "child gate weakened")


@pytest.mark.parametrize("name", NAMES)
def test_children_that_may_do_too_much_are_found(name: str) -> None:
    """Each is one line of a table that leads elsewhere."""
    (mutant,) = (one for one in MUTANTS if one.name == name)

    report = check(graph_of(mutant.of(standard())))

    found = [one for one in report.findings if one.code == mutant.code]
    assert found
    assert all(one.fix and one.witness and one.location for one in found)
    assert mutant.code in check(graph_of(standard())).proven
