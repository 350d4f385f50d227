"""`graphloop fuzz`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from graphloop.testing import fuzzing
from graphloop.testing.report import Coverage, FuzzReport
from tests.unit.cli.command_line import here, refused, shown, write

BROKEN = """
from tests.unit.testing.planted import BUGS
graph = BUGS["a tool that is run again"][1]()
"""
APPEND_RULE = ("--rule", "{never: 'node:append'}")


def test_a_sound_graph_is_status_0_with_its_coverage(desk: Path) -> None:
    report = shown("fuzz", "agent", "--seeds", "30", "--draw", "c.mmd")

    assert "30 seed(s) from 0 on, nothing found" in report
    assert "#40;30 runs#41;" in (desk / "c.mmd").read_text(encoding="utf-8")


@pytest.mark.usefixtures("desk")
def test_the_printed_command_of_a_failure_finds_it_again() -> None:
    write({"own.py": BROKEN})

    first = shown("fuzz", "own.py", status=Status.FAILED)
    token = first.partition("again: graphloop fuzz own.py --replay ")[2].split()[0]
    again = shown("fuzz", "own.py", "--replay", token, status=Status.FAILED)

    assert "asked for call c0." in first
    assert "asked for call c0." in again
    assert token in again


def test_the_report_is_on_stderr_beside_coverage_on_stdout(desk: Path) -> None:
    done = here("fuzz", "agent", "--seeds", "2", "--draw", "-.txt")

    assert "├━━━ ready " in done.stdout
    assert "2 seed(s)" in done.stderr
    assert "2 seed(s)" not in done.stdout
    mixed = refused("fuzz", "agent", "--seeds", "2", "--draw", "-.txt", "--json")
    assert "--json and --draw: expected one" in mixed
    for file in ("c.scxml", "/proc/c.svg"):
        assert "--draw" in refused("fuzz", "agent", "--seeds", "3", "--draw", file)
    assert not list(desk.iterdir())


@pytest.mark.usefixtures("desk")
def test_options_reach_the_search_and_the_printed_command() -> None:
    write({"own.py": BROKEN})
    options = (*APPEND_RULE, "--events", "50")

    text = shown("fuzz", "own.py", "--seed", "7", *options, "--json", status=Status.FAILED)

    report = json.loads(text)
    codes = {violation["code"] for run in report["failing"] for violation in run["violations"]}
    assert (report["seeds"], report["first_seed"], codes) == (1, 7, {"rule"})
    command = "own.py --rule '{never: '\"'\"'node:append'\"'\"'}' --events 50 --replay"
    assert command in shown("fuzz", "own.py", *options, status=Status.FAILED)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--replay", "f1-x", "--seeds", "3"), "no effect beside --replay"),
        (("--replay", "f1-x"), "xpected a token"),
        (("--rule", "{never: a}", "--rule", "{at_most: b}"), "--rule 2:1:1: rule 2: `at_most`"),
        (("--rule", "{never: no}"), "no node, outcome or tool 'no'"),
    ],
)
def test_options_that_cannot_work_are_refused(options: tuple[str, ...], message: str) -> None:
    assert message in refused("fuzz", "agent", *options)


@pytest.mark.usefixtures("desk")
def test_a_replay_without_its_rules_is_refused() -> None:
    found = shown("fuzz", "agent", "--seeds", "20", *APPEND_RULE, status=Status.FAILED)
    token = found.partition("--replay ")[2].split()[0]

    shown("fuzz", "agent", "--replay", token, *APPEND_RULE, status=Status.FAILED)
    other = here("fuzz", "agent", "--replay", token)
    assert other.returncode == Status.USAGE
    assert "made with other rules" in other.stderr


def test_an_interrupted_search_is_status_130(monkeypatch: pytest.MonkeyPatch) -> None:
    report = FuzzReport("g", 3, 0, (), 0, Coverage(), interrupted=True)

    def interrupted(*_: object, **__: object) -> FuzzReport:
        return report

    monkeypatch.setattr(fuzzing, "fuzz", interrupted)

    found = shown("fuzz", "agent", status=Status.INTERRUPTED)

    assert "interrupted after 3 seed(s)" in found
