"""The line to blame is the one by whose change the finding is gone."""

from __future__ import annotations

from typing import Any

import pytest

from graphloop.proofs import lone_graph
from graphloop.proofs.checking import check
from tests.topology_data import graph_of, standard


def spoilt(node: str, outcome: str, target: str) -> dict[str, Any]:
    topology = standard(hold=False)
    topology["edges"][node][outcome] = target
    return topology


@pytest.mark.parametrize(
    ("line", "target", "code"),
    [
        (("gate", "aborted"), "END", "GL3"),
        (("model", "answered"), "execute", "GL2"),
        (("append", "answered_calls"), "prepare", "GL4"),
    ],
)
def test_the_line_that_was_changed_is_told(line: tuple[str, str], target: str, code: str) -> None:
    """Also where the witness ends at another node."""
    report = check(graph_of(spoilt(*line, target)))

    (rows,) = {one.rows for one in report.findings if one.code == code}
    assert line in rows
    assert "to blame: " + ".".join(rows[0]) in str(report)


def test_a_large_graph_is_told_without_trying(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line that is led elsewhere is another graph to prove."""
    monkeypatch.setattr(lone_graph, "FINDING_MAX", 1)
    report = check(graph_of(spoilt("gate", "aborted", "END")))

    assert not report.ok
    assert {()} == {one.rows for one in report.findings}
