"""`graphloop fork`."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from tests.unit.cli.command_line import STORE, here, refused, shown
from tests.unit.cli.pay_desk import parked, run_ids

pytestmark = pytest.mark.usefixtures("pay_desk")


def test_a_fork_and_its_original_go_on_apart() -> None:
    """The note of the target is copied."""
    run_id = parked()

    done = here("fork", run_id[:8], "--at", "2", "--as", "f", *STORE)
    shown("resume", "f", "--approve", "never", *STORE)
    shown("resume", run_id, "--approve", "always", *STORE)

    assert done.stdout == "f\n"
    assert done.stderr == "go on with: graphloop resume f --store runs.db\n"
    assert Path("paid").read_text(encoding="utf-8") == "5\n"


def test_a_new_id_is_printed_alone_on_stdout() -> None:
    run_id = parked()

    new_id = shown("fork", run_id, "--at", "1", *STORE).strip()

    assert set(run_ids("runs.db")) == {run_id, new_id}


def test_only_started_children_are_copied() -> None:
    """The key of a later child belongs to a call that the copy makes anew."""
    run_id = parked("team")

    for at, name in (("1", "early"), ("2", "late")):
        shown("fork", run_id, "--at", at, "--as", name, *STORE)

    assert "early/c0.0" not in run_ids("runs.db")
    assert "late/c0.0" in run_ids("runs.db")
    shown("resume", "late", "--approve", "always", *STORE)


def test_a_copy_acts_on_an_approval_only_if_allowed() -> None:
    run_id = parked()
    shown("approve", run_id, "pay", *STORE)
    shown("resume", run_id, *STORE)
    fork = ("fork", run_id, "--at", "4", "--as", "f", *STORE)

    assert "approved what the copy would do again" in refused(*fork)
    assert shown(*fork, "--share-approvals") == "f\n"


def test_a_store_without_notes_needs_the_target_for_children() -> None:
    alone, team = parked(store="runs"), parked("team", "runs")
    store = ("--store", "runs")

    first = here("fork", alone, "--at", "2", "--as", "a", *store)
    missing = refused("fork", team, "--at", "2", "--as", "b", *store)
    second = here("fork", team, "--at", "2", "--as", "b", "--target", "team", *store)

    assert first.stderr == "go on with: graphloop resume a --target TARGET --store runs\n"
    assert missing.startswith("error: --target: expected the target of run ")
    assert second.stderr == "go on with: graphloop resume b --target team --store runs\n"


def test_a_wrong_event_or_id_is_refused() -> None:
    run_id = parked()

    for at, new_id, message in (
        ("9", "f", "has events 1 to 2, found 9"),
        ("0", "f", "found 0"),
        ("1", "a/b", "without a slash"),
    ):
        assert message in refused("fork", run_id, "--at", at, "--as", new_id, *STORE)
    taken = here("fork", run_id, "--at", "1", "--as", run_id, *STORE)
    assert taken.returncode == Status.FAILED
    assert "this run id is taken" in taken.stderr
