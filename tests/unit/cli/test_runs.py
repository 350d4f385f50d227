"""`graphloop runs`."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from graphloop.events import Resumed, Setup, Started
from graphloop.stores import SqliteStore, Submission
from graphloop.stores.base import Ask, Refusal
from tests.unit.cli.command_line import STORE, here, refused, shown, write
from tests.unit.cli.pay_desk import TWO_CALLS, left, parked, timeless
from tests.unit.cli.terminal import Terminal

pytestmark = pytest.mark.usefixtures("pay_desk")


def listed(*options: str, store: str = "runs.db") -> tuple[str, str]:
    """Return stdout and stderr of a listing, with `HASH` for the revision of real code."""
    done = here("runs", "--store", store, *options)
    assert done.returncode == Status.OK
    coded = re.sub(r"  (?!0123)[0-9a-f]{12}$", "  HASH", done.stdout, flags=re.MULTILINE)
    return timeless(coded), done.stderr


def test_a_run_is_listed_with_its_questions() -> None:
    """An answer that no driver has applied is listed beside its question; a driver may apply it."""
    write({"pay/script.yaml": TWO_CALLS})
    run_id = parked()
    shown("approve", run_id, "c0.1", "--deny", *STORE)

    assert listed() == (
        "RUN       STATUS  GRAPH  EVENTS  UPDATED               CODE\n"
        f"{run_id[:8]}  ready   agent       2  TIME  HASH\n"
        f"{run_id[:8]} waits for c0.0: approval of pay(amount=5)\n"
        f"{run_id[:8]} waits for c0.1: approval of pay(amount=7): denied\n",
        "",
    )


def test_a_question_says_what_kind_of_answer_it_takes() -> None:
    left(
        parked(),
        Ask("c0.0#7", "approval", "pay", "{}", unknown=True),
        Ask("c0.1", "client_tool", "click", "{}"),
    )

    *_, first, second = listed()[0].splitlines()
    assert first.endswith("c0.0#7: approval of pay(); it may have run already")
    assert second.endswith("c0.1: the result of click()")


def test_child_runs_are_listed_below_their_parents() -> None:
    """Their questions are listed at the root only."""
    run_id = parked("team")

    assert listed()[0].splitlines()[1:] == [
        f"{run_id[:8]}         parked  desk        2  TIME  HASH",
        f"└ {run_id[:8]}/c0.0  parked  payer       2  TIME",
        f"{run_id[:8]} waits for c0.0/c0.0: approval of payer > pay(amount=5)",
    ]


def test_runs_that_are_over_are_listed_on_request() -> None:
    shown("run", "team", *STORE, "--approve", "always")

    assert listed() == ("", "no run goes on or waits; runs that are over: --all\n")
    assert listed("--agent", "nobody") == ("", "no such run\n")
    assert len(listed("--all")[0].splitlines()) == 3
    assert len(listed("--status", "done")[0].splitlines()) == 3
    assert listed("--status", "parked") == ("", "no such run\n")
    wrong = refused("runs", *STORE, "--status", "park")
    assert "found 'park'. Did you mean 'parked'?" in wrong


def test_runs_that_a_driver_left_are_listed_by_their_status() -> None:
    left(parked(), status="interrupted")
    shown("fork", parked("team"), "--at", "2", "--as", "f", *STORE)
    left("f", status="interrupted")

    assert len(listed("--status", "interrupted")[0].splitlines()) == 3
    ready = listed("--status", "ready")[0].splitlines()
    assert [line.split()[0] for line in ready] == ["RUN", "f/c0.0"]


def test_json_has_whole_ids_and_all_fields() -> None:
    run_id = parked()
    shown("approve", run_id, "pay", *STORE)

    listing = json.loads(listed("--json")[0])

    assert listing["run_id"] == run_id
    assert (listing["graph"], listing["status"]) == ("agent", "ready")
    assert (listing["events"], listing["parent"]) == (2, None)
    assert listing["target"].endswith("/pay")
    assert listing["asks"] == [
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


def test_a_directory_of_json_lines_has_no_status() -> None:
    run_id = parked("team", "runs")

    assert listed(store="runs")[0].splitlines()[1:] == [
        f"{run_id[:8]}         -       desk        2  TIME",
        f"└ {run_id[:8]}/c0.0  -       payer       2  TIME",
    ]
    assert json.loads(listed("--json", store="runs")[0].splitlines()[0])["status"] is None
    assert listed("--status", "done", store="runs") == ("", "no such run\n")


def test_an_empty_store_has_no_runs(pay_desk: Path) -> None:
    (pay_desk / "runs").mkdir()

    assert listed(store="runs") == ("", "no runs\n")


@pytest.mark.parametrize(("columns", "last"), [(40, "EVENTS"), (80, "CODE")])
def test_a_narrow_terminal_has_fewer_columns(columns: int, last: str, pay_desk: Path) -> None:
    run_id = parked("team")
    with Terminal("runs", *STORE, cwd=pay_desk, columns=columns) as terminal:
        terminal.end()

    lines = terminal.text.splitlines()
    assert max(map(len, lines)) <= columns
    assert lines[0].split()[-1] == last
    question = f"{run_id[:8]} waits for c0.0/c0.0: approval of payer > pay(amount=5)"
    assert question in " ".join(terminal.text.split())


def test_queues_deadlines_and_code_are_listed_where_runs_have_them() -> None:
    """What decides when a worker takes a run stands beside its status."""

    async def submitted() -> None:
        store = SqliteStore("runs.db")
        for run_id, place in (
            ("a", Submission(queue="bulk", deadline_s=3599)),
            ("b", Submission(deadline_s=-120)),
        ):
            await store.enlist(Started(1.0, run_id, "desk", (), Setup()), place)
        await store.claim("a")
        await store.append("a", 2, Resumed(2.0, "0123456789abcdef"))
        await store.release("a", "parked", [])
        await store.aclose()

    asyncio.run(submitted())

    assert [line.split() for line in listed()[0].splitlines()] == [
        ["RUN", "STATUS", "GRAPH", "QUEUE", "DEADLINE", "EVENTS", "UPDATED", "CODE"],
        ["a", "parked", "desk", "bulk", "in", "59", "min", "2", "TIME", "0123456789ab"],
        ["b", "ready", "desk", "default", "2", "min", "ago", "1", "TIME"],
    ]
    told = json.loads(listed("--json")[0].splitlines()[0])
    assert (told["queue"], told["revision"]) == ("bulk", "0123456789abcdef")
    assert told["remaining_s"] > 3000


def test_a_failed_run_says_why() -> None:
    """A list of failed runs without reasons sends its reader to each journal."""
    write({"script.yaml": "- error: the server is down\n"})
    here("run", "Why?", "--script", "script.yaml", *STORE)

    text, _ = listed("--all")

    assert "failed" in text.splitlines()[1]
    assert "the server is down" in text.splitlines()[2]
    assert "the server is down" in json.loads(listed("--all", "--json")[0])["why"]


ENDS = """
from graphloop import Agent, budget, tool
from graphloop.testing import ScriptedModel

