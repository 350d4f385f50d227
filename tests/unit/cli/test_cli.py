"""All commands: help, hints, exit statuses, and a stdout that may fail."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from graphloop.cli.errors import Status, guarded
from graphloop.cli.mcp import COMMANDS as MCP_COMMANDS
from graphloop.errors import ConfigError, StoreError
from tests.unit.cli.command_line import (
    COMMAND,
    ROOT,
    STORE,
    called,
    environment,
    graphloop,
    refused,
    shown,
)
from tests.unit.cli.pay_desk import parked

HEAVY = ("rich", "yaml", "httpx", "fpdf", "graphloop.agent.agent")
FIRST = ("run", "draw", "check", "diff", "fuzz", "schema")
LATER = ("resume", "replay", "fork", "watch", "otel")
COMMANDS = (
    *FIRST,
    "models",
    "runs",
    "approve",
    *LATER,
    "worker",
    "submit",
    "steer",
    "cancel",
    "doctor",
    "prune",
    "mcp",
    "init",
)
OF_MCP = tuple(f"mcp {command}" for command in MCP_COMMANDS)
LOADING = (*FIRST, *LATER, "worker", "submit", *OF_MCP)


@pytest.mark.parametrize("columns", ["44", "80"])
@pytest.mark.parametrize("command", [*COMMANDS, *OF_MCP])
def test_help_has_an_example_and_says_what_is_executed(
    command: str, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("TERMINAL_WIDTH", columns)

    done = called(*command.split(), "--help")

    assert done.returncode == Status.OK
    options = done.stdout.partition("\nOptions:\n")[2]
    assert max(map(len, options.splitlines())) <= int(columns)
    assert f"\n    graphloop {command} " in done.stdout
    assert ("executed" in done.stdout) == (command in LOADING)


def test_help_lists_the_commands() -> None:
    commands = called("--help").stdout.partition("Commands:\n")[2].splitlines()

    assert tuple(line.split()[0] for line in commands) == COMMANDS
    group = called("mcp", "--help").stdout.partition("Commands:\n")[2].splitlines()
    assert tuple(line.split()[0] for line in group) == tuple(MCP_COMMANDS)
    assert called("--version").stdout.startswith("graphloop ")


@pytest.mark.parametrize("command", ["run", "resume"])
def test_every_exit_status_is_documented(command: str) -> None:
    help_text = called(command, "--help").stdout.partition("Exit status:")[2].split()

    assert {str(int(status)) for status in Status} <= set(help_text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rum", "x"), "Did you mean 'run'"),
        (("resum", "r"), "'resume'?"),
        (("run", "x y", "--modle", "m"), "--model"),
        (("approve", "r", "--denny"), "--deny"),
        (("run", "a b", "--approve", "maybe"), "ask"),
        (("run", "a b", "--max-steps", "many"), "--max-steps"),
        (("mcp", "lits"), "Did you mean 'list'"),
        (("mcp", "pin", "https://x", "--heder", "a=b"), "--header"),
        (("fork", "r", "--store", "x"), "--at"),
        (("draw", "agent", "--theme", "blue"), "light"),
        (("draw", "agent", "--level", "near"), "phase"),
        (("draw", "agent", "-o", "loop.bmp"), "expected a picture, which ends in"),
        (("check", "exmples/x"), "Did you mean 'examples'?"),
        (("runs", "--status", "park", "--store", "x"), "Did you mean 'parked'?"),
        (("runs",), "error: --store: expected a store to look into, found none. Fix: name it"),
    ],
)
def test_a_typing_error_gets_a_hint_and_status_2(arguments: tuple[str, ...], message: str) -> None:
    done = called(*arguments)

    assert (done.returncode, done.stdout) == (Status.USAGE, "")
    assert message in done.stderr


@pytest.mark.parametrize(
    ("arguments", "blank"),
    [
        (("run", "", "--model", " "), "FILE_OR_PROMPT and --model: "),
        (("check", "agent", "--rule", "{never: a}", "--rule", ""), "--rule: "),
        (("fork", "r", "--at", "1", "--as", "", "--store", "x"), "--as: "),
        (("draw", "", "-o", ""), "TARGET and -o: "),
    ],
)
def test_blank_arguments_are_refused_together(arguments: tuple[str, ...], blank: str) -> None:
    """An unset shell variable would mean another run."""
    assert refused(*arguments).startswith(f"error: {blank}expected text")


def test_help_imports_no_heavy_package() -> None:
    code = (
        "import sys\nsys.argv = ['graphloop', '--help']\nfrom graphloop.cli import main\n"
        f"try: main()\nexcept SystemExit: print(set(sys.modules) & set({HEAVY!r}))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )

    assert done.stdout.endswith("set()\n")


def shell(line: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a line with `graphloop` in a shell."""
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


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("check agent >&-", Status.USAGE, "expected a place to write to, found it closed."),
        ("run examples/weather >/dev/full", Status.FAILED, "expected it to take the output, found"),
    ],
)
def test_an_unwritable_stdout_is_an_error_without_traceback(
    line: str, status: Status, message: str
) -> None:
    done = shell(f"graphloop {line}")

    assert done.returncode == status
    assert done.stderr.splitlines()[-1].startswith(f"error: stdout: {message}")
    assert "Traceback" not in done.stderr


