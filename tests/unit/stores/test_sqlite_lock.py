"""The lock beside a database, and when commits need it."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop.errors import StoreError
from graphloop.stores.sqlite_lock import commits_need_lock, locked


@pytest.mark.parametrize(
    ("version", "needed"),
    [((3, 40, 1), True), ((3, 51, 2), True), ((3, 51, 3), False), ((3, 54, 0), False)],
)
def test_only_a_sqlite_with_the_reset_bug_needs_it(
    version: tuple[int, ...], *, needed: bool
) -> None:
    """It costs the processes their concurrency, which SQLite mended in 3.51.3."""
    assert needed == commits_need_lock(version)


def test_whoever_holds_it_keeps_all_others_out(tmp_path: Path) -> None:
    """For as long as it holds it."""
    path = tmp_path / "runs.db"

    with (
        locked(path),
        pytest.raises(StoreError, match="is it stopped"),
        locked(path, timeout_s=0.01),
    ):
        raise AssertionError("two at once")
    with locked(path, timeout_s=0.01):
        pass

    assert 0o600 == (tmp_path / "runs.db-lock").stat().st_mode & 0o777


def test_a_place_that_cannot_be_written_is_a_store_error(tmp_path: Path) -> None:
    """Whatever the system's reason."""
    with pytest.raises(StoreError, match="cannot open"), locked(tmp_path / "no" / "runs.db"):
        raise AssertionError("there is no such directory")
