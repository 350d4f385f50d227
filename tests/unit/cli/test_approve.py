"""`graphloop approve`."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop import Agent
from graphloop.cli.errors import Status
from graphloop.cli.target import load_target
from graphloop.run import EndReason
from graphloop.stores.base import Ask
from tests.unit.cli.command_line import STORE, here, refused, shown, write
from tests.unit.cli.pay_desk import TWO_CALLS, left, parked, run_ids

pytestmark = pytest.mark.usefixtures("pay_desk")


def test_an_answer_waits_until_the_run_is_resumed() -> None:
    run_id = parked()

    done = here("approve", run_id, "c0.0", *STORE)

    assert done.stdout == f"approved pay(amount=5), c0.0 of run {run_id}\n"
    assert done.stderr == f"go on with: graphloop resume {run_id} --store runs.db\n"
    assert not Path("paid").exists()
    shown("resume", run_id, *STORE)
    assert Path("paid").read_text(encoding="utf-8") == "5\n"


def test_the_next_command_names_a_target_if_the_store_has_none() -> None:
    """A run that was started from Python has no words of a command line in its store."""
    agent = load_target("team").loop(None)
    assert isinstance(agent, Agent)
    result = agent.with_options(store="runs.db").generate_sync("See that 5 are paid.", run_id="p")
    assert result.end_reason is EndReason.PARKED

    done = here("approve", "p", "pay", *STORE)

    resume = "graphloop resume p --target TARGET --store runs.db"
    assert done.stderr == f"go on with a worker of its agent, or: {resume}\n"
    command = done.stderr.strip().partition("graphloop ")[2].replace("TARGET", "team").split()
    shown(*command)


def test_the_first_answer_counts() -> None:
    """The model reads the reason of a denial; a later approval does not count."""
    run_id = parked()

    denied = shown("approve", run_id, "pay", "--deny", "--reason", "too much", *STORE)
    late = here("approve", run_id, "c0.0", *STORE)
    by_name = here("approve", run_id, "pay", *STORE)

    assert denied == f"denied pay(amount=5), c0.0 of run {run_id}\n"
    assert late.returncode == by_name.returncode == Status.FAILED
    assert "was answered already (denied): the first answer counts." in late.stderr
    assert "answered already: c0.0 pay(amount=5)." in by_name.stderr
    resumed = shown("resume", run_id, *STORE)
    assert "⊘ pay(amount=5): Tool call denied. Reason: too much\n" in resumed
    assert not Path("paid").exists()


def test_edited_arguments_run() -> None:
    run_id = parked()

    done = shown("approve", run_id[:6], "c0", "--edit", '{"amount": 4}', *STORE)

    assert done == f"approved, edited pay(amount=4), c0.0 of run {run_id}\n"
    assert "✓ pay(amount=4) (edited): 4 paid\n" in shown("resume", run_id, *STORE)
    assert Path("paid").read_text(encoding="utf-8") == "4\n"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (('{"amount": "lots"}',), "amount: 'lots' is not of type 'integer'"),
        (("{}",), "'amount' is a required property"),
        (("[1]",), "expected the arguments as a JSON object, found '[1]'"),
        (("{",), "expected the arguments as a JSON object, found '{'"),
        (("{}", "--deny"), "found both"),
    ],
)
def test_an_edit_that_does_not_fit_the_tool_is_refused(edit: tuple[str, ...], message: str) -> None:
    """No answer is stored, so a better edit counts."""
    run_id = parked("team")

    assert message in refused("approve", run_id, "pay", "--edit", *edit, *STORE)

    shown("approve", run_id, "pay", "--edit", '{"amount": 4}', *STORE)
    assert "✓ payer > pay(amount=4) (edited): 4 paid\n" in shown("resume", run_id, *STORE)


def test_a_parked_form_shows_the_fields_of_its_answer() -> None:
    """The person copies the command, and fills them in."""
    done = here("run", "order", *STORE)

    assert " --store runs.db --edit '{\"size\": …}'" in done.stderr


def test_a_yes_alone_is_no_answer_to_a_form() -> None:
    """Else the tool would read a refusal, and the person would never know."""
    run_id = parked("order")

    refusal = refused("approve", run_id, "order", *STORE)
    shown("approve", run_id, "order", "--edit", '{"size": 42}', *STORE)

    assert '{"size": …}' in refusal
    assert 'True {"size": 42}' in shown("resume", run_id, *STORE)


def test_a_tools_name_means_its_unanswered_call() -> None:
    write({"pay/script.yaml": TWO_CALLS})
    run_id = parked()

    both = refused("approve", run_id, "pay", *STORE)
    first = here("approve", run_id, "c0.0", *STORE)
    second = shown("approve", run_id, "pay", *STORE)

    assert "found 2: c0.0 pay(amount=5), c0.1 pay(amount=7). Fix: name it by its key." in both
    assert "still waits for c0.1: approval of pay(amount=7)\n" in first.stderr
    assert second == f"approved pay(amount=7), c0.1 of run {run_id}\n"
    shown("resume", run_id, *STORE)
    assert sorted(Path("paid").read_text(encoding="utf-8").split()) == ["5", "7"]


@pytest.mark.parametrize(("child", "call"), [("", "c0.0/c0.0"), ("/c0.0", "c0.0")])
def test_a_call_of_a_sub_agent_is_answered_at_root_or_child(child: str, call: str) -> None:
    run_id = parked("team")

    done = shown("approve", f"{run_id}{child}", call, *STORE)

    assert done == f"approved pay(amount=5), c0.0/c0.0 of run {run_id}\n"
    assert "✓ payer > pay: 5 paid\n" in shown("resume", run_id, *STORE)


def test_a_run_that_takes_no_answer_is_refused() -> None:
    shown("run", "pay", "--approve", "always", *STORE)
    (over,) = run_ids("runs.db")
    kept = parked(store="runs")

    assert "takes no answers: it is over (done)" in refused("approve", over, "c0.0", *STORE)
    jsonl = refused("approve", kept, "c0.0", "--store", "runs")
    assert f"in a terminal: graphloop resume {kept} --target TARGET --store runs" in jsonl


def test_an_error_names_calls_near_a_mistyped_one() -> None:
    run_id = left(
        parked(), Ask("c0.0", "approval", "pay", "{}"), Ask("c1.0", "client_tool", "click", "{}")
    )

    for typed, near in (("c0.o", "c0.0"), ("payy", "pay")):
        error = refused("approve", run_id, typed, *STORE)
        assert error.endswith(f"it waits for c0.0 pay(), c1.0 click(). Did you mean {near!r}?\n")
    click = refused("approve", run_id, "click", *STORE)
    assert "waits for the result of the client tool 'click'" in click


def test_a_call_that_may_have_run_takes_no_edit() -> None:
    run_id = left(parked(), Ask("c0.0#7", "approval", "pay", "{}", unknown=True))

    edited = refused("approve", run_id, "pay", "--edit", '{"amount": 2}', *STORE)
    done = here("approve", run_id, "pay", *STORE)

    assert "may have run already" in edited
    assert "warning: it may have run already; it will run again.\n" in done.stderr
