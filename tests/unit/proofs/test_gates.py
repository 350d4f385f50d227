"""GL2: no tool runs that a gate has not spoken about."""

from __future__ import annotations

import pytest

from graphloop.proofs.check import check
from tests.topology_data import MUTANTS, graph_of, standard

NAMES = (
    "gate removed",
    "gate bypassed by the model",
    "gate bypassed by a conversation",
    "held calls not asked about",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_way_around_the_gate_is_found(name: str) -> None:
    """Each is one line of a table that leads elsewhere."""
    (mutant,) = (one for one in MUTANTS if one.name == name)

    report = check(graph_of(mutant.of(standard(hold=False))))

    found = [one for one in report.findings if one.code == mutant.code]
    assert found
    assert all(one.fix and one.witness and one.location for one in found)
    assert mutant.code in check(graph_of(standard())).proven
