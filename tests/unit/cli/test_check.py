"""`graphloop check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphloop.cli.check import check
from graphloop.cli.status import Status
from graphloop.errors import ConfigError

TABLE = """
from graphloop import END, Graph
from graphloop.nodes import PrepareStep
from graphloop.outcomes import Ready
prepare = PrepareStep()
other = PrepareStep("other")
graph = Graph("g", prepare, {prepare: %s, other: {...: END}})
"""


def test_a_sound_graph_is_status_0(capsys: pytest.CaptureFixture[str]) -> None:
    """CI goes on."""
    assert check("agent", as_json=False) is Status.OK
    assert "no problem found" in capsys.readouterr().out


@pytest.mark.parametrize(("row", "code"), [("{...: END}", "GL1"), ("{Ready: other}", "GL5")])
def test_a_finding_is_status_1(
    row: str, code: str, desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether it is a proof that fails or a table that cannot even be built."""
    (desk / "own.py").write_text(TABLE % row, encoding="utf-8")

    assert check("own.py", as_json=False) is Status.FAILED
    assert f"error {code} at " in capsys.readouterr().out

    assert check("own.py", as_json=True) is Status.FAILED
    report = json.loads(capsys.readouterr().out)
    assert (report["ok"], report["graph"]) == (False, "g")
    assert code in {one["code"] for one in report["findings"]}


def test_sarif_goes_to_a_file_or_to_standard_output(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A code host takes the file, a pipe the output."""
    assert check("agent", as_json=False, sarif="out.sarif") is Status.OK
    assert "no problem found" in capsys.readouterr().out

    assert check("agent", as_json=False, sarif="-") is Status.OK
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((desk / "out.sarif").read_text(encoding="utf-8"))
    assert printed["version"] == "2.1.0"


def test_a_file_that_cannot_be_written_is_an_error(desk: Path) -> None:
    """Silence would be taken for a report."""
    with pytest.raises(ConfigError, match="cannot be written"):
        check("agent", as_json=False, sarif=str(desk / "no" / "such.sarif"))
