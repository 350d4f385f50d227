"""`graphloop diff`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphloop.cli.diff import diff
from graphloop.cli.status import Status
from graphloop.errors import ConfigError
from tests.unit.cli.command_line import called

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
    assert "stronger: GL2 at node 'execute' is mended" in capsys.readouterr().out


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


def test_a_rule_may_be_given(graphs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Decided on both graphs, as `check` would decide it on each."""
    rule = "{never: execute, before: gate}"
    diff("old.py", "new.py", rules=[rule])
    told = capsys.readouterr().out

    assert "the rule 'never execute before gate' can be broken" in told
    diff("old.py", "new.py")
    assert "the rule" not in capsys.readouterr().out
    with pytest.raises(ConfigError, match="--rule"):
        diff("old.py", "new.py", rules=["{nev: execute}"])
    with pytest.raises(ConfigError, match="--rule 2"):
        diff("old.py", "new.py", rules=[rule, " "])
    shown = called("diff", "old.py", "new.py", "--rule", rule, cwd=graphs)
    assert "never execute before gate" in shown.stdout


@pytest.mark.usefixtures("graphs")
def test_a_rule_that_means_nothing_in_either_graph_is_refused() -> None:
    """It would guard nothing, and every change would pass."""
    with pytest.raises(ConfigError, match="nosuch"):
        diff("old.py", "new.py", theme="light", rules=["{never: nosuch}"])


def test_a_picture_on_stdout_has_the_difference_beside_it(
    graphs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr, so that the picture can be sent to a file."""
    assert diff("old.py", "new.py", output="-.dot") is Status.FAILED
    told = capsys.readouterr()

    assert told.out.startswith("digraph")
    assert ": weaker\n" in told.err
    with pytest.raises(ConfigError, match="--json and -o would both"):
        diff("old.py", "new.py", output="-", as_json=True)
    with pytest.raises(ConfigError, match="-o to name a file"):
        diff("old.py", "new.py", output="-.scxml")
    assert not [one for one in graphs.iterdir() if one.name.startswith("-")]


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
    assert "changed: the rule 'never compact' can be broken and is new" in capsys.readouterr().out
    assert diff("two.py", "one.py", theme="light") is Status.FAILED
    assert "weaker: the rule 'never compact' is removed" in capsys.readouterr().out
