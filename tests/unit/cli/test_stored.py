"""The store that a command works on, and the run that was meant."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import TypeVar

import pytest

from graphloop.cli.stored import (
    closing,
    find_run,
    opened,
    record_of,
    refuse_unreachable,
    short_ids,
)
from graphloop.errors import ConfigError
from graphloop.events import Setup, Started
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from graphloop.stores.sqlite import SqliteStore

T = TypeVar("T")

IDS = ("abc1", "abd2", "xyz", "xyz/c0.0", "xyz/c0.0/c1.0")


def done(work: Coroutine[object, object, T]) -> T:
    async def run() -> T:
        return await work

    return asyncio.run(run())


async def store_of(*run_ids: str) -> MemoryStore:
    store = MemoryStore()
    for run_id in run_ids:
        await store.append(run_id, 1, Started(1.0, run_id, "g", (), Setup()))
    return store


async def meant(text: str) -> str:
    return await find_run(await store_of(*IDS), text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("xyz", "xyz"),
        ("x", "xyz"),
        ("abc", "abc1"),
        ("xyz/c0.0", "xyz/c0.0"),
        ("x/c0.0/c1.0", "xyz/c0.0/c1.0"),
    ],
)
def test_a_run_is_found_by_a_beginning_that_only_it_has(text: str, expected: str) -> None:
    """Ids are long, and typed by people; a child's is its root's, and its way."""
    assert done(meant(text)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ab", "found 2 whose ids begin with 'ab': abc1, abd2. Give more of it"),
        ("xzy", "begins with, 'xzy'. Did you mean 'xyz'?"),
        ("xyz/c9", "found none whose id is, or begins with, 'xyz/c9'"),
        ("", "found none"),
        ("/c0.0", "found none"),
    ],
)
def test_a_run_that_is_not_there_or_not_clear_is_told(text: str, message: str) -> None:
    """Never the first of several: the next word may be `approve`."""
    with pytest.raises(ConfigError) as raised:
        done(meant(text))

    assert message in str(raised.value)


def test_the_command_that_lists_them_is_told_as_it_is_typed() -> None:
    """Without its store it would fail."""

    async def find(where: str | None) -> None:
        await find_run(await store_of(*IDS), "zzz", where)

    with pytest.raises(ConfigError, match=r"with: graphloop runs --all --store 'my runs\.db'$"):
        done(find("my runs.db"))
    with pytest.raises(ConfigError, match=r"with: graphloop runs --all$"):
        done(find(None))


def test_many_runs_that_are_meant_are_not_all_listed() -> None:
    """A store may hold thousands."""

    async def find() -> None:
        await find_run(await store_of(*(f"r{number}" for number in range(9))), "r")

    with pytest.raises(ConfigError, match=r"found 9 .*: r0, r1, r2, r3, r4 and 4 more\."):
        done(find())


@pytest.mark.parametrize("where", [None, " "])
def test_a_store_has_to_be_named(where: str | None) -> None:
    """The error names both ways to do so."""

    async def look() -> None:
        async with opened(where):
            pass

    with pytest.raises(ConfigError, match=r"--store runs\.db, or set GRAPHLOOP_STORE"):
        done(look())


def test_a_store_that_is_not_there_is_not_made(desk: Path) -> None:
    """A mistyped path would otherwise be an empty store; what is near is named."""
    (desk / "runs").mkdir()

    async def look(where: str) -> None:
        async with opened(where):
            pass

    with pytest.raises(ConfigError, match=r"ruins: .*found nothing of that name\. Did you mean"):
        done(look("ruins"))
    with pytest.raises(ConfigError, match="found nothing of that name"):
        done(look("no/such/runs.db"))
    assert [one.name for one in desk.iterdir()] == ["runs"]


def test_a_store_is_closed_again(desk: Path) -> None:
    """A database that is left open keeps its thread, and the process, alive."""

    async def look() -> str:
        first = SqliteStore("runs.db")
        await first.append("r", 1, Started(1.0, "r", "g", (), Setup()))
        await first.aclose()
        async with opened("runs.db") as store:
            assert isinstance(store, SqliteStore)
            record = await record_of(store, "r")
        assert record is not None
        return record.graph

    assert done(look()) == "g"
    assert not list(desk.glob("*-wal"))


def test_closing_a_run_closes_its_store_also_if_the_rest_fails(desk: Path) -> None:
    """Connections first, for they may still write; then the store, in any case."""

    async def fail() -> None:
        raise OSError

    async def close() -> None:
        store = SqliteStore("runs.db")
        await store.append("r", 1, Started(1.0, "r", "g", (), Setup()))
        with pytest.raises(OSError):  # noqa: PT011 - its own
            await closing(fail, store)()

    done(close())

    assert not list(desk.glob("*-wal"))


def test_a_store_without_a_catalog_has_no_records(tmp_path: Path) -> None:
    """What nobody noted is not made up."""
    assert done(record_of(JsonlStore(tmp_path), "r")) is None


def test_short_ids_are_told_apart_by_eye() -> None:
    """At least eight characters, and one more than any neighbour shares."""
    ids = ["0123456789a", "0123456789b", "0123", "f" * 32]

    assert short_ids(ids) == {
        "0123": "0123",
        "0123456789a": "0123456789a",
        "0123456789b": "0123456789b",
        "f" * 32: "f" * 8,
    }
    assert short_ids([]) == {}


@pytest.mark.parametrize("name", ["agent.py", "notes"])
def test_a_folder_that_holds_something_else_is_no_store(name: str, tmp_path: Path) -> None:
    """It would be told to have no runs, as an empty store is."""

    async def looked() -> None:
        async with opened(str(tmp_path)):
            pass

    done(looked())
    (tmp_path / name).mkdir()
    with pytest.raises(ConfigError, match="found a folder with other files in it"):
        done(looked())
    (tmp_path / "r.jsonl").touch()
    done(looked())


def test_a_database_in_no_folder_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    """It is a slip of the hand; a folder of journals is made."""
    refuse_unreachable(str(tmp_path / "runs.db"))
    refuse_unreachable(str(tmp_path / "no" / "runs"))

    with pytest.raises(ConfigError, match=r"expected a folder at .* create it first"):
        refuse_unreachable(str(tmp_path / "no" / "runs.db"))
