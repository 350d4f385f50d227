"""The commands, their help, and what is said to a typing error."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from graphloop.cli import main
from graphloop.cli.status import Status
from tests.unit.cli.command_line import COMMAND, ROOT, environment

HEAVY = ("rich", "yaml", "httpx", "networkx", "fpdf")


def called(
    *arguments: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int | str | None, str, str]:
    monkeypatch.setattr(sys, "argv", ["graphloop", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    return ended.value.code, told.out, told.err


COMMANDS = (
    "run",
    "draw",
    "check",
    "diff",
    "fuzz",
    "schema",
    "runs",
    "approve",
    "resume",
    "replay",
    "fork",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_shows_how_it_is_used(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An example is read before a list of options is."""
    code, out, _ = called(command, "--help", monkeypatch=monkeypatch, capsys=capsys)

    assert code == Status.OK
    assert f"\n    graphloop {command} " in out


def test_help_lists_the_commands_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And none that is only planned."""
    code, out, _ = called("--help", monkeypatch=monkeypatch, capsys=capsys)

    commands = out.partition("Commands:\n")[2].split("\n")
    assert code == Status.OK
    assert tuple(line.split()[0] for line in commands if line) == COMMANDS


def test_the_version_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first thing that is asked in a report of a bug."""
    code, out, _ = called("--version", monkeypatch=monkeypatch, capsys=capsys)

    assert code == Status.OK
    assert out.startswith("graphloop ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rum", "x"), "Did you mean 'run'"),
        (("run", "x y", "--modle", "m"), "--model"),
        (("draw", "agent", "-o", "loop.bmp"), "error: expected a file name that ends in"),
        (("check", "exmples/x"), "Did you mean 'examples'?"),
        (("run", "a b", "--approve", "maybe"), "ask"),
        (("run", "a b", "--max-steps", "many"), "--max-steps"),
        (("resum", "r"), "Did you mean 'resume'?"),
        (("approve", "r", "--denny"), "--deny"),
        (("runs", "--status", "suspend", "--store", "x"), "Did you mean 'suspended'?"),
        (("runs",), "error: expected a store to look into: name it with --store runs.db"),
        (("fork", "r", "--store", "x"), "--at"),
    ],
)
def test_a_typing_error_is_met_with_what_is_near(
    arguments: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Status 2, and a hint, on stderr."""
    code, out, err = called(*arguments, monkeypatch=monkeypatch, capsys=capsys)

    assert (code, out) == (Status.USAGE, "")
    assert message in err


def test_a_command_is_done_and_its_status_passed_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The options arrive under their names."""
    code, out, _ = called("check", "agent", "--json", monkeypatch=monkeypatch, capsys=capsys)

    assert code == Status.OK
    assert out.startswith('{\n  "ok": true')


def test_a_run_is_asked_for_with_its_options(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the command line to the last line of the run."""
    (desk / "own.yaml").write_text("- text: Hi.\n", encoding="utf-8")
    arguments = ("run", "Hello there", "--script", "own.yaml", "--store", "runs")

    code, out, _ = called(*arguments, monkeypatch=monkeypatch, capsys=capsys)

    assert code == Status.OK
    assert out.startswith("Hi.\ncompleted · 1 step · 11 tokens · run ")
    assert out.endswith(" in runs\n")


def test_help_loads_nothing_that_only_commands_need() -> None:
    """It is asked more often than anything else, and should be there at once."""
    code = (
        "import sys\nsys.argv = ['graphloop', '--help']\nfrom graphloop.cli import main\n"
        f"try: main()\nexcept SystemExit: print(set(sys.modules) & set({HEAVY!r}))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )

    assert done.stdout.endswith("set()\n")


@pytest.mark.parametrize("arguments", ["run examples/weather", "check agent", "draw", "--version"])
@pytest.mark.parametrize(
    ("redirection", "status", "told"),
    [
        (">&-", Status.USAGE, "error: expected stdout to write to, found it closed: send it to a"),
        (">/dev/full", Status.FAILED, "error: expected stdout to take the output, found: No space"),
    ],
)
def test_output_that_cannot_be_written_is_told_in_words(
    arguments: str, redirection: str, status: Status, told: str
) -> None:
    """A closed or full stdout is the caller's affair: one line, no trace, no status 0."""
    command = " ".join(map(shlex.quote, COMMAND))

    done = subprocess.run(
        ["/bin/sh", "-c", f"{command} {arguments} {redirection}"],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )

    assert done.returncode == status
    assert done.stderr.splitlines()[-1].startswith(told)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("options", ["", " --json"])
def test_a_reader_that_has_read_enough_leaves_a_run_that_can_be_taken_up(
    options: str, tmp_path: Path
) -> None:
    """`| head -1` is no error, and the run waits for nobody: its driver is gone."""
    command, store = " ".join(map(shlex.quote, COMMAND)), shlex.quote(str(tmp_path / "runs.db"))
    # This reader has gone before the run says anything.
    reader = f"{command} run examples/weather 'And in NYC?' --store {store}{options} | :"

    done = subprocess.run(
        ["/bin/sh", "-c", f"{reader}; {command} runs --json --store {store}"],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    *others, left = done.stderr.splitlines()
    listed = json.loads(done.stdout)
    assert all(line.startswith("no API key found") for line in others)
    assert left.startswith(f"interrupted: nobody reads what run {listed['run_id']} shows. Go on")
    assert "interrupted" == listed["status"]
    again = left.partition("with: graphloop ")[2]
    resumed = subprocess.run(
        ["/bin/sh", "-c", f"{command} {again}"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert resumed.returncode == Status.OK, resumed.stderr


def test_the_commands_on_a_store_are_done_with_their_options(
    pay_desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the order in which they are told of; the store comes from the environment."""
    monkeypatch.setenv("GRAPHLOOP_STORE", "runs.db")

    def does(*arguments: str) -> tuple[int | str | None, str]:
        code, out, _ = called(*arguments, monkeypatch=monkeypatch, capsys=capsys)
        return code, out

    assert does("run", "pay")[0] == Status.PARKED
    code, listed = does("runs", "--status", "suspended", "--json")
    run_id = json.loads(listed)["run_id"]
    assert code == Status.OK
    assert does("fork", run_id, "--at", "2", "--as", "f") == (Status.OK, "f\n")
    edited = ("--edit", '{"amount": 4}', "--reason", "less")
    assert does("approve", run_id, "pay", *edited)[1].startswith("approved, edited pay(amount=4)")
    assert does("approve", run_id, "c0.0", "--deny")[0] == Status.FAILED
    assert "4 paid" in does("resume", run_id, "--max-steps", "3")[1]
    code, told = does("replay", run_id, "--upto", "5", "--target", "pay")
    assert (code, told.count("after event 5")) == (Status.OK, 1)
    assert "done" in does("runs", "--all")[1]
    assert (pay_desk / "paid").read_text(encoding="utf-8") == "4\n"


@pytest.mark.parametrize(
    "command", ["run", "draw", "check", "diff", "fuzz", "schema", "resume", "replay"]
)
def test_every_command_that_loads_python_says_that_it_is_executed(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A person who checks a file of somebody else's may think that it is only read."""
    _, out, _ = called(command, "--help", monkeypatch=monkeypatch, capsys=capsys)

    assert "executed" in out