@tool
async def look(x: int) -> str:
    "Look."
    return str(x)

C = {"calls": [{"name": "look", "arguments": {"x": 1}}]}
OK = Agent(ScriptedModel(["fine"]))
MAX = Agent(ScriptedModel([C] * 5), tools=[look], max_steps=2)
BUDGET = Agent(ScriptedModel([C] * 5), tools=[look], budget=budget(tool_calls=1))
EMPTY = Agent(ScriptedModel([""] * 4))
BLOCKED = Agent(ScriptedModel(["x"]), screen=lambda _: False)
TYPED = Agent(ScriptedModel(["text"] * 9), output_type=int)
PROMPT = "Go."
"""


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("MAX", "done: max_steps"),
        ("BUDGET", "done: budget (budget.tool_calls)"),
        ("EMPTY", "done: empty_response"),
        ("BLOCKED", "done: refusal (screen:<lambda>)"),
        ("TYPED", "failed: OutputInvalid: "),
    ],
)
def test_each_end_says_why(name: str, why: str) -> None:
    """The record tells it: a listing reads no journal, and loads no code."""
    write({"ends.py": ENDS})
    here("run", "ends.py:OK", *STORE)
    here("run", f"ends.py:{name}", *STORE)
    Path("ends.py").unlink()

    lines = listed("--all")[0].splitlines()

    assert lines[3].partition(" ")[2].startswith(why)
    assert len(lines) == 4, "a run that just completed needs no reason"
    first, second = (json.loads(line) for line in listed("--all", "--json")[0].splitlines())
    assert (first["why"], second["why"][:9]) == (None, why.partition(": ")[2][:9])


def test_a_directory_of_json_lines_tells_a_failure_that_came_last() -> None:
    """Only the graph of a run can tell whether it is over, and a listing loads no code."""
    write({"script.yaml": "- error: the server is down\n"})
    here("run", "Why?", "--script", "script.yaml", "--store", "runs")

    text, _ = listed(store="runs")

    assert text.splitlines()[2].endswith(" last event: BadReply: the server is down")


def test_a_listing_is_read_page_by_page() -> None:
    """The last line of a page says how the next one is asked for."""
    first, second, third = parked(), parked(), parked()

    printed, hint = listed("--status", "parked", "--limit", "2")
    assert [line.split()[0] for line in printed.splitlines()[1:3]] == [first[:8], second[:8]]
    assert hint == f"the runs that follow: --after {second}\n"
    printed, hint = listed("--status", "parked", "--limit", "2", "--after", second)
    assert printed.splitlines()[1].split()[0] == third[:8]
    assert hint == ""
    assert listed("--agent", "nobody") == ("", "no such run\n")
    lost = here("runs", *STORE, "--after", "x")
    assert (lost.returncode, "no run 'x'" in lost.stderr) == (Status.FAILED, True)


def test_a_blocked_run_says_why() -> None:
    """Which event does not fit the code of the last worker that tried."""
    run_id = parked()
    left(run_id, status="blocked", refusal=Refusal("new", "event 7 does not fit", 7))

    assert listed("--status", "blocked")[0].splitlines()[-1] == (
        f"{run_id[:8]} blocked: event 7 does not fit"
    )
