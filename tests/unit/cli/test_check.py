"""`graphloop check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from tests.unit.cli.command_line import here, refused, shown, write
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
TOOL = """
def look_up() -> str:
    "Look."
    return ""
"""
REGISTERED = f"""
from graphloop.topology import Registry, load
own = Registry()
@own.tool{TOOL}
graph = load("react.yaml", registry=own)
"""
AGENT = f"""
from graphloop import Agent, tool
from graphloop.rules import never
from graphloop.testing import ScriptedModel
@tool{TOOL}
agent = Agent(ScriptedModel(["x"]), tools=[look_up], rules=never("look_up", before="model_call"))
"""


def test_a_sound_graph_is_status_0() -> None:
    assert "no problem found" in shown("check", "agent")


@pytest.mark.parametrize(("row", "code"), [("{...: END}", "GL1"), ("{Ready: other}", "GL5")])
@pytest.mark.usefixtures("desk")
def test_a_finding_is_status_1(row: str, code: str) -> None:
    """GL1 is a failed proof; with GL5, the table cannot even be built."""
    write({"own.py": TABLE % row})

    assert f"error {code} at " in shown("check", "own.py", status=Status.FAILED)
    report = json.loads(shown("check", "own.py", "--json", status=Status.FAILED))
    assert (report["ok"], report["graph"]) == (False, "g")
    assert code in {finding["code"] for finding in report["findings"]}


@pytest.mark.usefixtures("desk")
def test_a_property_that_must_be_proven_fails_if_unknown() -> None:
    write({"own.py": UNKNOWN})

    first = shown("check", "own.py").splitlines()[0]
    assert first == "graph 'g': nothing is proven, and no problem found"
    for codes in ("GL2, GL3", "all"):
        shown("check", "agent", "--proven", codes)
    done = here("check", "own.py", "--json", "--proven", "GL2,GL4")
    assert done.returncode == Status.FAILED
    assert done.stderr == "--proven: expected GL2, GL4 to be proven, found no proof.\n"
    assert "GL99" in refused("check", "agent", "--proven", "GL99")


def test_the_report_is_on_stderr_beside_a_picture_on_stdout(desk: Path) -> None:
    done = here("check", "agent", "--draw", "-.txt")

    assert "├━━━ ready ━" in done.stdout
    assert "graph 'agent': " not in done.stdout
    assert "graph 'agent': " in done.stderr
    for other in (("--json",), ("--sarif", "-.sarif")):
        assert "found both. Fix:" in refused("check", "agent", *other, "--draw", "-.txt")
    for file in ("c.scxml", "/proc/c.svg", "-.png"):
        refused("check", "agent", "--draw", file)
    assert not list(desk.iterdir())


@pytest.mark.usefixtures("desk")
def test_the_rules_of_files_and_agents_are_checked() -> None:
    """A rule may name a tool as a run does; a misspelt tool is reported."""
    write({"react.py": REGISTERED, "kept.py": AGENT})
    for word in ("look_up", "'tool:look_up'"):
        write({"react.yaml": FILE % word})
        assert "rule 'never tool:look_up before node:think'" in shown("check", "react.py")

    write({"react.yaml": FILE % "'tool:look_upp'"})
    assert "bring the tool 'look_upp'. Did you mean 'look_up'?" in shown("check", "react.py")
    assert "rule 'never tool:look_up before node:model_call'" in shown("check", "kept.py")


def test_a_rule_of_the_command_line_is_checked() -> None:
    assert "proven GL12" in shown("check", "agent", "--rule", "{never: execute, before: gate}")
    broken = shown("check", "agent", "--rule", "{never: execute}", status=Status.FAILED)
    assert "error GL12" in broken
    assert "--rule" in refused("check", "agent", "--rule", "{nev: execute}")


def test_sarif_goes_to_a_file_or_to_stdout(desk: Path) -> None:
    assert "no problem found" in shown("check", "agent", "--sarif", "out.sarif")

    printed = json.loads(shown("check", "agent", "--sarif", "-.sarif"))
    assert printed == json.loads(shown("check", "agent", "--sarif", "-"))
    assert printed == json.loads((desk / "out.sarif").read_text(encoding="utf-8"))
    assert printed["version"] == "2.1.0"
    assert "cannot be written" in refused("check", "agent", "--sarif", "no/such.sarif")


def test_a_narrow_terminal_breaks_lines_between_words(desk: Path) -> None:
    with Terminal("check", "agent", cwd=desk, columns=40) as terminal:
        assert terminal.end() == Status.OK

    assert max(map(len, terminal.text.splitlines())) <= 40
    assert "a gate comes before a tool" in " ".join(terminal.text.split())


def test_a_report_has_colours_on_a_terminal_only(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Colour repeats what the words say, and `NO_COLOR` turns it off (no-color.org)."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    with Terminal("check", "agent", cwd=desk, columns=44) as terminal:
        assert terminal.end() == Status.OK
        coloured, plain = terminal.raw, terminal.text
    monkeypatch.setenv("NO_COLOR", "1")
    with Terminal("check", "agent", cwd=desk, columns=44) as terminal:
        assert terminal.end() == Status.OK
        bare, words = terminal.raw, terminal.text

    assert "\x1b[1;32mgraph 'agent': no problem found" in coloured
    assert "\x1b[3" not in bare
    assert plain == words
    assert all(len(line) <= 44 for line in plain.splitlines())
    assert "\x1b" not in shown("check", "agent")
