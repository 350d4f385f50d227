"""`graphloop approve`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from graphloop.stores.base import Ask
from graphloop.stores.sqlite import SqliteStore
from tests.unit.cli.command_line import here, refused
from tests.unit.cli.pay_desk import TWO_CALLS, parked, run_ids

STORE = ("--store", "runs.db")


def resumed(run_id: str) -> str:
    """Return what a resumed run shows; it ends."""
    done = here("resume", run_id, *STORE)
    assert done.returncode == Status.OK, done.stderr
    return done.stdout


def waiting(*asks: Ask) -> str:
    """Return a run that waits for these answers."""
    run_id = parked()

    async def ask() -> None:
        store = SqliteStore("runs.db")
        await store.claim(run_id)
        await store.release(run_id, "suspended", asks)
        await store.aclose()

    asyncio.run(ask())
    return run_id


@pytest.mark.usefixtures("pay_desk")
def test_an_answer_waits_until_the_run_is_resumed() -> None:
    """Nothing runs at the approver's: it may be another machine's user."""
    run_id = parked()

    done = here("approve", run_id, "c0.0", *STORE)

    assert done.stdout == f"approved pay(amount=5), c0.0 of run {run_id}\n"
    assert done.stderr == f"go on with: graphloop resume {run_id} --store runs.db\n"
    assert not Path("paid").exists()
    resumed(run_id)
    assert Path("paid").read_text(encoding="utf-8") == "5\n"


@pytest.mark.usefixtures("pay_desk")
def test_a_denial_is_told_to_the_model_with_its_reason() -> None:
    """The next best answer depends on why not; a later approval does not count."""
    run_id = parked()

    denied = here("approve", run_id, "pay", "--deny", "--reason", "too much", *STORE)
    late = here("approve", run_id, "c0.0", *STORE)
    by_name = here("approve", run_id, "pay", *STORE)

    assert denied.stdout == f"denied pay(amount=5), c0.0 of run {run_id}\n"
    assert late.returncode == by_name.returncode == Status.FAILED
    assert "was answered already (denied): the first answer counts." in late.stderr
    assert "answered already: c0.0 pay(amount=5)." in by_name.stderr
    assert "⊘ pay(amount=5): Tool call denied. Reason: too much\n" in resumed(run_id)
    assert not Path("paid").exists()


@pytest.mark.usefixtures("pay_desk")
def test_edited_arguments_are_what_runs() -> None:
    """And the approver is told that they were taken."""
    run_id = parked()

    done = here("approve", run_id[:6], "c0", "--edit", '{"amount": 4}', *STORE)

    assert done.stdout == f"approved, edited pay(amount=4), c0.0 of run {run_id}\n"
    assert "✓ pay(amount=4) (edited): 4 paid\n" in resumed(run_id)
    assert Path("paid").read_text(encoding="utf-8") == "4\n"


@pytest.mark.usefixtures("pay_desk")
@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ('{"amount": "lots"}', "amount: 'lots' is not of type 'integer'"),
        ("{}", "'amount' is a required property"),
        ("[1]", "expected the arguments as a JSON object, found '[1]'"),
        ("{", "expected the arguments as a JSON object, found '{'"),
    ],
)
def test_an_edit_that_cannot_run_is_refused_where_it_is_typed(edit: str, message: str) -> None:
    """The journal knows what the tool takes; nothing is posted, and a better edit counts."""
    run_id = parked("team")

    assert message in refused("approve", run_id, "pay", "--edit", edit, *STORE)
    assert "found both" in refused("approve", run_id, "pay", "--edit", "{}", "--deny", *STORE)

    here("approve", run_id, "pay", "--edit", '{"amount": 4}', *STORE)
    assert "✓ payer > pay(amount=4) (edited): 4 paid\n" in resumed(run_id)


def test_a_call_that_is_answered_is_not_meant_by_its_tools_name(pay_desk: Path) -> None:
    """Of two calls the open one; and the approver is told what else is open."""
    (pay_desk / "pay" / "script.yaml").write_text(TWO_CALLS, encoding="utf-8")
    run_id = parked()

    both = refused("approve", run_id, "pay", *STORE)
    first = here("approve", run_id, "c0.0", *STORE)
    second = here("approve", run_id, "pay", *STORE)

    assert "found 2: c0.0 pay(amount=5), c0.1 pay(amount=7). Fix: name it by its key." in both
    assert "still waits for c0.1: approval of pay(amount=7)\n" in first.stderr
    assert f"approved pay(amount=7), c0.1 of run {run_id}\n" == second.stdout
    resumed(run_id)
    assert sorted(Path("paid").read_text(encoding="utf-8").split()) == ["5", "7"]


@pytest.mark.usefixtures("pay_desk")
@pytest.mark.parametrize(("child", "call"), [("", "c0.0/c0.0"), ("/c0.0", "c0.0")])
def test_a_call_of_an_agents_agent_is_answered_at_the_root_or_at_the_child(
    child: str, call: str
) -> None:
    """Both are shown by `graphloop runs`, and the root is what takes the answer."""
    run_id = parked("team")

    done = here("approve", f"{run_id}{child}", call, *STORE)

    assert f"approved pay(amount=5), c0.0/c0.0 of run {run_id}\n" == done.stdout
    assert "✓ payer > pay: 5 paid\n" in resumed(run_id)


@pytest.mark.usefixtures("pay_desk")
def test_a_run_that_takes_no_answer_says_why() -> None:
    """It would wait for ever."""
    here("run", "pay", "--approve", "always", *STORE)
    (over,) = run_ids("runs.db")
    kept = parked(store="runs")

    assert "takes no answers: it is over (done)" in refused("approve", over, "c0.0", *STORE)
    told = refused("approve", kept, "c0.0", "--store", "runs")
    assert f"in a terminal: graphloop resume {kept} --target TARGET --store runs" in told


@pytest.mark.usefixtures("pay_desk")
def test_what_is_near_a_mistyped_call_is_named() -> None:
    """Everything that waits is listed, too."""
    run_id = waiting(
        Ask("c0.0", "approval", "pay", "{}"), Ask("c1.0", "client_tool", "click", "{}")
    )

    for typed, meant in (("c0.o", "c0.0"), ("payy", "pay")):
        told = refused("approve", run_id, typed, *STORE)
        assert told.endswith(f"it waits for c0.0 pay(), c1.0 click(). Did you mean {meant!r}?\n")
    click = refused("approve", run_id, "click", *STORE)
    assert "waits for the result of the client tool 'click'" in click


@pytest.mark.usefixtures("pay_desk")
def test_a_call_that_may_have_run_is_approved_with_a_warning_and_not_edited() -> None:
    """It will run again as it was, or not; a refused edit posts nothing."""
    run_id = waiting(Ask("c0.0#7", "approval", "pay", "{}", unknown=True))

    edited = refused("approve", run_id, "pay", "--edit", '{"amount": 2}', *STORE)
    done = here("approve", run_id, "pay", *STORE)

    assert "may have run already" in edited
    assert "warning: it may have run already; it will run again.\n" in done.stderr
