"""The comparison with peers runs, also where none of them is installed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from xml.etree.ElementTree import fromstring

from bench.chart import Line, chart
from bench.peers import CONTENDERS, PAGE, Contender, Measured, measured, table
from bench.report import replaced

RAW, OURS = CONTENDERS[:2]


def missing(turns: int) -> Callable[[], Awaitable[int]]:
    """Make no run: the package is not there."""
    raise AssertionError(f"nothing makes a run of {turns} turns")


def test_every_contender_that_is_here_runs_its_script() -> None:
    """Each counts the results of its tools, so an engine that ends early is no cheap engine."""
    short = [replace(one, turns=(1, 2)) for one in CONTENDERS]

    found = asyncio.run(measured(short, 1))

    assert [one.name for one in CONTENDERS] == [one.name for one in found]
    assert all(set(one.turn_us) == {1, 2} for one in found if one.turn_us is not None)
    assert all(one.turn_us for one in found[:2])


def test_a_peer_that_is_not_installed_is_named_as_such() -> None:
    """A table without it would read as if nobody had thought of it."""
    ghost = Contender("ghost", "graphloop-has-no-such-peer", missing, (1,))

    found = asyncio.run(measured([replace(RAW, turns=(1,)), ghost], 1))

    assert Measured("ghost", "", None) == found[1]
    assert "| ghost | not installed |" in table(found)


def test_the_table_tells_multiples_of_the_raw_loop() -> None:
    """And leaves a cell empty where a length was not measured."""
    found = [Measured("raw loop", "", {50: 5.0, 800: 5.0}), Measured("a", "1.2", {50: 50.4})]

    assert table(found).split("\n") == [
        "| engine | N = 50 | N = 800 |",
        "| --- | --- | --- |",
        "| raw loop | 5 µs, 1 x | 5 µs, 1 x |",
        "| a 1.2 | 50 µs, 10 x |  |",
    ]


def test_a_page_has_a_place_for_the_table_of_peers() -> None:
    """Figures are written there by the harness, never by hand."""
    page = replaced(PAGE.read_text(encoding="utf-8"), "| a |", "peers")

    assert "<!-- peers:begin -->\n\n| a |\n\n<!-- peers:end -->" in page


def test_the_chart_is_a_picture_with_a_line_for_each_engine() -> None:
    """Names are escaped, and a line of one point is a line."""
    lines = [Line("a & b", {50: 5.0, 200: 5.5}), Line("c", {200: 9e4})]

    drawn = fromstring(chart("µs < ms", lines))  # noqa: S314 - our own text

    names = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}tspan")]
    assert ["a & b", "c"] == sorted(filter(None, names))
    assert 2 == len(list(drawn.iter("{http://www.w3.org/2000/svg}polyline")))
