"""Where a run is kept, and the commands that take it up again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from graphloop.cli.place import Place, repeated, target_text
from graphloop.events import Setup, Started
from graphloop.stores.base import Store
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore


def test_a_command_can_be_typed_as_it_stands() -> None:
    """Blanks and hashes in names must not break it into two, or cut it off."""
    place = Place(MemoryStore(), "my runs.db", "pay", ("--max-steps", "3"))

    assert place.approve_command("r", "c0.0#7") == (
        "graphloop approve r 'c0.0#7' --store 'my runs.db'"
    )
    assert place.resume_command("r") == "graphloop resume r --store 'my runs.db'"


def test_a_store_that_keeps_no_notes_needs_the_target_again(tmp_path: Path) -> None:
    """And takes no answers while nobody drives the run."""
    place = Place(JsonlStore(tmp_path), "runs", "/desk/pay", ("--max-steps", "3"))

    assert place.resume_command("r") == (
        "graphloop resume r --target /desk/pay --max-steps 3 --store runs"
    )
    assert not place.takes_answers
    asyncio.run(place.note("r"))


@pytest.mark.parametrize(("path", "takes"), [("runs.db", True), ("", False)])
def test_answers_are_left_in_a_store_that_commands_can_open(path: str, takes: bool) -> None:
    """A store object of the target's own can keep them, but no command finds it."""
    assert Place(MemoryStore(), path, "pay").takes_answers is takes


def test_the_target_is_noted_with_the_run() -> None:
    """So that an approver, days later, need not know it; nor what the run was given beside."""

    async def noted(target: str, *options: str) -> str:
        store = MemoryStore()
        await store.append("r", 1, Started(1.0, "r", "g", (), Setup()))
        kept: Store = store
        await Place(kept, "runs.db", target, options).note("r")
        (record,) = await store.overview()
        return record.target

    assert asyncio.run(noted("/desk/pay")) == "/desk/pay"
    assert asyncio.run(noted("/desk", "--with", "a b.py")) == "/desk --with 'a b.py'"
    assert asyncio.run(noted("")) == ""


def test_a_path_is_noted_so_that_it_is_found_from_anywhere(desk: Path) -> None:
    """A module is found by its name, and the standard loop is no file."""
    assert target_text("pay") == str(desk / "pay")
    assert target_text("desk.pay:build") == "desk.pay:build"
    assert target_text("agent") == "agent"


def test_only_what_was_given_is_repeated() -> None:
    """No journal knows the server, nor the bound that an option put into the graph."""
    assert repeated(None, None) == ()
    assert repeated("http://localhost", 3) == ("--base-url", "http://localhost", "--max-steps", "3")
    assert repeated(None, None, "it polls") == ("--unbounded", "it polls")


def test_what_registers_is_repeated_so_that_it_is_found_from_anywhere(desk: Path) -> None:
    """A file with its folder, a module by its name."""
    given = ("own.py", "desk.own")

    assert repeated(None, None, registers=given) == (
        "--with", str(desk / "own.py"), "--with", "desk.own",
    )  # fmt: skip
