"""The fleet's benchmark runs. What it finds is not tested: a clock in a test suite is a coin."""

from __future__ import annotations

import pytest

from bench.fleet import BENCHES, SMALL, Fleet
from tests.postgres_server import database
from tests.sizes import NIGHTLY


@pytest.mark.parametrize("name", sorted(BENCHES) if NIGHTLY else ["hop", "parked"])
async def test_each_part_of_the_fleet_is_measured(name: str, postgres: str) -> None:
    """A benchmark that broke unnoticed is run, in the end, by nobody."""
    rows = await BENCHES[name](Fleet(database(postgres), **SMALL))

    assert rows
    assert all((row.met is None) == (row.aim == "") for row in rows)
