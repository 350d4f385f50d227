"""`graphloop check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from tests.unit.cli.command_line import here, refused
from tests.unit.cli.terminal import Terminal

TABLE = """
from graphloop import END, Graph
from graphloop.nodes import PrepareStep
from graphloop.outcomes import Ready
prepare = PrepareStep()
other = PrepareStep("other")
graph = Graph("g", prepare, {prepare: %s, other: {...: END}})
"""
UNKNOWN = """
from graphloop import END, Graph
from graphloop.nodes import Child
from graphloop.outcomes import Done
child = Child("helper")
graph = Graph("g", child, {child: {...: END}})
"""
FILE = """
graphloop: 1
name: react
tools: [look_up]
start: prepare
nodes:
  prepare: {use: prepare_step}
  think: {use: model_call}
  gate: {use: gate}
  act: {use: execute}
  observe: {use: append}
  stop: {use: stop_check, max_steps: 8}
edges:
  prepare: {ready: think, calls: gate, else: END}
  think: {calls: gate, failed: END, else: observe}
  gate: {settled: act, aborted: observe}
  act: {else: observe}
  observe: {answered_calls: stop, resend: stop, else: END}
  stop: {go: prepare, else: END}
rules:
- {never: %s, before: think}
"""
REGISTERED = """
from graphloop.topology import Registry, load

own = Registry()

@own.tool
def look_up() -> str:
    "Look."
    return ""

graph = load("react.yaml", registry=own)
"""


def told(*arguments: str, status: Status = Status.OK) -> str:
    """Return what a check prints."""
    done = here("check", *arguments)
    assert done.returncode == status, done.stderr
    return done.stdout


def test_a_sound_graph_is_status_0() -> None:
    """CI goes on."""
    assert "no problem found" in told("agent")


def test_what_has_to_be_proven_is_a_failure_where_it_is_not(desk: Path) -> None:
    """CI can ask for more than that no fault is known; unknown is not told to be fine."""
    (desk / "own.py").write_text(UNKNOWN, encoding="utf-8")

    first = told("own.py").splitlines()[0]
    assert "graph 'g': nothing is proven, and no problem found" == first
    told("agent", "--proven", "GL2, GL3")
    told("agent", "--proven", "all")
    done = here("check", "own.py", "--json", "--proven", "GL2,GL4")
    assert done.returncode == Status.FAILED
    assert "--proven: expected GL2, GL4 to be proven, found no proof.\n" == done.stderr
    assert "GL99" in refused("check", "agent", "--proven", "GL99")


def test_a_picture_on_stdout_has_the_report_beside_it(desk: Path) -> None:
    """On stderr, so that the picture can be sent to a file; two of them go to no stdout."""
    done = here("check", "agent", "--draw", "-.txt")

    assert "├━━━ ready ━" in done.stdout
    assert "graph 'agent': " not in done.stdout
    assert "graph 'agent': " in done.stderr
    for other in (("--json",), ("--sarif", "-.sarif")):
        assert "found both. Fix:" in refused("check", "agent", *other, "--draw", "-.txt")
    for file in ("c.scxml", "/proc/c.svg", "-.png"):
        refused("check", "agent", "--draw", file)
    assert not list(desk.iterdir())


@pytest.mark.parametrize(("row", "code"), [("{...: END}", "GL1"), ("{Ready: other}", "GL5")])
def test_a_finding_is_status_1(row: str, code: str, desk: Path) -> None:
    """Whether it is a proof that fails or a table that cannot even be built."""
    (desk / "own.py").write_text(TABLE % row, encoding="utf-8")

    assert f"error {code} at " in told("own.py", status=Status.FAILED)
    report = json.loads(told("own.py", "--json", status=Status.FAILED))
    assert (report["ok"], report["graph"]) == (False, "g")
    assert code in {finding["code"] for finding in report["findings"]}


def test_the_tools_of_a_file_are_known_to_its_rules(desk: Path) -> None:
    """By the words that a run takes; a misspelt word is told, for only a run could bring it."""
    (desk / "react.py").write_text(REGISTERED, encoding="utf-8")
    for word in ("look_up", "'tool:look_up'"):
        (desk / "react.yaml").write_text(FILE % word, encoding="utf-8")
        assert "rule 'never tool:look_up before node:think'" in told("react.py")

    (desk / "react.yaml").write_text(FILE % "'tool:look_upp'", encoding="utf-8")
    assert "bring the tool 'look_upp'. Did you mean 'look_up'?" in told("react.py")


def test_the_rules_of_an_agent_are_checked(desk: Path) -> None:
    """What its runs keep can be proven, or not, like the rules of a file."""
    text = """
from graphloop import Agent, tool
from graphloop.rules import never
from graphloop.testing import ScriptedModel

@tool
def look_up() -> str:
    "Look."
    return ""

agent = Agent(ScriptedModel(["x"]), tools=[look_up], rules=never("look_up", before="model_call"))
"""
    (desk / "kept.py").write_text(text, encoding="utf-8")

    assert "rule 'never tool:look_up before node:model_call'" in told("kept.py")


def test_sarif_goes_to_a_file_or_to_standard_output(desk: Path) -> None:
    """A code host takes the file, a pipe the output."""
    assert "no problem found" in told("agent", "--sarif", "out.sarif")

    printed = json.loads(told("agent", "--sarif", "-.sarif"))
    assert printed == json.loads(told("agent", "--sarif", "-"))
    assert printed == json.loads((desk / "out.sarif").read_text(encoding="utf-8"))
    assert printed["version"] == "2.1.0"
    assert "cannot be written" in refused("check", "agent", "--sarif", "no/such.sarif")


def test_a_rule_may_be_given() -> None:
    """It is proven, or told with a way that breaks it."""
    assert "proven GL12" in told("agent", "--rule", "{never: execute, before: gate}")
    broken = told("agent", "--rule", "{never: execute}", status=Status.FAILED)
    assert "error GL12" in broken
    assert "--rule" in refused("check", "agent", "--rule", "{nev: execute}")


def test_a_narrow_terminal_breaks_lines_between_words(desk: Path) -> None:
    """A word that is broken in two is read twice."""
    with Terminal("check", "agent", cwd=desk, columns=40) as terminal:
        assert terminal.end() == Status.OK

    assert max(map(len, terminal.text.splitlines())) <= 40
    assert "a gate precedes each tool" in " ".join(terminal.text.split())
