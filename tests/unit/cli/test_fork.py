"""`graphloop fork`."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop.cli.fork import fork
from graphloop.cli.request import Approve, ResumeRequest
from graphloop.cli.resume import resume
from graphloop.cli.status import Status
from graphloop.errors import ConfigError, StoreError
from tests.unit.cli.pay_desk import parked, run_ids


def forked(run_id: str, at: int, new_id: str | None = "f", target: str | None = None) -> Status:
    return fork(run_id, store="runs.db", at=at, new_id=new_id, target=target)


@pytest.mark.usefixtures("pay_desk")
def test_a_fork_goes_on_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """What happens to the copy does not happen to the original; the target is copied with it."""
    run_id = parked()
    capsys.readouterr()

    assert forked(run_id[:8], 3) is Status.OK
    assert capsys.readouterr() == ("f\n", "go on with: graphloop resume f --store runs.db\n")
    resume(ResumeRequest(run="f", store="runs.db", approve=Approve.NEVER))
    resume(ResumeRequest(run=run_id, store="runs.db", approve=Approve.ALWAYS))

    assert Path("paid").read_text(encoding="utf-8") == "5\n"


@pytest.mark.usefixtures("pay_desk")
def test_an_id_is_made_up_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Alone on stdout, for the next command of a script."""
    run_id = parked()
    capsys.readouterr()

    forked(run_id, 1, None)

    new_id = capsys.readouterr().out.strip()
    assert set(run_ids("runs.db")) == {run_id, new_id}


@pytest.mark.usefixtures("pay_desk")
def test_only_children_that_had_begun_are_copied() -> None:
    """A later one has the key of a call that the copy will make anew, with other arguments."""
    run_id = parked("team")

    forked(run_id, 1, "early")
    forked(run_id, 3, "late")

    assert "early/c0.0" not in run_ids("runs.db")
    assert "late/c0.0" in run_ids("runs.db")
    request = ResumeRequest(run="late", store="runs.db", approve=Approve.ALWAYS)
    assert resume(request) is Status.OK


@pytest.mark.usefixtures("pay_desk")
def test_a_store_that_notes_no_target_is_told_it_when_it_matters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A run without children needs none to be copied, but one to go on."""
    alone, team = parked(store="runs"), parked("team", "runs")
    capsys.readouterr()

    fork(alone, store="runs", at=2, new_id="a", target=None)
    with pytest.raises(ConfigError, match="name it with --target"):
        fork(team, store="runs", at=2, new_id="b", target=None)
    fork(team, store="runs", at=2, new_id="b", target="team")

    assert capsys.readouterr().err == (
        "go on with: graphloop resume a --target TARGET --store runs\n"
        "go on with: graphloop resume b --target team --store runs\n"
    )


@pytest.mark.usefixtures("pay_desk")
@pytest.mark.parametrize(
    ("at", "new_id", "error", "message"),
    [
        (9, "f", ConfigError, "has events 1 to 3, found --at 9"),
        (0, "f", ConfigError, "found --at 0"),
        (1, "a/b", ConfigError, "without a slash"),
        (1, "", ConfigError, "expected --as to say something"),
    ],
)
def test_a_fork_that_cannot_be_is_told(
    at: int, new_id: str, error: type[Exception], message: str
) -> None:
    """With what can."""
    run_id = parked()

    with pytest.raises(error, match=message):
        forked(run_id, at, new_id)
    with pytest.raises(StoreError, match="this run id is taken"):
        forked(run_id, 1, run_id)
