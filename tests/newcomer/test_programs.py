"""Each program of a newcomer runs as it stands, in processes of its own, and does what it says."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any, cast

import pytest
from IPython.core.formatters import DisplayFormatter

from tests.newcomer.programs import p12_notebook
from tests.newcomer.table import PROGRAMS
from tests.pages.processes import done

TIMES = re.compile(r"\d+\.\d{3} s")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the programs, as a newcomer has them."""
    for path in PROGRAMS.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    return tmp_path


def succeeded(command: str, folder: Path) -> list[str]:
    """Return the lines that a command prints, which has to end with status 0."""
    status, printed = done(command, folder)
    assert status == 0, printed
    return printed.splitlines()


def test_an_answer_comes_at_once_in_words_and_in_parts(folder: Path) -> None:
    """The bug of a tool is a traceback for its author, not only a text for the model."""
    printed = succeeded("python p01_weather.py", folder)

    assert [
        "Take an umbrella.",
        "Take |an |umbrella.|completed",
        '→ sky {"city": "Oslo"}',
        '→ sky {"city": "Cairo"}',
        "✓ rain, 9 °C",
        "✓ sun, 31 °C",
        "completed",
    ] == printed[:7]
    assert any("tool 'sky' raised" in line for line in printed)
    assert "Traceback (most recent call last):" in printed
    assert "KeyError: 'Paris'" in printed
    assert "error" == printed[-1]


def test_an_answer_is_a_value_of_its_type(folder: Path) -> None:
    """When corrections run out, the error quotes the answer, and says what would help."""
    *printed, error = succeeded("python p02_contact.py", folder)

    assert [
        "… {'name': 'Ada', 'phones': []}",
        "… {'name': 'Ada', 'phones': ['555-0100']}",
        "… name='Ada' phones=['555-0100']",
        "ADA 555-0100",
    ] == printed
    assert error.startswith("`output_type`: expected an answer of form 'Contact', found one")
    assert '\'{"name": "Ada", "phones": []}\'' in error
    assert "Fix: raise `max_output_retries`" in error


def test_a_refund_is_corrected_in_another_process(folder: Path) -> None:
    """Looking at the questions drives no run, and the correction is what is paid."""
    asked = succeeded("python p03_refunds.py ask", folder)
    listed = succeeded("graphloop runs --store desk.db", folder)
    answered = succeeded("python p03_refunds.py answer", folder)
    status, again = done("graphloop approve k7 c0.0 --store desk.db", folder)

    assert ["parked refund"] == asked
    assert 'k7 waits for c0.0: approval of refund(order="K-7", cents=9900)' in listed
    assert [
        'parked refund {"order": "K-7", "cents": 9900}',
        "accepted",
        "The money is on its way.",
    ] == answered
    assert "K-7 990\n" == (folder / "ledger.txt").read_text("utf-8")
    assert 0 != status, again


def test_an_article_is_planned_judged_approved_and_published(folder: Path) -> None:
    """Typed values go through the state, and the text of the person goes out."""
    printed = succeeded("python p04_article.py", folder)
    checked = succeeded("graphloop check p04_article.py", folder)

    assert [
        "True 44 model calls at most",
        'parked {"question": "Owls eat mice.", "answer": ""} Mice. In barns.',
        "https://example.org/owls Owls eat mice, at night.",
    ] == printed
    assert "Owls eat mice, at night." == (folder / "owls.txt").read_text("utf-8")
    assert "graph 'article': no problem found" == checked[0]
    assert 12 == sum("proven GL" in line for line in checked)


def test_a_table_in_a_file_runs_and_a_weaker_one_is_told(folder: Path) -> None:
    """The agent of the map has a model of its own, and is proven with the graph."""
    table = folder / "p05_letters.yaml"
    hasty = table.read_text("utf-8").replace("urgent: ask", "urgent: answer").split("rules:")[0]
    lines = [line for line in hasty.splitlines() if not line.startswith("  ask:")]
    (folder / "hasty.yaml").write_text("\n".join(lines), encoding="utf-8")

    printed = succeeded("python p05_letters.py", folder)
    checked = succeeded("graphloop check p05_letters.py", folder)
    status, told = done("graphloop diff p05_letters.yaml hasty.yaml --with p05_letters.py", folder)

    assert [
        'parked {"question": "kettle, spoon", "answer": ""}',
        "2 answers ['kettle', 'spoon']",
    ] == printed
    assert 13 == sum("proven GL" in line for line in checked)
    assert 1 == status
    assert "weaker: `answer` becomes reachable without `ask`" in told


