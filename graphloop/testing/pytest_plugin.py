"""The pytest plugin: fixtures for tests of agents; the rest of graphloop loads on first use.

`fuzz_graph` fuzzes a graph. `no_model_requests` and `model_requests` refuse and allow requests to
model servers in one test. The ini option `graphloop_refuse_requests = true` refuses them in all
tests that do not use `model_requests`, and lets test modules make agents without their keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from .. import testing

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ..agent import Agent
    from ..graph import NodeGraph
    from .report import FuzzReport

__all__ = [
    "fuzz_graph",
    "model_requests",
    "no_model_requests",
    "pytest_addoption",
    "pytest_collection",
]

OPTION = "--graphloop-seeds"
REFUSE = "graphloop_refuse_requests"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--graphloop-seeds` and the ini option `graphloop_refuse_requests`."""
    group = parser.getgroup("graphloop")
    group.addoption(
        OPTION, type=int, default=200, metavar="N", help="seeds of each fuzz_graph (200)"
    )
    about = "refuse requests to real model servers in tests without the fixture model_requests"
    parser.addini(REFUSE, about, type="bool", default=False)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Let modules make agents without their keys, if the ini option refuses requests."""
    if not session.config.getini(REFUSE):
        return (yield)
    with testing.keys_deferred():
        return (yield)


@pytest.fixture
def no_model_requests() -> Generator[None]:
    """Refuse requests to real model servers in this test; see `testing.refuse_requests`."""
    with testing.refuse_requests():
        yield


@pytest.fixture
def model_requests() -> Generator[None]:
    """Allow requests to real model servers in this test; see `testing.allow_requests`."""
    with testing.allow_requests():
        yield


@pytest.fixture(autouse=True)
def _graphloop_requests(request: pytest.FixtureRequest) -> None:
    """Apply the ini option to each test that does not allow requests itself."""
    if request.config.getini(REFUSE) and "model_requests" not in request.fixturenames:
        request.getfixturevalue("no_model_requests")


@pytest.fixture
def fuzz_graph(request: pytest.FixtureRequest) -> Callable[..., FuzzReport]:
    """Return a function like `fuzz` that raises an `AssertionError` if the report has failures."""
    # `getoption` returns Any; `pytest_addoption` declares this option as an int.
    seeds = cast("int", request.config.getoption(OPTION))

    def fuzzed(graph: Agent[Any, Any] | NodeGraph[Any], **options: object) -> FuzzReport:
        fuzz: Callable[..., FuzzReport] = testing.fuzz
        report = fuzz(graph, **{"seeds": seeds, **options})
        if not report.ok:
            raise AssertionError(str(report))
        return report

    return fuzzed
