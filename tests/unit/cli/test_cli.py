"""What all commands have in common: help, hints, exit statuses, and a stdout that may fail."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from graphloop.cli.errors import Status, guarded
from graphloop.errors import ConfigError, StoreError
from tests.unit.cli.command_line import COMMAND, ROOT, called, environment, here, refused
from tests.unit.cli.pay_desk import parked

HEAVY = ("rich", "yaml", "httpx", "networkx", "fpdf", "graphloop.agent.agent")
LOADING = ("run", "draw", "check", "diff", "fuzz", "schema", "resume", "replay", "fork")
COMMANDS = ("run", "draw", "check", "diff", "fuzz", "schema", "runs", "approve", "resume", "replay")
WIDTHS = ("40", "80")


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("command", [*COMMANDS, "fork"])
def test_each_command_shows_how_it_is_used(
    command: str, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An example is read before a list of options is; and a file that is executed is told so."""
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("TERMINAL_WIDTH", columns)

    done = called(command, "--help")

    assert done.returncode == Status.OK
    assert f"\n    graphloop {command} " in done.stdout
    assert ("executed" in done.stdout) == (command in LOADING)


def test_help_lists_the_commands_there_are() -> None:
    """Each of them with a line."""
    done = called("--help")

    commands = done.stdout.partition("Commands:\n")[2].splitlines()
    assert done.returncode == Status.OK
    assert tuple(line.split()[0] for line in commands) == (*COMMANDS, "fork")


def test_every_exit_status_is_documented() -> None:
    """A script branches on them."""
    told = called("run", "--help").stdout.partition("Exit status:")[2]

    assert all(f"{int(status)} " in told for status in Status)


def test_the_version_is_told() -> None:
    """The first thing that is asked in a report of a bug."""
    assert called("--version").stdout.startswith("graphloop ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rum", "x"), "Did you mean 'run'"),
        (("resum", "r"), "'resume'?"),
        (("run", "x y", "--modle", "m"), "--model"),
        (("approve", "r", "--denny"), "--deny"),
        (("run", "a b", "--approve", "maybe"), "ask"),
        (("run", "a b", "--max-steps", "many"), "--max-steps"),
        (("fork", "r", "--store", "x"), "--at"),
        (("draw", "agent", "--theme", "blue"), "light"),
        (("draw", "agent", "--level", "near"), "phase"),
        (("draw", "agent", "-o", "loop.bmp"), "expected the file of a picture, which ends in"),
        (("check", "exmples/x"), "Did you mean 'examples'?"),
        (("runs", "--status", "park", "--store", "x"), "Did you mean 'parked'?"),
        (("runs",), "error: --store: expected a store to look into, found none. Fix: name it"),
    ],
)
def test_a_typing_error_is_met_with_what_is_near(arguments: tuple[str, ...], message: str) -> None:
    """Status 2, and a hint, on stderr."""
    done = called(*arguments)

    assert (done.returncode, done.stdout) == (Status.USAGE, "")
    assert message in done.stderr


@pytest.mark.parametrize(
    ("arguments", "blank"),
    [
        (("run", "", "--model", " "), "FILE_OR_PROMPT and --model: "),
        (("run", "Why so?", " "), "PROMPT: "),
        (("check", "agent", "--rule", "{never: a}", "--rule", ""), "--rule: "),
        (("resume", "", "--store", "x"), "RUN: "),
        (("fork", "r", "--at", "1", "--as", "", "--store", "x"), "--as: "),
        (("diff", "agent", ""), "AFTER: "),
        (("draw", "", "-o", ""), "TARGET and -o: "),
    ],
)
def test_blank_arguments_are_refused_all_at_once(arguments: tuple[str, ...], blank: str) -> None:
    """A shell variable that is not set would mean another run."""
    assert refused(*arguments).startswith(f"error: {blank}expected text")


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


