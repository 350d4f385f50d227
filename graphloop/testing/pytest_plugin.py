"""The pytest plugin with the fixture `fuzz_graph`; the rest of graphloop loads on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..agent import Agent
    from ..graph import NodeGraph
    from .report import FuzzReport

__all__ = ["fuzz_graph", "pytest_addoption"]

OPTION = "--graphloop-seeds"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--graphloop-seeds`, the number of seeds that each `fuzz_graph` tries."""
    group = parser.getgroup("graphloop")
    group.addoption(
        OPTION, type=int, default=200, metavar="N", help="seeds of each fuzz_graph (200)"
    )


@pytest.fixture
def fuzz_graph(request: pytest.FixtureRequest) -> Callable[..., FuzzReport]:
    """Return a function like `fuzz` that raises an `AssertionError` if the report has failures."""
    # `getoption` returns Any; `pytest_addoption` declares this option as an int.
    seeds = cast("int", request.config.getoption(OPTION))

    def fuzzed(graph: Agent[Any, Any] | NodeGraph[Any], **options: object) -> FuzzReport:
        fuzzing = import_module("graphloop.testing.fuzzing")
        report: FuzzReport = fuzzing.fuzz(graph, **{"seeds": seeds, **options})
        if not report.ok:
            raise AssertionError(str(report))
        return report

    return fuzzed