def test_a_run_whose_reader_has_gone_can_be_resumed(tmp_path: Path) -> None:
    target = ROOT / "examples/weather"
    # This reader is gone before the run writes.
    left = shell(f"graphloop run {target} 'And in NYC?' --store runs.db | :", tmp_path)
    listed = json.loads(called("runs", "--json", *STORE, cwd=tmp_path).stdout)

    last = left.stderr.splitlines()[-1]
    run_id = listed["run_id"]
    assert last.startswith(f"interrupted: run {run_id} has no reader left. Go on with: graphloop ")
    assert listed["status"] == "interrupted"
    resume = shlex.split(last.partition("with: graphloop ")[2])
    assert called(*resume, cwd=tmp_path).returncode == Status.OK


def test_only_a_bug_has_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """The message of an error has no control characters."""

    def fail(error: Exception) -> Status:
        raise error

    assert guarded(lambda: fail(ConfigError("a\x1b[31m"))) is Status.USAGE
    assert guarded(lambda: fail(StoreError("b"))) is Status.FAILED
    assert capsys.readouterr() == ("", "error: a[31m\nerror: b\n")
    with pytest.raises(KeyError):
        guarded(lambda: fail(KeyError("bug")))


@pytest.mark.usefixtures("pay_desk")
def test_the_environment_can_name_the_store() -> None:
    run_id = parked()

    named = {"GRAPHLOOP_STORE": "runs.db"}
    done = graphloop("runs", "--json", cwd=Path.cwd(), variables=named)

    assert run_id == json.loads(done.stdout)["run_id"]


@pytest.mark.usefixtures("pay_desk")
def test_a_run_is_found_by_the_beginning_of_its_id() -> None:
    for name in ("abc1", "abc2"):
        shown("fork", parked(), "--at", "1", "--as", name, *STORE)

    shown("replay", "abc1", *STORE)
    assert "found 2 whose ids begin so: abc1, abc2. Fix:" in refused("replay", "abc", *STORE)
    unknown = refused("replay", "abd1", *STORE)
    assert "Did you mean 'abc1'?" in unknown
    assert unknown.endswith("See all runs with: graphloop runs --all --store runs.db\n")


def test_a_missing_store_is_not_created(desk: Path) -> None:
    (desk / "other").mkdir()
    (desk / "other" / "notes.txt").write_text("", encoding="utf-8")
    (desk / "runs.db").write_bytes(b"")

    assert "Did you mean 'runs.db'?" in refused("runs", "--store", "run.db")
    assert "found a folder with other files in it" in refused("runs", "--store", "other")
    assert not (desk / "run.db").exists()


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        *[("wat", "watch"), ("run --max-st", "--max-steps"), ("diff --th", "--theme")],
        *[("mcp cal", "call"), ("mcp pin --out", "--output")],
    ],
)
def test_a_shell_completes_commands_and_their_options(typed: str, offered: str) -> None:
    """The options of a command are known although its module is loaded on its call."""
    words = f"graphloop {typed}"
    done = graphloop(
        variables={
            "_GRAPHLOOP_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        },
    )

    assert done.stdout.split() == [offered]
