"""One run's journal as a command reads it."""

from __future__ import annotations

import asyncio

import pytest

from graphloop.cli.approve import approve
from graphloop.cli.journal import Journal, read, read_answers
from graphloop.cli.noted import Noted
from graphloop.errors import ConfigError
from graphloop.events import Cancelled, Setup, Started
from tests.unit.cli.pay_desk import parked

EVENTS = (Started(1.0, "r", "g", (), Setup()), Cancelled(2.0))


@pytest.mark.usefixtures("pay_desk")
@pytest.mark.parametrize(("target", "has_children"), [("pay", False), ("team", True)])
def test_a_journal_comes_with_what_it_was_started_from(target: str, has_children: bool) -> None:
    """Read once, so that the target is loaded outside of any event loop."""
    run_id = parked(target)

    journal = asyncio.run(read("runs.db", run_id[:8]))

    assert (journal.run_id, len(journal.events)) == (run_id, 3)
    assert journal.target.endswith(f"/{target}")
    assert journal.has_children is has_children
    assert "execute" in journal.graph(None).nodes


@pytest.mark.usefixtures("pay_desk")
def test_a_directory_of_json_lines_has_no_target() -> None:
    """It has to be named, and the error says how."""
    journal = asyncio.run(read("runs", parked(store="runs")))

    with pytest.raises(ConfigError, match="does not say what it was started from: name it with"):
        journal.graph(None)
    assert journal.target_or("pay") == "pay"
    assert "execute" in journal.graph("pay").nodes


@pytest.mark.usefixtures("pay_desk")
def test_answers_are_read_under_the_keys_of_the_root_run() -> None:
    """A directory of JSON lines keeps none."""
    run_id = parked("team")
    approve(run_id, "pay", store="runs.db", deny=False, reason="", edit=None)

    for one in (run_id, f"{run_id}/c0.0"):
        assert asyncio.run(read_answers("runs.db", one)) == {"c0.0/c0.0": "approved"}
    assert asyncio.run(read_answers("runs", parked(store="runs"))) == {}


def test_what_was_given_goes_before_what_was_noted() -> None:
    """A target may have moved since."""
    assert Journal("r", EVENTS, Noted("old"), has_children=False).target_or("new") == "new"


def test_a_journal_can_be_read_up_to_any_of_its_events() -> None:
    """But no further, and not to before its first."""
    journal = Journal("r", EVENTS, Noted(), has_children=False)

    assert journal.first(None) == journal
    assert journal.first(1).events == EVENTS[:1]
    for number in (0, 3, -1):
        with pytest.raises(ConfigError, match=f"has events 1 to 2, found --upto {number}"):
            journal.first(number)
