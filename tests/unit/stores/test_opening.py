"""From a path to a store, by the ending of its name."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from graphloop.errors import ConfigError
from graphloop.events import Setup, Started
from graphloop.stores.codec import Codec
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.opening import open_store, shown_address
from graphloop.stores.sqlite.store import SqliteStore
from tests.unit.stores.store_process import append_events


@pytest.mark.parametrize("name", ["runs.db", "runs.sqlite", "runs.sqlite3"])
def test_the_name_of_a_database_opens_one(tmp_path: Path, name: str) -> None:
    """A path or its text, before there is anything or after."""
    assert isinstance(open_store(tmp_path / name), SqliteStore)
    (tmp_path / name).touch()
    assert isinstance(open_store(str(tmp_path / name)), SqliteStore)


@pytest.mark.parametrize("name", ["runs", "runs.d", "db"])
def test_any_other_name_is_a_directory(tmp_path: Path, name: str) -> None:
    """Nothing is made before it is used."""
    assert isinstance(open_store(tmp_path / name), JsonlStore)
    assert [] == list(tmp_path.iterdir())
    (tmp_path / name).mkdir()
    assert isinstance(open_store(str(tmp_path / name)), JsonlStore)


def test_what_is_there_and_of_the_other_kind_is_refused(tmp_path: Path) -> None:
    """Before the run has cost anything."""
    (tmp_path / "runs.db").mkdir()
    (tmp_path / "notes.txt").touch()

    with pytest.raises(ConfigError, match="is a directory, and"):
        open_store(tmp_path / "runs.db")
    with pytest.raises(ConfigError, match="expected a database"):
        open_store(tmp_path / "notes.txt")


@pytest.mark.parametrize("ending", ["", ".db"])
def test_a_path_that_cannot_be_looked_at_is_refused(tmp_path: Path, ending: str) -> None:
    """Its name is too long here; the rights to a folder may be missing, too."""
    with pytest.raises(ConfigError, match="Fix: "):
        open_store(tmp_path / f"{'x' * 300}{ending}")


@pytest.mark.parametrize("name", ["runs", "runs.db"])
def test_a_store_has_the_codec_of_the_graphs_state(tmp_path: Path, name: str) -> None:
    """A tuple is no list: only the codec knows what the JSON was."""
    store = open_store(tmp_path / name, Codec(tuple))
    event = Started(1.0, "r", "g", (), Setup(), state=(1, 2))

    asyncio.run(append_events(store, "r", 1, event))

    assert [event] == list(asyncio.run(store.load("r")))


@pytest.mark.parametrize(
    ("where", "shown"),
    [
        ("postgresql://ann:s3cret@host:5432/runs", "postgresql://ann@host:5432/runs"),
        ("postgres://ann:s3/cr@t?@host/runs", "postgres://ann@host/runs"),
        ("postgresql://host/runs?user=ann&password=s3cret", "postgresql://host/runs?user=ann"),
        ("postgresql://h/r?password=s3cret&user=ann", "postgresql://h/r?user=ann"),
        ("postgresql://ann@host:5432/runs", "postgresql://ann@host:5432/runs"),
        ("runs:2@home.db", "runs:2@home.db"),
    ],
)
def test_a_shown_address_has_no_password(where: str, shown: str) -> None:
    """Terminals are recorded, and logs are read by others."""
    assert shown == shown_address(where)
