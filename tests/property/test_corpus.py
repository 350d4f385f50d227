"""The corpus: topologies as files, each with what a checker has to say of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphloop.proofs.checking import check
from graphloop.spending import Budget
from tests.topology_data import graph_of

CORPUS = Path(__file__).parents[1] / "corpus"
FILES = sorted(CORPUS.glob("*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda one: one.stem)
def test_the_verdict_on_a_topology_is_as_expected(file: Path) -> None:
    """A verdict that changes is a change of what users are told."""
    topology = json.loads(file.read_text(encoding="utf-8"))
    given = topology.get("budget")

    report = check(graph_of(topology), budget=None if given is None else Budget(**given))

    assert topology["expected"] == {
        "findings": sorted({one.code for one in report.findings}),
        "unknown": sorted({one.code for one in report.unknown}),
    }


def test_the_corpus_is_large_enough_and_says_what_it_holds() -> None:
    """Good ones keep the checker from crying wolf, bad ones from sleeping."""
    kinds = [file.stem.partition("-")[0] for file in FILES]

    assert len(FILES) >= 60
    assert {"good", "bad", "open"} == set(kinds)
    for file in FILES:
        expected = json.loads(file.read_text(encoding="utf-8"))["expected"]
        assert bool(expected["findings"]) == file.stem.startswith("bad")
