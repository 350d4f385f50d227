"""What is written for a run: rows as the specification says (the rest is the stores' suite)."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from graphloop.errors import StoreError
from graphloop.stores.database.claims import Holder
from graphloop.stores.database.jobs import at_once
from graphloop.stores.rows import Addition
from graphloop.stores.sqlite.journal import append
from graphloop.stores.sqlite.leases import claim
from graphloop.stores.sqlite.schema import open_writer

HOLDER = Holder(30.0, lambda: 7.0)


def test_an_entry_has_its_number_its_kind_and_its_time(tmp_path: Path) -> None:
    """Other tools read the file, too."""
    with closing(open_writer(tmp_path / "runs.db", "process")) as connection:
        append(
            connection,
            HOLDER,
            [Addition("r", 1, (("Started", b"one"), ("X", b"")), "g")],
        )

        assert [
            (2**32 + 1, "Started", b"one", 7.0),
            (2**32 + 2, "X", b"", 7.0),
        ] == connection.execute("SELECT * FROM entry ORDER BY id").fetchall()
        assert [("r", "g", 3)] == connection.execute(
            "SELECT run_id, graph, next_seq FROM run"
        ).fetchall()


def test_a_taken_run_id_is_told_from_a_second_writer(tmp_path: Path) -> None:
    """They are mended differently."""
    with closing(open_writer(tmp_path / "runs.db", "process")) as connection:
        append(connection, HOLDER, [Addition("r", 1, (("Started", b"one"),))])

        with pytest.raises(StoreError, match="the next is number 2, not 1: this run id is taken"):
            append(connection, HOLDER, [Addition("r", 1, (("Started", b"two"),))])
        with pytest.raises(StoreError, match="number 2, not 3: another driver is writing to it"):
            append(connection, HOLDER, [Addition("r", 3, (("Started", b"two"),))])


def test_the_first_append_of_a_claim_changes_only_its_own_run(tmp_path: Path) -> None:
    """Two drivers of two runs have the same epoch, and each is at its first event."""
    mine, other = Holder(30.0, lambda: 7.0), Holder(90.0, lambda: 9.0)
    with closing(open_writer(tmp_path / "runs.db", "process")) as connection:
        other.held["other"] = at_once(claim(connection, other, "other"))
        mine.held["mine"] = at_once(claim(connection, mine, "mine"))

        append(connection, mine, [Addition("mine", 1, (("Started", b"one"),), "g")])

        assert [("mine", "g", 2, 37.0), ("other", "", 1, 99.0)] == connection.execute(
            "SELECT run_id, graph, next_seq, lease_until FROM run ORDER BY run_id"
        ).fetchall()
