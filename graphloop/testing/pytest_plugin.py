"""The pytest plugin: a fixture that fuzzes a graph. Loading it loads nothing else of graphloop."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..agent import Agent, Tools
    from ..graph import NodeGraph
    from ..rules import Rules
    from .report import FuzzReport

__all__ = ["FuzzGraph", "FuzzOptions", "fuzz_graph", "pytest_addoption"]

OPTION = "--graphloop-seeds"


class FuzzOptions(TypedDict, total=False):
    """The options of `graphloop.testing.fuzz`; the option of pytest gives the seeds."""

    seeds: int
    first_seed: int
    rules: Rules | Iterable[Rules]
    tools: Tools
    state: object
    events_max: int


class FuzzGraph(Protocol):
    """The function that the fixture `fuzz_graph` returns."""

    def __call__(
        self,
        graph: Agent | NodeGraph[Any],  # The state may be of any type.
        **options: Unpack[FuzzOptions],
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
    seeds = cast("int", request.config.getoption(OPTION))

    def fuzzed(graph: Agent | NodeGraph[Any], **options: Unpack[FuzzOptions]) -> FuzzReport:
        fuzzing = import_module("graphloop.testing.fuzzing")
        report: FuzzReport = fuzzing.fuzz(graph, **{"seeds": seeds, **options})
        if not report.ok:
            raise AssertionError(str(report))
        return report

    return fuzzed
