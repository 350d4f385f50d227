"""`graphloop cancel`."""

from __future__ import annotations

import pytest

from tests.unit.cli.command_line import STORE, refused, shown
from tests.unit.cli.pay_desk import parked

pytestmark = pytest.mark.usefixtures("pay_desk")


def test_a_run_that_no_process_drives_ends_when_it_is_taken() -> None:
    """The first command counts, and the run's record has its reason."""
    run_id = parked()

    first = shown("cancel", run_id, "--reason", "too late", *STORE)
    second = shown("cancel", run_id[:8], *STORE)
    shown("resume", run_id, *STORE, status=1)

    assert first == f"run {run_id} is told to end\n"
    assert second == f"run {run_id} was told before to end\n"
    assert "cancelled: aborted (too late)" in shown("runs", "--all", *STORE)


def test_a_run_that_cannot_be_told_is_refused() -> None:
    """A child run ends with its root; a typing error has a hint."""
    over = parked()
    shown("resume", over, "--approve", "always", *STORE)
    run_id = parked("team")

    assert "it is over (done)" in refused("cancel", over, *STORE)
    assert f"command run '{run_id}'" in refused("cancel", f"{run_id}/c0.0", *STORE)
    assert "no run that has it" in refused("cancel", "nobody", *STORE)
    assert "--store" in refused("cancel", run_id)
