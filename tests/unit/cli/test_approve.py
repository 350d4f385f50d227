"""`graphloop approve`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from graphloop import Approval
from graphloop.cli.approve import answer_of, approve, find_ask
from graphloop.cli.request import Approve, ResumeRequest, RunRequest
from graphloop.cli.resume import resume
from graphloop.cli.run import run
from graphloop.cli.status import Status
from graphloop.errors import ConfigError, StoreError
from graphloop.stores.base import Ask
from graphloop.stores.sqlite import SqliteStore
from tests.unit.cli.pay_desk import TWO_CALLS, parked, run_ids


def approved(
    run_id: str, call: str, *, deny: bool = False, reason: str = "", edit: str | None = None
) -> Status:
    return approve(run_id, call, store="runs.db", deny=deny, reason=reason, edit=edit)


def resumed(run_id: str) -> Status:
    return resume(ResumeRequest(run=run_id, store="runs.db"))


@pytest.mark.usefixtures("pay_desk")
def test_an_answer_waits_until_somebody_resumes_the_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing runs at the approver's: it may be another machine's user."""
    run_id = parked()
    capsys.readouterr()

    assert approved(run_id, "c0.0") is Status.OK

    told = capsys.readouterr()
    assert told.out == f"approved pay(amount=5), c0.0 of run {run_id}\n"
    assert told.err == f"go on with: graphloop resume {run_id} --store runs.db\n"
    assert not Path("paid").exists()
    assert resumed(run_id) is Status.OK
    assert Path("paid").read_text(encoding="utf-8") == "5\n"


@pytest.mark.usefixtures("pay_desk")
def test_a_denial_is_told_to_the_model_with_its_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The next best answer depends on why not."""
    run_id = parked()

    assert approved(run_id, "pay", deny=True, reason="too much") is Status.OK
    assert resumed(run_id) is Status.OK

    out = capsys.readouterr().out
    assert f"denied pay(amount=5), c0.0 of run {run_id}\n" in out
    assert "⊘ pay(amount=5): Tool call denied. Reason: too much\n" in out
    assert not Path("paid").exists()


@pytest.mark.usefixtures("pay_desk")
def test_edited_arguments_are_what_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """And the approver is told that they were taken."""
    run_id = parked()

    approved(run_id[:6], "c0", edit='{"amount": 4}')
    resumed(run_id)

    assert f"approved, edited pay(amount=4), c0.0 of run {run_id}\n" in (
        out := capsys.readouterr().out
    )
    assert "✓ pay(amount=4) (edited): 4 paid\n" in out
    assert Path("paid").read_text(encoding="utf-8") == "4\n"


@pytest.mark.usefixtures("pay_desk")
@pytest.mark.parametrize(
    ("target", "edit", "message"),
    [
        ("pay", '{"amount": "lots"}', "amount: 'lots' is not of type 'integer'"),
        ("team", "{}", "'amount' is a required property.* An edit replaces all arguments"),
    ],
)
def test_edited_arguments_that_cannot_run_are_refused_where_they_are_typed(
    target: str, edit: str, message: str
) -> None:
    """The journal knows what the tool takes; nothing is posted, and a better edit counts."""
    run_id = parked(target)

    with pytest.raises(ConfigError, match=message):
        approved(run_id, "pay", edit=edit)

    assert approved(run_id, "pay", edit='{"amount": 4}') is Status.OK


@pytest.mark.usefixtures("pay_desk")
def test_the_edit_of_a_childs_call_is_shown_as_it_ran(capsys: pytest.CaptureFixture[str]) -> None:
    """What stands on the screen is what happened, at any depth."""
    run_id = parked("team")

    approved(run_id, "pay", edit='{"amount": 4}')
    resumed(run_id)

    assert "✓ payer > pay(amount=4) (edited): 4 paid\n" in capsys.readouterr().out


@pytest.mark.usefixtures("pay_desk")
def test_a_call_that_was_answered_is_said_to_be() -> None:
    """Its tool was a good name for it a minute ago."""
    run_id = parked()
    approved(run_id, "pay")

    with pytest.raises(StoreError, match=r"answered already: c0\.0 pay\(amount=5\) \(approved\)"):
        approved(run_id, "pay", deny=True)


@pytest.mark.usefixtures("pay_desk")
def test_the_first_answer_counts() -> None:
    """Of two approvers the second learns what the first has said."""
    run_id = parked()
    approved(run_id, "pay", deny=True)

    with pytest.raises(StoreError, match=r"was answered already \(denied\): the first answer"):
        approved(run_id, "c0.0")


def test_a_call_that_is_answered_is_not_meant_by_its_tools_name(
    pay_desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two calls the open one; and whoever answers is told what else is open."""
    (pay_desk / "pay" / "script.yaml").write_text(TWO_CALLS, encoding="utf-8")
    run_id = parked()
    capsys.readouterr()

    with pytest.raises(
        ConfigError, match=r"'pay' can mean: c0\.0 .*, c0\.1 .*\. Name it by its key"
    ):
        approved(run_id, "pay")
    approved(run_id, "c0.0")
    assert "still waits for c0.1: approval of pay(amount=7)\n" in capsys.readouterr().err
    approved(run_id, "pay")

    assert f"approved pay(amount=7), c0.1 of run {run_id}\n" == capsys.readouterr().out
    assert resumed(run_id) is Status.OK
    assert sorted(Path("paid").read_text(encoding="utf-8").split()) == ["5", "7"]