def test_three_levels_of_agents_have_one_budget(folder: Path) -> None:
    """A fourth level is refused when the agent is made, and says which number would do."""
    assert [
        "We can deliver. 4 agents, 2 tool calls",
        "/c0.0 /c0.0/c0.0 /c1.0 /c1.0/c0.0",
        "budget budget.agent_calls",
        "326 model calls at most",
        "`max_agent_depth`: expected at least 3, as agents call each other ('director' > 'store' > "
        "'clerk'), found no value, so 2: no model can call 'clerk'. Fix: max_agent_depth=3; or "
        "give max_agent_depth=2, if that is meant.",
    ] == succeeded("python p06_firm.py", folder)


def test_each_request_brings_its_own_dependencies(folder: Path) -> None:
    """A resume without them is refused before anything runs, and no journal holds them."""
    assert [
        "Paid. ['R-1']",
        "You serve Ada.",
        "parked []",
        "`deps` of 'agent': expected Request, which agent 'agent' reads, found none. Fix: pass "
        "`deps=…` to each start and each resume of the run, or to its worker; on the command line, "
        "define DEPS in the target's file.",
        "Paid. ['R-1']",
        "Good day.",
        "0.1",
    ] == succeeded("python p07_request.py", folder)
    stored = b"".join(path.read_bytes() for path in folder.glob("bank.db*"))
    assert b"You serve Bob." in stored
    assert b"canary" not in stored


def test_the_tests_of_an_agent_pass(folder: Path) -> None:
    """Override, refusal, recording, proofs, fuzzing and properties, as pytest runs them."""
    assert "5 passed" in succeeded("pytest -q p09_tested.py", folder)[-1]


def test_a_service_can_be_looked_at(folder: Path) -> None:
    """Logs hold figures and no content; spans are a tree; the journal answers afterwards."""
    printed = [TIMES.sub("S", line) for line in succeeded("python p10_service.py", folder)]
    logged = [line for line in printed if line.startswith(("INFO", "WARNING"))]

    assert [
        "INFO run order-1 shop: starts",
        "WARNING run order-1: tool 'price' raised",
        "INFO run order-1 shop: step 0 by scripted: tool_calls, 2 calls, 1000 + 100 tokens, "
        "$0.002000, S",
        "INFO run order-1 shop: step 1 by scripted: stop, 0 calls, 1200 + 10 tokens, $0.001300, S",
        "INFO run order-1 shop: completed after 2 steps, 2310 tokens, S",
    ] == logged
    assert [
        "0.0033 dollars",
        "chat script UNSET",
        "execute_tool price ERROR",
        "execute_tool price UNSET",
        "chat script UNSET",
        "invoke_agent shop UNSET",
        "0 price ok 2 euros",
        "0 price error KeyError: 'ink'",
    ] == [*printed[-8:-6], *sorted(printed[-6:-4]), *printed[-4:]]


def test_a_model_and_a_store_of_ones_own_fit(folder: Path) -> None:
    """Another agent over the same store goes on with the run."""
    assert ["parked 2 events", "ding ding  6 tokens"] == succeeded(
        "python p11_own_parts.py", folder
    )


def test_a_notebook_shows_pictures_and_short_texts() -> None:
    """Every cell has a picture, and no text is an address or longer than a line."""
    # IPython has no annotations.
    formatter = cast("Any", DisplayFormatter())
    shown: list[dict[str, str]] = [formatter.format(value)[0] for value in p12_notebook.cells()]

    assert 6 == len(shown)
    for contents in shown:
        assert contents["image/svg+xml"].lstrip().startswith(("<svg", "<?xml"))
        assert "object at 0x" not in contents["text/plain"]
    assert [
        "<Agent 'maths': script, 1 tool>",
        "<Graph 'maths': 9 nodes, 39 edges>",
        "<Report 'maths': no problem found; 12 proven, 1 unknown>",
        "<Bound 'maths': at most 6 model calls>",
        "<RunResult 'squares': completed, 2 steps>",
        "<Comparison 'maths' -> 'maths': weaker>",
    ] == [repr(value) for value in p12_notebook.cells()]


def test_what_the_types_say_is_what_comes(folder: Path) -> None:
    """`assert_type` holds for the checkers; the values are of these types when it runs."""
    assert [
        "130000",
        "Ulm 130001",
        "['Ulm', 'Ulm'] City(name='Ulm', people=130000)",
        "FINAL_ANSWER",
        "completed",
    ] == succeeded("python p13_typed.py", folder)


def test_two_processes_never_drive_one_run(folder: Path) -> None:
    """The second one is told which process has the run; the first one ends it."""
    busy, *printed = succeeded("python p14_two_processes.py", folder)

    assert re.fullmatch(r"run 'cake' is being driven by pid \d+, which holds .*", busy)
    assert [
        "Linzer is ready, the other baker left with 7",
        "Enjoy! completed",
    ] == printed
    journal = (folder / "runs" / "cake.jsonl").read_text("utf-8").splitlines()
    assert all(json.loads(line) for line in journal)
