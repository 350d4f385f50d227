"""`graphloop check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphloop.cli.check import check
from graphloop.cli.status import Status

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
    assert {one["code"] for one in report["findings"]} == {code}
