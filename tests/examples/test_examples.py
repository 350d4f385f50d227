"""Every example runs as its docstring says, in a process of its own, without key or network."""

from __future__ import annotations

import ast
import json
import subprocess
from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from tests.unit.cli.command_line import ROOT, called, environment, graphloop
from tests.unit.cli.terminal import Terminal
from tests.warm_python import warm_python

ELSEWHERE = {"approval_web", "topologies"}
"""Their tests are in test_approval_web.py and test_topologies.py."""
EXAMPLES = sorted(
    path for path in (ROOT / "examples").iterdir() if path.is_dir() and path.name not in ELSEWHERE
)
LINES_MAX = 60
ANSWERS = {
    "asking": "The billing team has mended your invoice.",
    "approval": "I have done what was allowed; the results above say what that was.",
    "budget": "The Avenida, by a hair.",
    "chat": "You have not told me yet.",
    "custom_topology": "An agent loop you can see and prove.",
    "own_nodes": "A loop you can see.",
    "steering": "For Ada: Europe 4.1 million, America 7.3 million.",
    "structured_output": '{"city":"Lisbon","stops":["Alfama","Gulbenkian museum"],"umbrella":true}',
    "sub_agents": "America leads with 7.3 million, and the website says so.",
    "weather": "NYC is 72°F and sunny; London is 55°F and rainy.",
}
SAID = {
    "budget": """\
max_steps      max_steps                               2 turns, 4 tools, 0.0270 dollars
budget         budget.tool_calls                       2 turns, 3 tools, 0.0270 dollars
budget         budget.usd                              3 turns, 5 tools, 0.0450 dollars
stop_condition has_tool_call                           3 turns, 5 tools, 0.0450 dollars
stop_condition total_tokens_exceed, step_count_is      2 turns, 4 tools, 0.0270 dollars
""",
    "steering": """\
assistant:
[calls look_up_sales: {"region": "Europe"}]
[calls look_up_sales: {"region": "America"}]

result of look_up_sales (ok): 4.1 million

result of look_up_sales (ok): 7.3 million

assistant:
[calls send_mail: {"to": "ada@example.org", "body": "Europe 4.1 million, America 7.3 million."}]

result of send_mail (not_run): Not sent: drafts only today.

user: Show me the draft instead.

assistant:
For Ada: Europe 4.1 million, America 7.3 million.
""",
    "structured_output": """\
… {'city': 'Lisbon', 'stops': ['Alfama'], 'umbrella': True}
… {'city': 'Lisbon', 'stops': ['Alfama', 'Gulbenkian museum'], 'umbrella': True}
… Plan(city='Lisbon', stops=['Alfama', 'Gulbenkian museum'], umbrella=True)
assistant:
[calls get_forecast: {"city": "Lisbon"}]

result of get_forecast (ok): Lisbon: showers, 17 °C

assistant:
[calls final_answer: {"city": "Lisbon", "stops": ["Alfama"], "umbrella": true}]

result of final_answer (ok): Not taken.

user: Invalid arguments for tool 'final_answer': stops: List should have at least 2 items \
after validation, not 1, found ['Alfama']. Correct the arguments and call the tool again.

assistant:
[calls final_answer: {"city": "Lisbon", "stops": ["Alfama", "Gulbenkian museum"], \
"umbrella": true}]

result of final_answer (ok): {"city":"Lisbon","stops":["Alfama","Gulbenkian \
museum"],"umbrella":true}

Plan(city='Lisbon', stops=['Alfama', 'Gulbenkian museum'], umbrella=True)
""",
    "sub_agents": """\
publisher waits: publish{"text": "America leads."} (c1.0/c0.0)
America leads with 7.3 million, and the website says so. (105 tokens, all agents together)
""",
}
"""What an example prints that is a program of its own."""


def file_of(example: Path) -> Path:
    (file,) = example.glob("*.py")
    return file


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_short_and_says_its_command(example: Path) -> None:
    """One idea, on one screen, and how to see it."""
    source = file_of(example).read_text(encoding="utf-8")

    assert len(source.splitlines()) <= LINES_MAX
    assert f"graphloop run examples/{example.name}" in (ast.get_docstring(ast.parse(source)) or "")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_answers_without_a_key(example: Path) -> None:
    """And says that it is a recording."""
    done = graphloop("run", f"examples/{example.name}", "--approve", "always")

    lines = done.stdout.splitlines()
    *_, answer, end = [line for line in lines if not line.startswith("state: ")]
    assert done.returncode == 0, done.stderr
    if (example / "script.yaml").exists():
        assert done.stderr == (
            f"no API key found: replaying examples/{example.name}/script.yaml; "
            "set ANTHROPIC_API_KEY or use --model to ask a real model\n"
        )
    assert answer == ANSWERS[example.name]
    assert end.startswith("completed · ")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_tells_programs_the_same(example: Path) -> None:
    """The text deltas of the JSON lines add up to the text that people read."""
    done = called("run", f"examples/{example.name}", "--approve", "always", "--json")

    parts = [json.loads(line) for line in done.stdout.splitlines()]
    last_turn = max(at for at, part in enumerate(parts) if part["type"] == "step-start")
    text = "".join(part["text"] for part in parts[last_turn:] if part["type"] == "text-delta")
    assert text == ("" if example.name == "structured_output" else ANSWERS[example.name])
    assert parts[0]["type"] == "run-start"
    assert (parts[-1]["type"], parts[-1]["end_reason"]) == ("finish", "completed")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_drawn_and_checked(example: Path, tmp_path: Path) -> None:
    """The picture and the proofs need no model at all."""
    picture = tmp_path / "loop.svg"

    drawn = called("draw", f"examples/{example.name}", "-o", picture)
    checked = called("check", f"examples/{example.name}")

    assert (drawn.returncode, drawn.stderr) == (0, "")
    assert "<svg" in picture.read_text(encoding="utf-8")
    assert (checked.returncode, checked.stderr) == (0, "")