@pytest.mark.usefixtures("pay_desk")
@pytest.mark.parametrize(("child", "call"), [("", "c0.0/c0.0"), ("/c0.0", "c0.0")])
def test_a_call_of_an_agents_agent_is_answered_at_the_root_or_at_the_child(
    child: str, call: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both are shown by `graphloop runs`, and the root is what takes the answer."""
    run_id = parked("team")

    assert approved(f"{run_id}{child}", call) is Status.OK

    assert resumed(run_id) is Status.OK
    out = capsys.readouterr().out
    assert f"approved pay(amount=5), c0.0/c0.0 of run {run_id}\n" in out
    assert "✓ payer > pay: 5 paid\n" in out


@pytest.mark.usefixtures("pay_desk")
def test_a_run_that_is_over_takes_no_answer() -> None:
    """It would wait for ever."""
    run(RunRequest(target="pay", store="runs.db", approve=Approve.ALWAYS))
    (run_id,) = run_ids("runs.db")

    with pytest.raises(ConfigError, match=r"takes no answers: it is over \(done\)"):
        approved(run_id, "c0.0")


@pytest.mark.usefixtures("pay_desk")
def test_a_store_without_a_mailbox_says_what_to_use_instead() -> None:
    """Not "not supported": the command that does it."""
    run_id = parked(store="runs")

    with pytest.raises(
        ConfigError, match=f"in a terminal: graphloop resume {run_id} --target TARGET --store runs"
    ):
        approve(run_id, "c0.0", store="runs", deny=False, reason="", edit=None)


def test_an_edit_is_a_json_object_and_no_denial() -> None:
    """Refused before the store is touched."""
    assert answer_of(deny=False, reason="r", edit='{"a": 1}') == Approval(True, "r", '{"a": 1}')
    assert answer_of(deny=True, reason="r", edit=None) == Approval(False, "r")
    with pytest.raises(ConfigError, match="found both"):
        answer_of(deny=True, reason="", edit="{}")
    for edit in ("[1]", "5", "{", "", "[" * 100_000):
        with pytest.raises(ConfigError, match="expected the arguments as a JSON object"):
            answer_of(deny=False, reason="", edit=edit)


def test_what_is_near_a_mistyped_call_is_named() -> None:
    """Everything that waits is listed, too."""
    asks = [Ask("c0.0", "approval", "pay", "{}"), Ask("c1.0", "client_tool", "click", "{}")]

    for typed, meant in (("c0.o", "c0.0"), ("payy", "pay")):
        with pytest.raises(ConfigError) as raised:
            find_ask(asks, "r", typed)
        assert str(raised.value).endswith(
            f"it waits for c0.0 pay(), c1.0 click(). Did you mean {meant!r}?"
        )
    with pytest.raises(ConfigError, match="waits for what the client tool 'click' returns"):
        find_ask(asks, "r", "click")
    assert find_ask(asks, "r", "c0") == asks[0]


@pytest.mark.usefixtures("pay_desk")
def test_a_call_that_may_have_run_is_approved_with_a_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It will run again, whatever it did before."""
    run_id = asked_again()

    approved(run_id, "pay")

    assert "warning: it may have run already; it will run again.\n" in capsys.readouterr().err


@pytest.mark.usefixtures("pay_desk")
def test_a_call_that_may_have_run_is_not_edited() -> None:
    """Nothing is posted: whoever tried is told what can be answered, and can."""
    run_id = asked_again()

    with pytest.raises(ConfigError, match=r"c0\.0#7.*may have run already.*approve it as it is"):
        approved(run_id, "pay", edit='{"amount": 2}')

    assert approved(run_id, "pay", deny=True) is Status.OK


def asked_again() -> str:
    """Return a run in whose store a call is asked about that may have run."""
    run_id = parked()

    async def ask() -> None:
        store = SqliteStore("runs.db")
        await store.claim(run_id)
        again = Ask("c0.0#7", "approval", "pay", "{}", unknown=True)
        await store.release(run_id, "suspended", [again])
        await store.aclose()

    asyncio.run(ask())
    return run_id
