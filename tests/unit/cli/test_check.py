"""`graphloop check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphloop.cli.check import check
from graphloop.cli.status import Status
from graphloop.errors import ConfigError
from tests.unit.cli.command_line import called

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


UNKNOWN = """
from graphloop import END, Graph
from graphloop.nodes import Child
from graphloop.outcomes import Done
child = Child("helper")
graph = Graph("g", child, {child: {...: END}})
"""


def test_a_graph_of_which_nothing_is_proven_is_not_told_to_be_fine(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who reads the first line alone would take unknown for proven."""
    (desk / "own.py").write_text(UNKNOWN, encoding="utf-8")

    assert check("own.py", as_json=False) is Status.OK
    first = capsys.readouterr().out.splitlines()[0]
    assert "graph 'g': nothing is proven, and no problem found" == first


def test_what_has_to_be_proven_is_a_failure_where_it_is_not(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """CI can ask for more than that nothing is known to be wrong."""
    (desk / "own.py").write_text(UNKNOWN, encoding="utf-8")

    assert check("agent", as_json=False, proven="GL2, GL3") is Status.OK
    assert check("agent", as_json=False, proven="all") is Status.OK
    assert check("own.py", as_json=True, proven="GL2,GL4") is Status.FAILED
    told = capsys.readouterr().err
    assert "not proven, and --proven says that it has to be: GL2, GL4\n" == told
    with pytest.raises(ConfigError, match="GL99"):
        check("agent", as_json=False, proven="GL99")


def test_a_picture_on_stdout_has_the_report_beside_it(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr, so that the picture can be sent to a file; two of them go to no stdout."""
    assert check("agent", as_json=False, draw="-.txt") is Status.OK
    told = capsys.readouterr()

    assert "├━━━ ready ━" in told.out
    assert "graph 'agent': " not in told.out
    assert "graph 'agent': " in told.err
    for json_too, sarif in ((True, None), (False, "-.sarif")):
        with pytest.raises(ConfigError, match="and --draw would both be printed"):
            check("agent", as_json=json_too, sarif=sarif, draw="-.txt")
    assert not [one for one in desk.iterdir() if one.name.startswith("-")]


@pytest.mark.parametrize("file", ["c.scxml", "/proc/c.svg", "-.png"])
def test_a_picture_that_cannot_be_is_wrong_usage(file: str) -> None:
    """Status 1 would say that the graph is wrong."""
    with pytest.raises(ConfigError):
        check("agent", as_json=False, draw=file)


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
from graphloop import Registry, load

own = Registry()

@own.tool
def look_up() -> str:
    "Look."
    return ""

graph = load("react.yaml", registry=own)
"""


def test_the_tools_of_a_file_are_known_to_its_rules(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the words that a run takes; what is misspelt is told, for only a run could bring it."""
    file = desk / "react.yaml"
    (desk / "react.py").write_text(REGISTERED, encoding="utf-8")
    for word in ("look_up", "'tool:look_up'"):
        file.write_text(FILE % word, encoding="utf-8")
        assert check("react.py", as_json=False) is Status.OK
        assert "rule 'never tool:look_up before node:think'" in capsys.readouterr().out

    file.write_text(FILE % "'tool:look_upp'", encoding="utf-8")
    assert check("react.py", as_json=False) is Status.OK
    said = "A run has to bring the tool 'look_upp'. Did you mean 'look_up'?"
    assert said in capsys.readouterr().out


def test_the_rules_of_an_agent_are_checked(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What its runs keep can be proven, or not, like what stands in a file."""
    text = """
from graphloop import Agent, tool
from graphloop.temporal import never
from graphloop.testing import ScriptedModel

@tool
def look_up() -> str:
    "Look."
    return ""

agent = Agent(ScriptedModel(["x"]), tools=[look_up], rules=never("look_up", before="model_call"))
"""
    (desk / "kept.py").write_text(text, encoding="utf-8")

    assert check("kept.py", as_json=False) is Status.OK
    assert "rule 'never tool:look_up before node:model_call'" in capsys.readouterr().out


def test_sarif_goes_to_a_file_or_to_standard_output(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A code host takes the file, a pipe the output."""
    assert check("agent", as_json=False, sarif="out.sarif") is Status.OK
    assert "no problem found" in capsys.readouterr().out

    assert check("agent", as_json=False, sarif="-.sarif") is Status.OK
    printed = json.loads(capsys.readouterr().out)
    assert check("agent", as_json=False, sarif="-") is Status.OK
    assert printed == json.loads(capsys.readouterr().out)
    assert printed == json.loads((desk / "out.sarif").read_text(encoding="utf-8"))
    assert printed["version"] == "2.1.0"


def test_a_file_that_cannot_be_written_is_an_error(desk: Path) -> None:
    """Silence would be taken for a report."""
    with pytest.raises(ConfigError, match="cannot be written"):
        check("agent", as_json=False, sarif=str(desk / "no" / "such.sarif"))


def test_a_file_with_a_name_behind_it_is_told_as_what_was_meant(desk: Path) -> None:
    """`own.py:graph` is half a path and half a module."""
    (desk / "own.py").write_text(TABLE % "{...: other}", encoding="utf-8")

    with pytest.raises(ConfigError, match=r"own:graph, or own\.py for what it calls"):
        check("own.py:graph", as_json=False)


def test_a_function_that_takes_no_model_is_told_so(desk: Path) -> None:
    """Not by the TypeError of a call that nobody wrote."""
    (desk / "made.py").write_text("def factory(): ...\n", encoding="utf-8")

    with pytest.raises(ConfigError, match=r"`def factory\(model\)`; found factory\(\)"):
        check("made:factory", as_json=False)


def test_a_rule_may_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    """It is proven, or told with a way that breaks it."""
    assert check("agent", as_json=False, rules=["{never: execute, before: gate}"]) is Status.OK
    assert "proven GL12" in capsys.readouterr().out
    assert check("agent", as_json=False, rules=["{never: execute}"]) is Status.FAILED
    assert "error GL12" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="--rule 2"):
        check("agent", as_json=False, rules=["{never: execute}", " "])
    assert "--rule" in called("check", "agent", "--rule", "{nev: execute}").stderr
