"""`graphloop diff`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphloop.cli.diff import diff
from graphloop.cli.status import Status
from graphloop.errors import ConfigError

GRAPH = """
from graphloop.graph import Graph
from graphloop.loop import Standard, standard_edges
from graphloop.outcomes import Calls

nodes = Standard()
table = {node: dict(row) for node, row in standard_edges(nodes).items()}
table[nodes.model][Calls] = nodes.%s
from graphloop import Graph
from graphloop.topology import registry

@registry.tool
async def pay() -> str:
    "Pay."
    return "paid"

graph = Graph("agent", nodes.prepare, table)
"""


@pytest.fixture
def graphs(desk: Path) -> Path:
    """Write a graph, and what it became."""
    (desk / "old.py").write_text(GRAPH % "gate", encoding="utf-8")
    (desk / "new.py").write_text(GRAPH % "execute", encoding="utf-8")
    return desk


@pytest.mark.usefixtures("graphs")
def test_a_graph_that_got_weaker_is_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    """CI stops, and says why in one line."""
    assert diff("old.py", "new.py", theme="light") is Status.FAILED
    assert "weaker: `execute` becomes reachable without `gate`" in capsys.readouterr().out

    assert diff("new.py", "old.py", theme="light") is Status.OK
    assert "stronger: `execute` is reached only after `gate`" in capsys.readouterr().out


@pytest.mark.usefixtures("graphs")
def test_it_is_told_as_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    """For a bot that comments on reviews."""
    assert diff("old.py", "new.py", as_json=True, theme="light") is Status.FAILED
    assert json.loads(capsys.readouterr().out)["weaker"] is True


def test_it_is_drawn_into_a_file(graphs: Path) -> None:
    """In either theme."""
    diff("old.py", "new.py", output="light.dot", theme="light")
    diff("old.py", "new.py", output="dark.dot", theme="dark")
    light, dark = ((graphs / f"{one}.dot").read_text(encoding="utf-8") for one in ("light", "dark"))

    assert "calls (was gate) [2]" in light
    assert "calls (was gate) [2]" in dark
    assert light != dark


@pytest.mark.usefixtures("graphs")
def test_what_cannot_work_is_refused() -> None:
    """Before anything is loaded."""
    with pytest.raises(ConfigError, match="light or dark, found 'drak'"):
        diff("old.py", "new.py", theme="drak")
    with pytest.raises(ConfigError, match="AFTER"):
        diff("old.py", " ", theme="light")


def test_temporal_rules_are_compared(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of an agent are among its options."""
    agent = """
from graphloop import Agent
from graphloop.temporal import never

def build(model):
    return Agent(model, rules=never("execute", before="gate")%s)
"""
    (desk / "one.py").write_text(agent % "", encoding="utf-8")
    (desk / "two.py").write_text(agent % " & never('compact')", encoding="utf-8")

    assert diff("one.py", "two.py", theme="light") is Status.OK
    assert "changed: the rule 'never compact' is new, and can be broken" in capsys.readouterr().out
    diff("two.py", "one.py", theme="light")
    assert "- rule never compact" in capsys.readouterr().out
