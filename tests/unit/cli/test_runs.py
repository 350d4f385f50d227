"""`graphloop runs`."""

from __future__ import annotations

import asyncio
import io
import json
import re
import sys
from pathlib import Path

import pytest

from graphloop.cli.approve import approve
from graphloop.cli.fork import fork
from graphloop.cli.request import Approve, ResumeRequest, RunRequest
from graphloop.cli.resume import resume
from graphloop.cli.run import run
from graphloop.cli.runs import runs
from graphloop.cli.status import Status
from graphloop.errors import ConfigError
from graphloop.stores.base import Ask
from graphloop.stores.sqlite import SqliteStore
from tests.unit.cli.pay_desk import TWO_CALLS, parked, run_ids, timeless


def listed(
    capsys: pytest.CaptureFixture[str],
    *,
    store: str = "runs.db",
    status: str | None = None,
    everything: bool = False,
    as_json: bool = False,
) -> tuple[str, str]:
    capsys.readouterr()
    assert runs(store=store, status=status, everything=everything, as_json=as_json) is Status.OK
    told = capsys.readouterr()
    return timeless(told.out), told.err


def test_a_run_is_listed_with_what_it_waits_for(
    pay_desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And with the answers that nobody has taken up yet."""
    (pay_desk / "pay" / "script.yaml").write_text(TWO_CALLS, encoding="utf-8")
    run_id = parked()
    approve(run_id, "c0.1", store="runs.db", deny=True, reason="", edit=None)

    out, err = listed(capsys)

    assert out == (
        "RUN       GRAPH  STATUS     EVENTS  UPDATED               WAITS FOR\n"
        f"{run_id[:8]}  agent  suspended       3  TIME  c0.0 pay(amount=5)\n"
        f"{' ' * 58}c0.1 pay(amount=7): denied\n"
    )
    assert err == ""


@pytest.mark.usefixtures("pay_desk")
def test_what_kind_of_answer_is_waited_for_can_be_seen(capsys: pytest.CaptureFixture[str]) -> None:
    """No approval answers a client tool, and a call that may have run is thought about twice."""
    run_id = parked()

    async def wait() -> None:
        store = SqliteStore("runs.db")
        await store.claim(run_id)
        asks = [
            Ask("c0.0#7", "approval", "pay", "{}", unknown=True),
            Ask("c0.1", "client_tool", "click", "{}"),
        ]
        await store.release(run_id, "suspended", asks)
        await store.aclose()

    asyncio.run(wait())

    _, first, second = listed(capsys)[0].splitlines()
    assert first.endswith("c0.0#7 pay(); it may have run already")
    assert second.endswith("c0.1 the result of click()")


@pytest.mark.usefixtures("pay_desk")
def test_children_stand_under_their_parents(capsys: pytest.CaptureFixture[str]) -> None:
    """What they wait for is told once, at the root, where it is answered."""
    run_id = parked("team")

    out, _ = listed(capsys)

    assert out.splitlines()[1:] == [
        f"{run_id[:8]}         desk   suspended       3  TIME  c0.0/c0.0 pay(amount=5)",
        f"└ {run_id[:8]}/c0.0  payer  suspended       3  TIME",
    ]


@pytest.mark.usefixtures("pay_desk")
def test_what_is_over_is_shown_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """A store holds months of runs; today's questions are few."""
    run(RunRequest(target="team", store="runs.db", approve=Approve.ALWAYS))
    (run_id,) = (one for one in run_ids("runs.db") if "/" not in one)

    assert listed(capsys) == ("", "2 runs that are over: --all\n")
    assert [line.split()[0] for line in listed(capsys, everything=True)[0].splitlines()] == [
        "RUN",
        run_id[:8],
        "└",
    ]
    assert listed(capsys, status="suspended") == ("", "no such run\n")
    assert len(listed(capsys, status="done")[0].splitlines()) == 3


@pytest.mark.usefixtures("pay_desk")
def test_a_run_that_was_left_and_waits_for_nobody_was_interrupted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nobody has to answer anything: it only has to be taken up."""
    run_id = parked()

    async def leave() -> None:
        store = SqliteStore("runs.db")
        await store.claim(run_id)
        await store.release(run_id, "suspended", ())
        await store.aclose()

    asyncio.run(leave())

    assert "interrupted" in listed(capsys)[0]
    assert len(listed(capsys, status="interrupted")[0].splitlines()) == 2
    assert listed(capsys, status="suspended") == ("", "no such run\n")


@pytest.mark.usefixtures("pay_desk")
def test_a_child_without_its_parent_has_its_whole_way(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It can be named in a command as it stands there."""
    fork(parked("team"), store="runs.db", at=3, new_id="f", target=None)

    async def take_up_the_root() -> None:
        store = SqliteStore("runs.db")
        await store.claim("f")
        await store.release("f", "suspended", ())
        await store.aclose()

    asyncio.run(take_up_the_root())

    out, _ = listed(capsys, status="ready")

    assert [line.split()[0] for line in out.splitlines()] == ["RUN", "f/c0.0"]


@pytest.mark.usefixtures("pay_desk")
def test_programs_get_everything_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """One object a run, with whole ids, and no table in between."""
    run_id = parked()
    approve(run_id, "pay", store="runs.db", deny=False, reason="", edit=None)

    (line,) = listed(capsys, as_json=True)[0].splitlines()

    told = json.loads(line)
    assert (told["run_id"], told["graph"], told["status"]) == (run_id, "agent", "suspended")
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
def test_a_directory_of_json_lines_is_listed_as_its_journals_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Journals alone do not say whether a run is over, so nothing is left out for it."""
    run_id = parked("team", "runs")

    out, _ = listed(capsys, store="runs")
    first, _ = listed(capsys, store="runs", as_json=True)

    assert out.splitlines()[1:] == [
        f"{run_id[:8]}         desk   seems suspended       3  TIME",
        f"└ {run_id[:8]}/c0.0  payer  seems suspended       3  TIME",
    ]
    told = json.loads(first.splitlines()[0])
    assert (told["status"], told["seems"]) == (None, "suspended")
    resume(ResumeRequest(run=run_id, store="runs", target="team", approve=Approve.ALWAYS))
    rows = listed(capsys, store="runs")[0].splitlines()[1:]
    assert [row.split()[-4:-2] for row in rows] == [["seems", "done"]] * 2
    assert len(listed(capsys, store="runs", status="done")[0].splitlines()) == 3
    assert listed(capsys, store="runs", status="suspended") == ("", "no such run\n")


def test_no_runs_are_said_to_be_none(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty screen would leave it open."""
    (desk / "runs").mkdir()

    assert listed(capsys, store="runs") == ("", "no runs\n")


def test_a_mistyped_status_is_met_with_what_is_near() -> None:
    """And with all there are."""
    with pytest.raises(ConfigError, match=r"cancelled; found 'suspend'\. Did you mean 'suspended'"):
        runs(store="runs.db", status="suspend", everything=False, as_json=False)


class Terminal(io.StringIO):
    """What a table is printed on."""

    def isatty(self) -> bool:
        """Be one."""
        return True


@pytest.mark.usefixtures("pay_desk")
@pytest.mark.parametrize("columns", [44, 80, 120])
def test_a_table_is_as_wide_as_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit goes on in the next line, and is never cut."""
    run_id = parked()
    approve(run_id, "pay", store="runs.db", deny=False, reason="", edit=None)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", out := Terminal())

    runs(store="runs.db", status=None, everything=False, as_json=False)

    lines = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue()).splitlines()
    assert max(map(len, lines)) <= columns
    assert len(lines) == ({44: 4, 80: 3, 120: 2}[columns])
    assert "suspended" in lines[1]
    assert "c0.0 pay(amount=5): approved" in re.sub(r"\s+", " ", " ".join(lines))
