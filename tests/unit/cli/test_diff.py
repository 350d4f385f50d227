"""`graphloop diff`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from tests.unit.cli.command_line import here, refused

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


@pytest.fixture
def graphs(desk: Path) -> Path:
    """Write a graph, and what it became."""
    (desk / "old.py").write_text(GRAPH % "gate", encoding="utf-8")
    (desk / "new.py").write_text(GRAPH % "execute", encoding="utf-8")
    return desk


def told(*options: str, status: Status = Status.FAILED) -> str:
    """Return what is told of the graph and what it became."""
    done = here("diff", "old.py", "new.py", *options)
    assert done.returncode == status, done.stderr
    return done.stdout


@pytest.mark.usefixtures("graphs")
def test_a_graph_that_got_weaker_is_status_1() -> None:
    """CI stops, and says why in one line."""
    assert "weaker: `execute` becomes reachable without `gate`" in told()
    assert json.loads(told("--json"))["weaker"] is True

    back = here("diff", "new.py", "old.py")
    assert back.returncode == Status.OK
    assert "stronger: GL2 at node 'execute' is mended" in back.stdout


def test_it_is_drawn_into_a_file(graphs: Path) -> None:
    """In either theme."""
    for theme in ("light", "dark"):
        told("-o", f"{theme}.dot", "--theme", theme)
    light, dark = ((graphs / f"{name}.dot").read_text("utf-8") for name in ("light", "dark"))

    assert "calls (was gate) [2]" in light
    assert "calls (was gate) [2]" in dark
    assert light != dark


@pytest.mark.usefixtures("graphs")
def test_a_rule_may_be_given() -> None:
    """Decided on both graphs, as `check` would decide it on each."""
    rule = "{never: execute, before: gate}"

    assert "the rule 'never execute before gate' can be broken" in told("--rule", rule)
    assert "the rule" not in told()
    assert "--rule" in refused("diff", "old.py", "new.py", "--rule", "{nev: execute}")
    assert "nosuch" in refused("diff", "old.py", "new.py", "--rule", "{never: nosuch}")


def test_a_picture_on_stdout_has_the_difference_beside_it(graphs: Path) -> None:
    """On stderr, so that the picture can be sent to a file."""
    done = here("diff", "old.py", "new.py", "-o", "-.dot")

    assert done.stdout.startswith("digraph")
    assert ": weaker\n" in done.stderr
    assert "--json and -o: expected one" in refused("diff", "old.py", "new.py", "-o-", "--json")
    assert "-o: expected a file" in refused("diff", "old.py", "new.py", "-o", "-.scxml")
    assert not [file for file in graphs.iterdir() if file.name.startswith("-")]


def test_temporal_rules_are_compared(desk: Path) -> None:
    """Those of an agent are among its options."""
    agent = """
from graphloop import Agent
from graphloop.rules import never

def build(model):
    return Agent(model, rules=never("execute", before="gate")%s)
"""
    (desk / "old.py").write_text(agent % "", encoding="utf-8")
    (desk / "new.py").write_text(agent % " & never('compact')", encoding="utf-8")

    new = told(status=Status.OK)
    assert "changed: the rule 'never compact' can be broken and is new" in new
    assert "weaker: the rule 'never compact' is removed" in here("diff", "new.py", "old.py").stdout
