"""The reader: what it takes, and that everything else is refused where it stands."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from graphloop.topology.problems import TopologyError
from graphloop.topology.reader import read_path, read_text
from graphloop.topology.registration import Names, Registry
from tests.topology_files import BAD, RIGHT, Bad, with_line

NAMES = Names(Registry(), installed=False)


@pytest.mark.parametrize("bad", BAD, ids=[one.kind for one in BAD])
def test_a_bad_file_is_refused_where_it_is_bad(bad: Bad) -> None:
    """Whoever wrote it looks at that line, and knows what to write instead."""
    with pytest.raises(TopologyError) as refused:
        read_text(bad.text, NAMES, "support.yaml")

    place = f"support.yaml:{bad.line}:{bad.column}"
    found = [one for one in refused.value.problems if bad.said in str(one)]
    assert [place] == [one.place for one in found], str(refused.value)
    assert all(one.fix for one in refused.value.problems)


def test_the_right_file_is_read() -> None:
    """Whole: its table, its rules, its order."""
    document = read_text(RIGHT, NAMES)

    assert "prepare_step" == document.graph.start
    assert 6 == len(document.graph.nodes)
    assert 1 == len(document.rules)


def test_all_problems_are_told_at_once() -> None:
    """Nobody mends a file line by line."""
    text = with_line(3, "start: nowhere").replace("settled", "setled").replace("hold", "hald")

    with pytest.raises(TopologyError) as refused:
        read_text(text, NAMES)

    assert ["3", "10", "16"] == [one.place.split(":")[1] for one in refused.value.problems], str(
        refused.value
    )


def test_ten_megabytes_cost_the_memory_of_one(tmp_path: Path) -> None:
    """Nothing is parsed before it is known to be small."""
    (tmp_path / "a.yaml").write_bytes(b"a: [" + b"x, " * 3_300_000 + b"]")
    tracemalloc.start()

    with pytest.raises(TopologyError, match="at most 1,000,000 bytes"):
        read_path(tmp_path / "a.yaml", NAMES)

    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 5_000_000


@pytest.mark.parametrize(
    "text",
    [
        "[" * 900_000,
        "- " * 450_000,
        "&a " * 300_000,
        "%a\n" * 300_000,
        "---\n" * 200_000,
        "a: " * 300_000,
        "nodes: {" + ", ".join(f"n{n}: {{use: modelcall}}" for n in range(1_990)) + "}",
    ],
    ids=["brackets", "dashes", "anchors", "directives", "documents", "colons", "unknown uses"],
)
def test_a_megabyte_that_means_no_good_is_refused_early(text: str) -> None:
    """No part of the work grows faster than the text; the suite's timeout would tell."""
    with pytest.raises(TopologyError):
        read_text(text, NAMES)
