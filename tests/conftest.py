"""Hypothesis profiles: a fixed, moderate search on every push, a large one overnight.

`HYPOTHESIS_PROFILE=nightly` chooses the large one. Neither has a deadline: a time limit on one
example is a test of the machine; overnight there is none on a whole test either. The default is
derandomised, so that a red test stays red: it draws the same few examples on each push, and the
night draws new ones. Both print what repeats a failure.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import sys
import tempfile
from collections.abc import Coroutine, Generator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import temporal_server
from tests.postgres_server import Missing, Server, given_back, serving
from tests.sizes import NIGHTLY, PROFILE

# Bytecode is kept, also where PYTHONDONTWRITEBYTECODE forbids it: otherwise each of the many
# processes that tests start compiles the package again, which takes half of its time.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

settings.register_profile(
    "ci", deadline=None, derandomize=True, max_examples=20, stateful_step_count=30, print_blob=True
)
settings.register_profile(
    "nightly", deadline=None, max_examples=5_000, stateful_step_count=200, print_blob=True
)
settings.load_profile(PROFILE)


DEADLINE_S = 120.0
"""A test that hangs fails here, instead of holding up the suite."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function, in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    test = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    marked = pyfuncitem.get_closest_marker("deadline")
    asyncio.run(_in_time(test, DEADLINE_S if marked is None else marked.args[0]))
    return True


async def _in_time(test: Coroutine[object, object, None], deadline_s: float) -> None:
    async with asyncio.timeout(deadline_s):
        await test


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let a test of the night take its time."""
    if NIGHTLY:
        for item in items:
            item.add_marker(pytest.mark.timeout(0))


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Look for no garbage while modules load: each look is at all that they have left so far."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Keep the garbage collector out of the tests themselves, which are half a million objects."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Take back what the test had, once its fixtures are over."""
    given_back()


@pytest.fixture(scope="session")
def postgres() -> Generator[str]:
    """The DSN of a PostgreSQL server, one for each process of the tests."""
    try:
        with serving() as dsn:
            yield dsn
    except Missing as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture
def stoppable_server() -> Generator[Server]:
    """A PostgreSQL server of the test's own, which waits for its disk."""
    with tempfile.TemporaryDirectory(prefix="graphloop-pg-", ignore_cleanup_errors=True) as made:
        try:
            server = Server(Path(made), fsync="on")
        except Missing as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(str(error))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def temporal() -> Generator[str]:
    """The address of a Temporal server; at night there has to be one."""
    try:
        with temporal_server.serving() as address:
            yield address
    except temporal_server.MissingTemporal as error:
        if NIGHTLY:
            raise
        pytest.skip(str(error))
