"""Where a table was written: a line of a file of data, or that of the call in a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop import Agent
from graphloop.graph import NodeGraph
from graphloop.proofs.checking import check
from graphloop.proofs.proof_graph import ProofGraph
from graphloop.proofs.sarif import to_sarif
from graphloop.testing import ScriptedModel
from graphloop.topology import load
from tests.graphs import build

YAML = """\
graphloop: 1
name: chatty
start: model_call
nodes:
  model_call: {use: model_call}
  append: {use: append}
edges:
  model_call:
    answered: append
    else: END
  append: {resend: model_call, else: END}
"""


def test_where_a_table_was_written_is_no_part_of_what_it_says() -> None:
    """Equal tables are equal graphs."""
    one, other = build({"a": ["END"]}), build({"a": ["END"]})
    other.source = None

    assert one == other
    assert hash(one) == hash(other)


def line_of(text: str) -> int:
    """Return the line of this file that begins with a text."""
    rows = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, row in enumerate(rows, 1) if row.strip().startswith(text))


def test_an_agent_was_written_where_it_was_made() -> None:
    """Its table is the library's."""
    agent = Agent(ScriptedModel(()))

    written = ProofGraph(agent.graph).line_of("gate") or ""
    assert written.endswith(f"test_table_source.py:{line_of('agent = A')}")


def test_a_program_that_is_typed_in_has_no_line() -> None:
    """An editor has no file to open."""
    names: dict[str, NodeGraph[None]] = {}
    code = "from tests.graphs import build\nfrom graphloop import Agent\n"
    code += "from graphloop.testing import ScriptedModel\ngraph = Agent(ScriptedModel(())).graph"
    exec(compile(code, "<typed in>", "exec"), names)  # noqa: S102 - a program of this test.

    assert names["graph"].source is None
    assert ProofGraph(names["graph"]).line_of("append") is None


def test_findings_name_their_line(tmp_path: Path) -> None:
    """In text, and where an editor shows them."""
    (tmp_path / "desk.yaml").write_text(YAML, encoding="utf-8")
    report = check(load(tmp_path / "desk.yaml"))

    assert report.findings
    assert all("desk.yaml:" in (one.written or "") for one in report.findings)
    assert "desk.yaml:8\n" in str(report)
    assert '"startLine": 8' in to_sarif([report])


def test_a_directory_that_is_gone_shortens_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that stands in it still hears what is wrong."""
    (tmp_path / "desk.yaml").write_text(YAML, encoding="utf-8")
    graph = load(tmp_path / "desk.yaml")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert (ProofGraph(graph).line_of("append") or "").startswith(tmp_path.as_posix())