def program(example: str, *arguments: str | Path, typed: str = "", cwd: Path = ROOT) -> str:
    """Run an example as a program of its own, and return what it prints."""
    done = subprocess.run(
        [*warm_python(), "-W", "error", file_of(ROOT / "examples" / example), *arguments],
        cwd=cwd,
        env=environment(),
        input=typed,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("example", SAID)
def test_an_example_that_is_a_program_prints_what_it_shows(example: str) -> None:
    """Line by line: an example is documentation, and its output is half of it."""
    docstring = ast.get_docstring(
        ast.parse(file_of(ROOT / "examples" / example).read_text("utf-8"))
    )

    assert f"python examples/{example}/agent.py" in (docstring or "")
    assert program(example) == SAID[example]


@pytest.mark.parametrize(
    ("typed", "second"),
    [
        ("y\n", "250 dollars paid back for B-42"),
        ("\n", "Tool call denied."),
        ("too much\n", "denied. Reason: too much"),
    ],
)
def test_an_approval_is_given_in_another_process(tmp_path: Path, typed: str, second: str) -> None:
    """The first process is gone when the answer comes; nothing runs twice, nothing is lost."""
    store = tmp_path / "runs.db"

    first = program("approval", store)
    asked, paid, said = program("approval", store, typed=typed).splitlines()

    assert first == 'parked {"order": "B-42", "amount": 250}\n'
    assert asked.endswith("agree? y/N, or say why not: 20 dollars paid back for A-17")
    assert second in paid
    assert program("approval", store).splitlines() == [
        "20 dollars paid back for A-17",
        paid,
        said,
    ]


def test_a_chat_is_continued_by_the_next_process(tmp_path: Path) -> None:
    """Nothing is handed over but the file."""
    first, second, third = (
        program("chat", tmp_path / "chats.db", said) for said in ("I am Ada.", "Hm.", "Who am I?")
    )

    assert first == "Before this, you said: nothing.\n"
    assert second == "Before this, you said: I am Ada.\n"
    assert third == "Before this, you said: I am Ada. Hm.\n"


def test_an_approval_needs_no_arguments(tmp_path: Path) -> None:
    """Who types the command as it is shown gets a store of that name."""
    assert program("approval", cwd=tmp_path).startswith("parked ")
    assert (tmp_path / "runs.db").is_file()


def test_an_approval_inside_an_agent_is_given_in_another_process(tmp_path: Path) -> None:
    """Each process has scripts of its own, so they must answer by the conversation alone."""
    store = ("--store", tmp_path / "runs.db")

    assert graphloop("run", "examples/sub_agents", *store).returncode == Status.PARKED
    run_id = json.loads(called("runs", "--json", *store).stdout.splitlines()[0])["run_id"]
    assert called("approve", run_id, "publish", *store).returncode == Status.OK
    done = graphloop("resume", run_id, *store)

    assert done.returncode == Status.OK, done.stderr
    assert ANSWERS["sub_agents"] in done.stdout.splitlines()
    assert done.stdout.count("published: America leads.") == 1


def test_the_weather_is_asked_for_two_cities_at_once() -> None:
    """The case that everything else grew from."""
    done = called("run", "examples/weather")

    assert done.stdout.splitlines() == [
        "> What's the weather in NYC and London?",
        '→ get_weather(city="NYC")',
        '→ get_weather(city="London")',
        '✓ get_weather(city="NYC"): 72°F and sunny',
        '✓ get_weather(city="London"): 55°F and rainy',
        "NYC is 72°F and sunny; London is 55°F and rainy.",
        "completed · 2 steps · 40 tokens",
    ]


def test_the_critic_sends_the_first_draft_back() -> None:
    """Its feedback is a message like any other, and the next draft takes it up."""
    done = called("run", "examples/custom_topology")

    assert done.stdout.splitlines()[1:-1] == [
        "→ house_style()",
        "✓ house_style(): At most eight words. No exclamation mark.",
        "The revolutionary agent loop that you can finally see, at last!",
        "↩ critique: Eleven words and an exclamation mark. Shorten it.",
        "An agent loop you can see and prove.",
    ]


def test_a_large_refund_waits_where_nobody_can_be_asked(tmp_path: Path) -> None:
    """The small one is not paid either: a batch runs when all of it is decided."""
    done = graphloop("run", "examples/approval", "--store", tmp_path)

    assert done.returncode == 3
    assert 'c0.1  approval of refund(order="B-42", amount=250)' in done.stderr
    assert "paid back" not in done.stdout


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        ("y\n", ["dollars paid back for A-17", "dollars paid back for B-42"]),
        ("not before Friday\n", ["back for A-17", "denied. Reason: not before Friday"]),
    ],
)
def test_a_large_refund_is_decided_at_the_terminal(answer: str, lines: list[str]) -> None:
    """On a terminal of its own: the question comes, is answered, and the run goes on."""
    with Terminal("run", "examples/approval", cwd=ROOT, columns=100) as terminal:
        terminal.until("the reason why not (Ctrl-D: no): ")
        terminal.type(answer)
        assert terminal.end() == 0

    assert "completed" in terminal.text
    assert all(line in terminal.text for line in lines)
    assert terminal.raw.count("\x1b[?25l") == terminal.raw.count("\x1b[?25h")
