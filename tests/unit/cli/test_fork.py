"""`graphloop fork`."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from tests.unit.cli.command_line import here, refused
from tests.unit.cli.pay_desk import parked, run_ids

STORE = ("--store", "runs.db")


@pytest.mark.usefixtures("pay_desk")
def test_a_fork_goes_on_by_itself() -> None:
    """What happens to the copy does not happen to the original; the target is copied with it."""
    run_id = parked()

    done = here("fork", run_id[:8], "--at", "3", "--as", "f", *STORE)
    here("resume", "f", "--approve", "never", *STORE)
    here("resume", run_id, "--approve", "always", *STORE)

    assert done.stdout == "f\n"
    assert done.stderr == "go on with: graphloop resume f --store runs.db\n"
    assert Path("paid").read_text(encoding="utf-8") == "5\n"


@pytest.mark.usefixtures("pay_desk")
def test_an_id_is_made_up_and_printed() -> None:
    """Alone on stdout, for the next command of a script."""
    run_id = parked()

    new_id = here("fork", run_id, "--at", "1", *STORE).stdout.strip()

    assert set(run_ids("runs.db")) == {run_id, new_id}


@pytest.mark.usefixtures("pay_desk")
def test_only_children_that_had_started_are_copied() -> None:
    """A later child has the key of a call that the copy will make anew, with other arguments."""
    run_id = parked("team")

    here("fork", run_id, "--at", "1", "--as", "early", *STORE)
    here("fork", run_id, "--at", "3", "--as", "late", *STORE)

    assert "early/c0.0" not in run_ids("runs.db")
    assert "late/c0.0" in run_ids("runs.db")
    assert here("resume", "late", "--approve", "always", *STORE).returncode == Status.OK


@pytest.mark.usefixtures("pay_desk")
def test_a_copy_that_would_act_on_an_approval_is_refused() -> None:
    """A person approved one run; the copy may act on it only where that is said."""
    run_id = parked()
    here("approve", run_id, "pay", *STORE)
    here("resume", run_id, *STORE)

    told = refused("fork", run_id, "--at", "5", "--as", "f", *STORE)

    assert "approved what the copy would do again" in told
    shared = here("fork", run_id, "--at", "5", "--as", "f", "--share-approvals", *STORE)
    assert shared.stdout == "f\n"


@pytest.mark.usefixtures("pay_desk")
def test_a_store_that_notes_no_target_is_told_it_when_it_matters() -> None:
    """A run without children needs none to be copied, but one to go on."""
    alone, team = parked(store="runs"), parked("team", "runs")
    store = ("--store", "runs")

    first = here("fork", alone, "--at", "2", "--as", "a", *store)
    none = refused("fork", team, "--at", "2", "--as", "b", *store)
    second = here("fork", team, "--at", "2", "--as", "b", "--target", "team", *store)

    assert first.stderr == "go on with: graphloop resume a --target TARGET --store runs\n"
    assert none.startswith("error: --target: expected what run ")
    assert second.stderr == "go on with: graphloop resume b --target team --store runs\n"


@pytest.mark.usefixtures("pay_desk")
def test_a_fork_that_cannot_be_is_told() -> None:
    """With what can."""
    run_id = parked()

    for at, new_id, message in (
        ("9", "f", "has events 1 to 3, found 9"),
        ("0", "f", "found 0"),
        ("1", "a/b", "without a slash"),
    ):
        assert message in refused("fork", run_id, "--at", at, "--as", new_id, *STORE)
    taken = here("fork", run_id, "--at", "1", "--as", run_id, *STORE)
    assert taken.returncode == Status.FAILED
    assert "this run id is taken" in taken.stderr
