"""`graphloop runs`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from graphloop.stores.base import Ask
from graphloop.stores.sqlite import SqliteStore
from tests.unit.cli.command_line import here, refused
from tests.unit.cli.pay_desk import TWO_CALLS, parked, timeless
from tests.unit.cli.terminal import Terminal


def listed(*options: str, store: str = "runs.db") -> tuple[str, str]:
    """Return what is told of the runs in a store."""
    done = here("runs", "--store", store, *options)
    assert done.returncode == Status.OK
    return timeless(done.stdout), done.stderr


def left(run_id: str, *asks: Ask) -> None:
    """Have a driver leave a run, with these asks."""

    async def leave() -> None:
        store = SqliteStore("runs.db")
        await store.claim(run_id)
        await store.release(run_id, "parked", asks)
        await store.aclose()

    asyncio.run(leave())


def test_a_run_is_listed_with_what_it_waits_for(pay_desk: Path) -> None:
    """And with the answers that no driver has applied yet."""
    (pay_desk / "pay" / "script.yaml").write_text(TWO_CALLS, encoding="utf-8")
    run_id = parked()
    here("approve", run_id, "c0.1", "--deny", "--store", "runs.db")

    out, err = listed()

    assert out == (
        "RUN       STATUS  GRAPH  EVENTS  UPDATED\n"
        f"{run_id[:8]}  parked  agent       3  TIME\n"
        f"{run_id[:8]} waits for c0.0: approval of pay(amount=5)\n"
        f"{run_id[:8]} waits for c0.1: approval of pay(amount=7): denied\n"
    )
    assert err == ""


@pytest.mark.usefixtures("pay_desk")
def test_what_kind_of_answer_is_waited_for_can_be_seen() -> None:
    """No approval answers a client tool, and a call that may have run is thought about twice."""
    left(
        parked(),
        Ask("c0.0#7", "approval", "pay", "{}", unknown=True),
        Ask("c0.1", "client_tool", "click", "{}"),
    )

    *_, first, second = listed()[0].splitlines()
    assert first.endswith("c0.0#7: approval of pay(); it may have run already")
    assert second.endswith("c0.1: the result of click()")


@pytest.mark.usefixtures("pay_desk")
def test_children_stand_under_their_parents() -> None:
    """What they wait for is told once, at the root, where it is answered."""
    run_id = parked("team")

    assert listed()[0].splitlines()[1:] == [
        f"{run_id[:8]}         parked  desk        3  TIME",
        f"└ {run_id[:8]}/c0.0  parked  payer       3  TIME",
        f"{run_id[:8]} waits for c0.0/c0.0: approval of payer > pay(amount=5)",
    ]


@pytest.mark.usefixtures("pay_desk")
def test_what_is_over_is_shown_when_asked_for() -> None:
    """A store holds months of runs; today's questions are few."""
    here("run", "team", "--store", "runs.db", "--approve", "always")

    assert listed() == ("", "2 runs that are over: --all\n")
    assert (
        3
        == len(listed("--all")[0].splitlines())
        == len(listed("--status", "done")[0].split("\n")) - 1
    )
    assert listed("--status", "parked") == ("", "no such run\n")
    assert "found 'park'. Did you mean 'parked'?" in refused(
        "runs", "--store", "runs.db", "--status", "park"
    )


@pytest.mark.usefixtures("pay_desk")
def test_a_run_that_was_left_and_waits_for_no_answer_was_interrupted() -> None:
    """It only has to be resumed; its child in a fork that has no driver is named whole."""
    left(parked())
    here("fork", parked("team"), "--at", "3", "--as", "f", "--store", "runs.db")
    left("f")

    assert 3 == len(listed("--status", "interrupted")[0].splitlines())
    ready = listed("--status", "ready")[0].splitlines()
    assert [line.split()[0] for line in ready] == ["RUN", "f/c0.0"]


@pytest.mark.usefixtures("pay_desk")
def test_programs_get_everything_as_json() -> None:
    """One object a run, with whole ids, and no table in between."""
    run_id = parked()
    here("approve", run_id, "pay", "--store", "runs.db")

    told = json.loads(listed("--json")[0])

    assert (told["run_id"], told["graph"], told["status"]) == (run_id, "agent", "parked")
    assert (told["events"], told["parent"]) == (3, None)
    assert told["target"].endswith("/pay")
    assert told["asks"] == [
        {
            "key": "c0.0",
            "kind": "approval",
            "name": "pay",
            "arguments": '{"amount": 5}',
            "agents": [],
            "expires_at": None,
            "unknown": False,
            "answer": "approved",
        }
    ]


@pytest.mark.usefixtures("pay_desk")
def test_a_directory_of_json_lines_knows_no_status() -> None:
    """Journals alone do not say whether a run is over, so none is left out for it."""
    run_id = parked("team", "runs")

    assert listed(store="runs")[0].splitlines()[1:] == [
        f"{run_id[:8]}         -       desk        3  TIME",
        f"└ {run_id[:8]}/c0.0  -       payer       3  TIME",
    ]
    assert json.loads(listed("--json", store="runs")[0].splitlines()[0])["status"] is None
    assert listed("--status", "done", store="runs") == ("", "no such run\n")


def test_no_runs_are_said_to_be_none(desk: Path) -> None:
    """An empty screen would leave it open."""
    (desk / "runs").mkdir()

    assert listed(store="runs") == ("", "no runs\n")


@pytest.mark.parametrize(("columns", "shown"), [(37, "GRAPH"), (80, "UPDATED")])
def test_a_narrow_terminal_gets_fewer_columns(columns: int, shown: str, pay_desk: Path) -> None:
    """What is waited for is told whole, with its lines broken between words."""
    run_id = parked("team")
    with Terminal("runs", "--store", "runs.db", cwd=pay_desk, columns=columns) as terminal:
        terminal.end()

    lines: Sequence[str] = terminal.text.splitlines()
    assert max(map(len, lines)) <= columns
    assert lines[0].split()[-1] == shown
    told = " ".join(terminal.text.split())
    assert f"{run_id[:8]} waits for c0.0/c0.0: approval of payer > pay(amount=5)" in told