def shell(line: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a line in a shell, with `graphloop` where it says so."""
    command = " ".join(map(shlex.quote, COMMAND))
    return subprocess.run(
        ["/bin/sh", "-c", line.replace("graphloop ", f"{command} ")],
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("arguments", ["run examples/weather", "check agent"])
@pytest.mark.parametrize(
    ("redirection", "status", "told"),
    [
        (">&-", Status.USAGE, "error: expected stdout to write to, found it closed. Fix: send it"),
        (">/dev/full", Status.FAILED, "error: expected stdout to take the output, found: No space"),
    ],
)
def test_output_that_cannot_be_written_is_told_in_words(
    arguments: str, redirection: str, status: Status, told: str
) -> None:
    """A closed or full stdout is the caller's affair: one line, no trace, no status 0."""
    done = shell(f"graphloop {arguments} {redirection}")

    assert done.returncode == status
    assert done.stderr.splitlines()[-1].startswith(told)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("options", ["", " --json"])
def test_a_reader_that_has_read_enough_leaves_a_run_that_can_be_resumed(
    options: str, tmp_path: Path
) -> None:
    """`| head -1` is no error, and the run waits for no answer: its driver is gone."""
    target = ROOT / "examples/weather"
    # This reader has gone before the run says anything.
    left = shell(f"graphloop run {target} 'And in NYC?' --store runs.db{options} | :", tmp_path)
    listed = json.loads(shell("graphloop runs --json --store runs.db", tmp_path).stdout)

    last = left.stderr.splitlines()[-1]
    run_id = listed["run_id"]
    assert last.startswith(f"interrupted: run {run_id} has no reader left. Go on with: graphloop ")
    assert "interrupted" == listed["status"]
    assert shell(last.partition("with: ")[2], tmp_path).returncode == Status.OK


def test_an_intended_error_is_told_without_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    """In one sentence, cleaned of what drives a terminal; a bug keeps its trace."""

    def fail(error: Exception) -> Status:
        raise error

    assert guarded(lambda: fail(ConfigError("a\x1b[31m"))) is Status.USAGE
    assert guarded(lambda: fail(StoreError("b"))) is Status.FAILED
    assert capsys.readouterr() == ("", "error: a[31m\nerror: b\n")
    with pytest.raises(KeyError):
        guarded(lambda: fail(KeyError("bug")))


@pytest.mark.usefixtures("pay_desk")
def test_the_store_can_be_named_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """By GRAPHLOOP_STORE."""
    run_id = parked()

    done = subprocess.run(
        [*COMMAND, "runs", "--json"],
        env={**environment(), "GRAPHLOOP_STORE": "runs.db"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert run_id == json.loads(done.stdout)["run_id"]


@pytest.mark.usefixtures("pay_desk")
def test_a_run_is_found_by_a_beginning_that_only_it_has() -> None:
    """What is near, or how to see them all, is told of another."""
    for name in ("abc1", "abc2"):
        here("fork", parked(), "--at", "1", "--as", name, "--store", "runs.db")

    assert here("replay", "abc1", "--store", "runs.db").returncode == Status.OK
    assert "found 2 whose ids begin so: abc1, abc2. Fix:" in refused(
        "replay", "abc", "--store", "runs.db"
    )
    unknown = refused("replay", "abd1", "--store", "runs.db")
    assert "Did you mean 'abc1'?" in unknown
    assert unknown.endswith("See all runs with: graphloop runs --all --store runs.db\n")


def test_a_store_that_is_not_there_is_not_made(desk: Path) -> None:
    """Nor is a folder of other files taken for one."""
    (desk / "other").mkdir()
    (desk / "other" / "notes.txt").write_text("", encoding="utf-8")
    (desk / "runs.db").write_bytes(b"")

    assert "Did you mean 'runs.db'?" in refused("runs", "--store", "run.db")
    assert "found a folder with other files in it" in refused("runs", "--store", "other")
    assert not (desk / "run.db").exists()
