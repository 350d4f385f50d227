"""`graphloop replay`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from graphloop.cli.replay import replay
from graphloop.cli.request import Approve, ResumeRequest
from graphloop.cli.resume import resume
from graphloop.cli.status import Status
from graphloop.codec import Codec
from graphloop.errors import ConfigError, StoreError
from tests.unit.cli.pay_desk import parked, timeless


def replayed(
    run_id: str,
    capsys: pytest.CaptureFixture[str],
    *,
    target: str | None = None,
    upto: int | None = None,
    as_json: bool = False,
    store: str = "runs.db",
) -> tuple[str, str]:
    capsys.readouterr()
    status = replay(run_id, store=store, target=target, upto=upto, as_json=as_json)
    assert status is Status.OK
    told = capsys.readouterr()
    return timeless(told.out), told.err


@pytest.mark.usefixtures("pay_desk")
def test_a_run_is_told_event_by_event_and_nothing_is_performed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the calls' names, since the target was noted, and the state after the last."""
    run_id = parked()
    resume(ResumeRequest(run=run_id, store="runs.db", approve=Approve.ALWAYS))

    out, err = replayed(run_id[:8], capsys)

    assert out == (
        f"1  TIME  Started       agent, script:{Path('pay/script.yaml').absolute()}: Pay 5.\n"
        "2  TIME  ModelReplied  → pay(amount=5) · tool_calls, 15 tokens\n"
        "3  TIME  CallsChecked  needs approval\n"
        "4  TIME  Resumed       a driver took the run up\n"
        "5  TIME  Decided       c0.0 pay approved: --approve always\n"
        "6  TIME  Begun         c0.0 pay\n"
        "7  TIME  ToolReturned  c0.0 pay → 5 paid\n"
        "8  TIME  ModelReplied  Done. · stop, 11 tokens\n"
        "\n"
        "after event 8: ended, completed · 2 steps · 4 messages · 26 tokens\n"
        "  user: Pay 5.\n"
        "  assistant: → pay(amount=5)\n"
        "  tool: 5 paid\n"
        "  assistant: Done.\n"
    )
    assert err == ""
    assert Path("paid").read_text(encoding="utf-8") == "5\n"


@pytest.mark.usefixtures("pay_desk")
def test_a_run_is_told_as_it_stood_after_any_event(capsys: pytest.CaptureFixture[str]) -> None:
    """Time travel: what it waited for then, whatever came later."""
    run_id = parked()
    resume(ResumeRequest(run=run_id, store="runs.db", approve=Approve.ALWAYS))

    out, _ = replayed(run_id, capsys, upto=3)

    assert out.splitlines()[3:] == [
        "",
        "after event 3: at gate · 0 steps · 1 message · 15 tokens",
        "  waits for c0.0: approval of pay(amount=5)",
        "  user: Pay 5.",
    ]
    with pytest.raises(ConfigError, match="has events 1 to 8, found --upto 9"):
        replayed(run_id, capsys, upto=9)


@pytest.mark.usefixtures("pay_desk")
def test_a_child_that_is_waited_for_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Its own journal tells the rest."""
    run_id = parked("team")

    out, _ = replayed(run_id, capsys)
    child, _ = replayed(f"{run_id}/c0.0", capsys)

    assert f"  waits for c0.0: agent payer, run {run_id}/c0.0\n" in out
    assert child.splitlines()[0] == "1  TIME  Started       payer, pay: Pay 5"
    assert "after event" not in child


@pytest.mark.usefixtures("pay_desk")
def test_a_target_that_is_gone_leaves_the_events(capsys: pytest.CaptureFixture[str]) -> None:
    """A noted one is a help; one that is named now has to be there, and to fit."""
    run_id = parked()
    shutil.rmtree("pay")

    out, err = replayed(run_id, capsys)

    assert len(out.splitlines()) == 3
    assert err.startswith("the state is not shown: ")
    with pytest.raises(ConfigError, match=r"expected a directory, a \.py file, or"):
        replayed(run_id, capsys, target="pay")
    with pytest.raises(StoreError, match="is of graph 'agent', not of 'desk'"):
        replayed(run_id, capsys, target="team")


@pytest.mark.usefixtures("pay_desk")
def test_programs_get_the_journal_as_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """In the form of a journal of JSON lines, and the state last."""
    run_id = parked(store="runs")

    bare, _ = replayed(run_id, capsys, as_json=True, store="runs")
    out, _ = replayed(run_id, capsys, as_json=True, target="pay", store="runs")

    assert bare == Path("runs", f"{run_id}.jsonl").read_text(encoding="utf-8")
    *events, state = out.splitlines()
    assert [Codec().decode(line.encode())[0] for line in events] == [1, 2, 3]
    assert json.loads(state) == {
        "state": {
            "seq": 3,
            "node": "gate",
            "end_reason": None,
            "steps": 0,
            "messages": 1,
            "total_tokens": 15,
            "pending": ["c0.0"],
            "value": None,
        }
    }


@pytest.mark.usefixtures("pay_desk")
def test_the_end_is_told_to_programs_too(capsys: pytest.CaptureFixture[str]) -> None:
    """As its name in the library."""
    run_id = parked()
    resume(ResumeRequest(run=run_id, store="runs.db", approve=Approve.NEVER))

    out, _ = replayed(run_id, capsys, as_json=True)

    assert json.loads(out.splitlines()[-1])["state"]["end_reason"] == "completed"
