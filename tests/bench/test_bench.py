"""The benchmarks run. What they find is not tested: a clock in a test suite is a coin."""

from __future__ import annotations

import asyncio

import pytest

from bench.__main__ import BENCHES, README
from bench.measure import Cost, Prepare, Row, Spread, at_most, interleaved, ratios
from bench.report import as_markdown, as_text, replaced
from bench.sizes import TINY

ROWS = {
    "loop": 13,
    "encode": 6,
    "stream": 10,
    "deltas": 1,
    "parallel": 3,
    "many": 3,
    "growth": 5,
    "imports": 3,
    "journal": 10,
    "proofs": 16,
}


@pytest.mark.parametrize("name", sorted(ROWS))
def test_every_benchmark_yields_its_rows(name: str) -> None:
    """A benchmark that broke unnoticed is run, in the end, by nobody; each checks its results."""
    rows = BENCHES[name](TINY)

    assert ROWS[name] == len(rows)
    assert {name} == {row.bench for row in rows}
    assert all((row.met is None) == (row.aim == "") for row in rows)


def test_every_benchmark_is_smoke_tested() -> None:
    """A benchmark that is added must be proven to run as well."""
    assert set(BENCHES) == set(ROWS)


def test_ratios_are_taken_pair_by_pair() -> None:
    """A slow minute of the machine hits both of a pair, and cancels out only within it."""
    engine = (Cost(2.0, 9.0), Cost(40.0, 9.0), Cost(6.0, 9.0))
    floor = (Cost(1.0, 1.0), Cost(10.0, 3.0), Cost(2.0, 9.0))

    assert Spread(3.0, 2.0, 4.0) == ratios(engine, floor)
    assert Spread(3.0, 1.0, 9.0) == ratios(engine, floor, "wall_s")


def test_contenders_alternate_and_warm_up_first() -> None:
    """Whoever always came second would find caches warm, and collect the first one's garbage."""
    order: list[str] = []

    def contender(name: str) -> Prepare:
        async def work() -> None:
            order.append(name)

        return lambda: work

    costs = asyncio.run(interleaved({"a": contender("a"), "b": contender("b")}, 3))

    assert "".join(order) == "ab" + "ab" + "ba" + "ab"
    assert {name: len(found) for name, found in costs.items()} == {"a": 3, "b": 3}


def test_a_miss_is_called_a_miss() -> None:
    """The harness reports; it must not flatter."""
    assert at_most("x", "y", Spread.of([1.0, 1.3, 1.4]), 1.25, "x").verdict == "missed"
    assert at_most("x", "y", Spread.of([1.0, 1.25, 9.0]), 1.25, "x").verdict == "met"


def test_the_readme_has_a_place_for_the_table() -> None:
    """Figures are written there by the harness, never by hand."""
    rows = [Row("loop", "a turn", "7 µs", "≤ 5 µs", met=False)]

    page = replaced(README.read_text(encoding="utf-8"), as_markdown(rows))

    assert "| loop: a turn | ≤ 5 µs | 7 µs | missed |" in page
    assert page == replaced(page, as_markdown(rows))


def test_a_page_without_marks_is_refused() -> None:
    """Without them the table would end up nowhere, and nobody would notice."""
    with pytest.raises(ValueError, match="expected the marks"):
        replaced("# Benchmarks", "table")


def test_the_terminal_shows_every_figure() -> None:
    """What is not printed was measured in vain."""
    text = as_text([Row("loop", "a turn", "7 µs", "≤ 5 µs", met=False), Row("loop", "b", "1")])

    assert text.split("\n") == [
        "== loop",
        "a turn  ≤ 5 µs  missed  7 µs",
        "b                       1",
    ]
