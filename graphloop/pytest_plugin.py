"""The pytest plugin: a fixture that fuzzes a graph. Loading it loads nothing else of graphloop."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .front.agent import Agent
    from .front.options import Tools
    from .fuzz.report import FuzzReport
    from .graph import Graph
    from .temporal import Rules

__all__ = ["FuzzGraph", "fuzz_graph", "pytest_addoption"]

OPTION = "--graphloop-seeds"


class FuzzGraph(Protocol):
    """The function that the fixture `fuzz_graph` returns."""

    def __call__(
        self,
        graph: Agent | Graph[Any],  # The state may be of any type.
        *,
        seeds: int | None = None,
        first_seed: int = 0,
        rules: Rules | Iterable[Rules] = (),
        tools: Tools = (),
        state: object = None,
    ) -> FuzzReport:
        """Fuzz a graph as `graphloop.testing.fuzz` does, and return the report.

        Raises:
            AssertionError: with the whole report, if a run failed.
        """
        ...


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that says how long to search."""
    group = parser.getgroup("graphloop")
    group.addoption(
        OPTION, type=int, default=200, metavar="N", help="seeds of each fuzz_graph (200)"
    )


@pytest.fixture
def fuzz_graph(request: pytest.FixtureRequest) -> FuzzGraph:
    """Return a function that fuzzes a graph, and fails the test if a run fails."""
    # pytest does not type its options; this one is declared above, with its type.
    default = cast("int", request.config.getoption(OPTION))

    def fuzzed(
        graph: Agent | Graph[Any],
        *,
        seeds: int | None = None,
        first_seed: int = 0,
        rules: Rules | Iterable[Rules] = (),
        tools: Tools = (),
        state: object = None,
    ) -> FuzzReport:
        fuzzing = import_module("graphloop.fuzz.fuzzing")
        report: FuzzReport = fuzzing.fuzz(
            graph,
            seeds=default if seeds is None else seeds,
            first_seed=first_seed,
            rules=rules,
            tools=tools,
            state=state,
        )
        if not report.ok:
            raise AssertionError(str(report))
        return report

    return fuzzed
