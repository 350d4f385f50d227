"""`graphloop diff`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from tests.unit.cli.command_line import here, refused, shown, write

GRAPH = """
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
AGENT = """
from graphloop import Agent
from graphloop.rules import never

def build(model):
    return Agent(model, rules=never("execute", before="gate")%s)
"""


@pytest.fixture
def graphs(desk: Path) -> Path:
    """Write a graph with a gate, and the same graph without it."""
    write({"old.py": GRAPH % "gate", "new.py": GRAPH % "execute"})
    return desk


def differ(*options: str, status: Status = Status.FAILED) -> str:
    return shown("diff", "old.py", "new.py", *options, status=status)


@pytest.mark.usefixtures("graphs")
def test_a_weaker_graph_is_status_1() -> None:
    assert "weaker: `execute` becomes reachable without `gate`" in differ()
    assert json.loads(differ("--json"))["weaker"] is True
    back = shown("diff", "new.py", "old.py")
    assert "stronger: GL2 at node 'execute' is mended" in back


def test_a_comparison_is_drawn_in_both_themes(graphs: Path) -> None:
    for theme in ("light", "dark"):
        differ("-o", f"{theme}.dot", "--theme", theme)
    light, dark = ((graphs / f"{name}.dot").read_text("utf-8") for name in ("light", "dark"))

    assert "calls (was gate) [2]" in light
    assert "calls (was gate) [2]" in dark
    assert light != dark


@pytest.mark.usefixtures("graphs")
def test_a_rule_of_the_command_line_is_decided_on_both_graphs() -> None:
    rule = "{never: execute, before: gate}"

    assert "the rule 'never execute before gate' can be broken" in differ("--rule", rule)
    assert "the rule" not in differ()
    for wrong in ("{nev: execute}", "{never: nosuch}"):
        assert "rule" in refused("diff", "old.py", "new.py", "--rule", wrong)


def test_the_report_is_on_stderr_beside_a_picture_on_stdout(graphs: Path) -> None:
    done = here("diff", "old.py", "new.py", "-o", "-.dot")

    assert done.stdout.startswith("digraph")
    assert ": weaker\n" in done.stderr
    assert "--json and -o: expected one" in refused("diff", "old.py", "new.py", "-o-", "--json")
    assert "-o: expected a file" in refused("diff", "old.py", "new.py", "-o", "-.scxml")
    assert not [file for file in graphs.iterdir() if file.name.startswith("-")]


@pytest.mark.usefixtures("desk")
def test_the_temporal_rules_of_agents_are_compared() -> None:
    write({"old.py": AGENT % "", "new.py": AGENT % " & never('compact')"})

    added = differ(status=Status.OK)
    assert "changed: the rule 'never compact' can be broken and is new" in added
    assert "weaker: the rule 'never compact' is removed" in here("diff", "new.py", "old.py").stdout
