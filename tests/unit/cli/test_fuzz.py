"""`graphloop fuzz`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from graphloop.testing import fuzzing
from graphloop.testing.report import Coverage, FuzzReport
from tests.unit.cli.command_line import here, refused

BROKEN = """
from tests.unit.testing.planted import BUGS
graph = BUGS["a tool that is run again"][1]()
"""


def test_a_sound_graph_is_status_0_and_its_coverage_is_drawn(desk: Path) -> None:
    """CI goes on, and a person looks at the picture."""
    done = here("fuzz", "agent", "--seeds", "30", "--draw", "c.mmd")

    assert done.returncode == Status.OK
    assert "30 seed(s) from 0 on, nothing found" in done.stdout
    assert "#40;30 runs#41;" in (desk / "c.mmd").read_text(encoding="utf-8")


def test_a_failure_is_status_1_and_its_command_brings_it_back(desk: Path) -> None:
    """The command is printed to be copied."""
    (desk / "own.py").write_text(BROKEN, encoding="utf-8")

    done = here("fuzz", "own.py")
    token = done.stdout.partition("again: graphloop fuzz own.py --replay ")[2].split()[0]
    again = here("fuzz", "own.py", "--replay", token)

    assert done.returncode == again.returncode == Status.FAILED
    assert "asked for call c0." in done.stdout
    assert "asked for call c0." in again.stdout
    assert token in again.stdout


def test_the_coverage_is_printed_beside_the_report(desk: Path) -> None:
    """The report goes to stderr then, and there is no JSON among it."""
    done = here("fuzz", "agent", "--seeds", "2", "--draw", "-.txt")

    assert "├━━━ ready " in done.stdout
    assert "2 seed(s)" in done.stderr
    assert "2 seed(s)" not in done.stdout
    mixed = refused("fuzz", "agent", "--seeds", "2", "--draw", "-.txt", "--json")
    assert "--json and --draw: expected one" in mixed
    for file in ("c.scxml", "/proc/c.svg"):
        assert "--draw" in refused("fuzz", "agent", "--seeds", "3", "--draw", file)
    assert not list(desk.iterdir())


def test_options_reach_the_search(desk: Path) -> None:
    """And stand in the command that brings a failure back."""
    (desk / "own.py").write_text(BROKEN, encoding="utf-8")
    given = ("--rule", "{never: 'node:append'}", "--events", "50")

    done = here("fuzz", "own.py", "--seed", "7", *given, "--json")

    report = json.loads(done.stdout)
    assert (1, 1, 7) == (done.returncode, report["seeds"], report["first_seed"])
    assert {"rule"} == {one["code"] for each in report["failing"] for one in each["violations"]}
    text = here("fuzz", "own.py", *given).stdout
    assert "own.py --rule '{never: '\"'\"'node:append'\"'\"'}' --events 50 --replay" in text


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--replay", "f1-x", "--seeds", "3"), "no effect beside --replay"),
        (("--replay", "f1-x"), "xpected a token"),
        (("--rule", "{never: a}", "--rule", "{at_most: b}"), "--rule 2:1:1: rule 2: `at_most`"),
        (("--rule", "{never: no}"), "no node, outcome or tool 'no'"),
    ],
)
def test_what_cannot_work_is_refused(options: tuple[str, ...], found: str) -> None:
    """Before anything is run, with what to do; a word means what it means in a file."""
    assert found in refused("fuzz", "agent", *options)


@pytest.mark.usefixtures("desk")
def test_a_replay_with_other_rules_is_no_success() -> None:
    """Half of the command was copied."""
    rule = ("--rule", "{never: 'node:append'}")
    found = here("fuzz", "agent", "--seeds", "20", *rule).stdout
    token = found.partition("--replay ")[2].split()[0]

    assert here("fuzz", "agent", "--replay", token, *rule).returncode == Status.FAILED
    other = here("fuzz", "agent", "--replay", token)
    assert other.returncode == Status.USAGE
    assert "made with other rules" in other.stderr


def test_an_interrupted_search_is_status_130(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found so far is printed all the same."""
    report = FuzzReport("g", 3, 0, (), 0, Coverage(), interrupted=True)

    def interrupted(*_: object, **__: object) -> FuzzReport:
        return report

    monkeypatch.setattr(fuzzing, "fuzz", interrupted)

    done = here("fuzz", "agent")

    assert done.returncode == Status.INTERRUPTED
    assert "interrupted after 3 seed(s)" in done.stdout
