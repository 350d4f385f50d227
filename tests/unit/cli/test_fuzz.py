"""`graphloop fuzz`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from graphloop.cli import fuzz as command
from graphloop.cli.fuzz import fuzz
from graphloop.cli.request import FuzzRequest
from graphloop.cli.status import Status
from graphloop.errors import ConfigError
from graphloop.fuzz import fuzzing
from graphloop.fuzz.report import Coverage, FuzzReport
from tests.unit.cli.command_line import called

BROKEN = """
from tests.unit.fuzz.planted import BUGS
graph = BUGS["a tool that is run again"][1]()
"""


def test_a_sound_graph_is_status_0_and_its_coverage_is_drawn(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """CI goes on, and somebody looks at the picture."""
    assert Status.OK is fuzz(FuzzRequest(target="agent", seeds=30, draw="c.mmd"))

    assert "30 seed(s) from 0 on, nothing found" in capsys.readouterr().out
    assert "#40;30 runs#41;" in (desk / "c.mmd").read_text(encoding="utf-8")


@pytest.mark.parametrize("file", ["c.scxml", "/proc/c.svg"])
def test_a_picture_that_cannot_be_is_wrong_usage(file: str) -> None:
    """Status 1 would say that a run did what it must not."""
    with pytest.raises(ConfigError, match="--draw"):
        fuzz(FuzzRequest(target="agent", seeds=3, draw=file))


def test_a_failure_is_status_1_and_its_command_brings_it_back(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command is printed to be copied."""
    (desk / "own.py").write_text(BROKEN, encoding="utf-8")

    assert Status.FAILED is fuzz(FuzzRequest(target="own.py"))
    text = capsys.readouterr().out
    token = text.partition("again: graphloop fuzz own.py --replay ")[2].split()[0]
    assert Status.FAILED is fuzz(FuzzRequest(target="own.py", replay=token))
    again = capsys.readouterr().out

    assert "wished for call c0." in text
    assert "wished for call c0." in again
    assert token in again


def test_the_coverage_is_printed_beside_the_report(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report goes to stderr then, and there is no JSON among it."""
    request = FuzzRequest(target="agent", seeds=2, draw="-.txt")
    fuzz(request)
    told = capsys.readouterr()

    assert "├━━━ ready " in told.out
    assert "2 seed(s)" in told.err
    assert "2 seed(s)" not in told.out
    with pytest.raises(ConfigError, match="--json and --draw would both"):
        fuzz(replace(request, as_json=True))
    assert not [one for one in desk.iterdir() if one.name.startswith("-")]


def test_options_reach_the_search(desk: Path) -> None:
    """Each of them, through the command line itself."""
    (desk / "own.py").write_text(BROKEN, encoding="utf-8")
    rule = "{never: 'node:append'}"

    done = called(
        *("fuzz", "own.py", "--seed", "7", "--rule", rule, "--events", "50", "--json"), cwd=desk
    )

    report = json.loads(done.stdout)
    assert (1, 1, 7) == (done.returncode, report["seeds"], report["first_seed"])
    assert {"rule"} == {one["code"] for each in report["failing"] for one in each["violations"]}
    text = called("fuzz", "own.py", "--rule", rule, "--events", "50", cwd=desk).stdout
    assert "own.py --rule '{never: '\"'\"'node:append'\"'\"'}' --events 50 --replay" in text


@pytest.mark.parametrize(
    ("request_", "found"),
    [
        (FuzzRequest(target=""), "TARGET"),
        (FuzzRequest(target="agent", replay="f1-x", seeds=3), "no effect beside --replay"),
        (FuzzRequest(target="agent", replay="f1-x"), "expected a token"),
        (FuzzRequest(target="agent", rules=("{never:",)), "--rule:1:.*this is no YAML"),
        (FuzzRequest(target="agent", rules=("{never: a, never: b}",)), "'never' stands here twice"),
        (FuzzRequest(target="agent", rules=("{at_most: a, times: 010}",)), "leading zeros"),
        (FuzzRequest(target="agent", rules=("&x {never: a}",)), "an anchor"),
        (
            FuzzRequest(target="agent", rules=("{never: a}", "{at_most: b}")),
            "--rule 2:1:1: rule 2: `at_most` needs the key 'times'",
        ),
        (FuzzRequest(target="agent", rules=("{newer: x}",)), "did you mean 'never'"),
        (FuzzRequest(target="agent", rules=("{never: nowhere}",)), "no node, outcome or tool"),
    ],
)
def test_what_cannot_work_is_refused(request_: FuzzRequest, found: str) -> None:
    """Before anything is run, with what to do."""
    with pytest.raises(ConfigError, match=r"(?i)" + found):
        fuzz(request_)


def test_a_word_of_a_rule_means_what_it_means_in_a_file(desk: Path) -> None:
    """YAML 1.1 reads `no` as false; a file of a topology does not."""
    (desk / "own.py").write_text(BROKEN.replace("graph =", "made ="), encoding="utf-8")
    (desk / "own.py").write_text(BROKEN, encoding="utf-8")

    with pytest.raises(ConfigError, match="no node, outcome or tool 'no'"):
        fuzz(FuzzRequest(target="own.py", rules=("{never: no}",)))


def test_a_replay_with_other_rules_is_no_success(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody has copied half of the command."""
    rule = "{never: 'node:append'}"
    assert Status.FAILED is fuzz(FuzzRequest(target="agent", rules=(rule,), seeds=20))
    token = capsys.readouterr().out.partition("--replay ")[2].split()[0]

    assert Status.FAILED is fuzz(FuzzRequest(target="agent", rules=(rule,), replay=token))
    with pytest.raises(ConfigError, match="made with other rules"):
        fuzz(FuzzRequest(target="agent", replay=token))


def test_an_interrupted_search_is_status_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was found so far is printed all the same."""
    report = FuzzReport("g", 3, 0, (), 0, Coverage(), interrupted=True)

    def interrupted(*_: object, **__: object) -> FuzzReport:
        return report

    monkeypatch.setattr(fuzzing, "fuzz", interrupted)

    assert Status.INTERRUPTED is command.fuzz(FuzzRequest(target="agent"))
    assert "interrupted after 3 seed(s)" in capsys.readouterr().out
