"""`graphloop draw`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphloop import Agent, agent_tool
from graphloop.agent import Tools
from graphloop.agent.graph import Graph
from graphloop.cli.draw import graph_with_tools
from graphloop.cli.errors import Status
from graphloop.cli.target import Loop
from graphloop.graph import END, NodeGraph
from graphloop.nodes import Append
from graphloop.outcomes import Answered
from graphloop.own_nodes import sub_graph
from graphloop.testing import ScriptedModel
from graphloop.topology.agents import with_agents
from graphloop.topology.loaded import load
from graphloop.views.levels import child_graphs
from tests.unit.cli.command_line import ROOT, STORE, here, printed, refused, shown, write
from tests.unit.cli.pay_desk import TEAM, parked, run_ids
from tests.unit.cli.terminal import Terminal
from tests.unit.topology.test_with_agents import CHAIN, REPLY

MAGIC = {"svg": b"<svg", "png": b"\x89PNG", "mmd": b"flowchart", "dot": b"digraph", "txt": b"start"}


def drawn(*arguments: str) -> str:
    """Return what a command without warnings prints."""
    done = here("draw", *arguments)
    assert (done.returncode, done.stderr) == (Status.OK, "")
    return done.stdout


@pytest.mark.parametrize("suffix", MAGIC)
def test_a_file_is_drawn_by_its_suffix(suffix: str, desk: Path) -> None:
    report = drawn("agent", "-o", f"loop.{suffix}")

    assert MAGIC[suffix] in (desk / f"loop.{suffix}").read_bytes()
    assert report.startswith(f"loop.{suffix}: graph 'agent', 9 nodes, ")


@pytest.mark.parametrize("suffix", ["mmd", "dot", "txt", "svg", "scxml", "xstate.json"])
def test_every_text_notation_is_printed(suffix: str, desk: Path) -> None:
    """The output is that of a file, and no file is written."""
    out = drawn("-o", f"-.{suffix}")
    drawn("-o", f"a.{suffix}")

    assert out.strip() == (desk / f"a.{suffix}").read_text(encoding="utf-8").strip()
    assert not (desk / f"-.{suffix}").exists()


def test_the_default_is_mermaid_of_the_standard_loop() -> None:
    assert drawn().strip() == Agent(ScriptedModel(())).graph.mermaid().strip()
    assert drawn() == drawn("-o", "-")
    assert "├━━━ ready ━" in (text := drawn("--text"))
    assert text == drawn("-o", "-.txt")


def test_a_printed_file_is_utf_8_for_any_stdout(desk: Path) -> None:
    """A text picture is for the stdout, and has its encoding."""
    node = "one = Limit(3, 'Schnee ❄')\ngraph = Graph('Bär', one, {one: {Go: END, Stop: END}})\n"
    imports = "from graphloop import END, Graph\nfrom graphloop.nodes import Limit\n"
    write({"snow.py": f"{imports}from graphloop.outcomes import Go, Stop\n{node}"})

    out = printed("draw", "snow.py", "-o", "-.mmd", encoding="cp1252", cwd=desk)
    drawn("snow.py", "-o", "snow.mmd")

    assert out.strip() == (desk / "snow.mmd").read_bytes().strip()
    text = printed("draw", "snow.py", "--text", encoding="cp1252", cwd=desk).decode("cp1252")
    assert text.startswith("Bär\n")
    assert "Schnee ?" in text


@pytest.mark.usefixtures("pay_desk")
def test_a_proof_is_drawn_on_the_graph_and_its_agents() -> None:
    text = drawn("--check", "--theme", "dark", "-o", "-.dot")

    assert "no problem found; shaded: behind a gate" in text
    assert "bgcolor=white" not in text
    assert "payer (no problem found" in drawn("team", "--check", "--expand", "--text")


@pytest.mark.usefixtures("pay_desk")
def test_a_run_is_drawn_on_its_own_graph() -> None:
    run_id = parked()
    waiting = drawn("--run", run_id[:8], "--text", *STORE)

    assert "▶ ◇ gate  1x" in waiting
    assert "waits for approval of pay" in waiting
    assert "twice" in refused("draw", "--run", run_id, "--run", run_id[:8], *STORE)
    shown("approve", run_id, "pay", *STORE)
    answered = drawn("--run", run_id, "--text", *STORE)
    assert "waits for" not in answered
    assert "pay: approved, not resumed yet" in answered
    shown("resume", run_id, *STORE)
    runs = ("--run", run_id, "--run", parked())
    assert drawn(*runs, "--text", *STORE).startswith("agent (2 runs: 1 completed, 1 not over)\n")


@pytest.mark.usefixtures("pay_desk")
def test_child_runs_are_drawn_on_the_graphs_of_their_agents() -> None:
    first, second = parked("team"), parked("team")
    runs = ("--run", first, "--run", second, "--expand", "--text", *STORE)
    parent, _, child = drawn(*runs).partition("run by execute")

    assert "▶ ▣ execute  2x (1+1)" in parent
    assert "waits for the agent payer" in parent
    assert "│ payer (2 runs: 2 not over)" in child
    assert "│ ▶ ◇ gate  2x (1+1)" in child
    assert "waits for approval of pay" in child
    assert "tokens" in child
    shown("approve", second, "pay", "--deny", *STORE)
    assert "pay: denied, not resumed yet" in drawn(*runs)
    shown("resume", first, "--approve", "always", *STORE)
    assert "payer (2 runs: 1 completed, 1 not over)" in drawn(*runs, "--level", "phase")


@pytest.mark.usefixtures("pay_desk")
def test_an_agent_that_no_run_called_is_pale() -> None:
    own = "\nagent = Agent(talk('Hm.', 'x'), tools=[*agent.options['tools']])\nPROMPT"
    write({"team/agent.py": TEAM.replace("\nPROMPT", own).replace("else call", "else last")})
    shown("run", "team", *STORE)
    (run_id,) = run_ids("runs.db")

    assert "│ payer (no run)" in drawn("--run", run_id, "--expand", "--text", *STORE)


def test_every_level_is_printed() -> None:
    assert "┊   prepare_step, compact, extend" in drawn("--level", "phase", "--text")
    assert "┊   go at most 19x" in drawn("--level", "detail", "--text")


def test_the_messages_of_a_run_are_drawn_in_order(pay_desk: Path) -> None:
    sequence = ("--run", parked(), "--sequence", *STORE)

    assert "may pay run?" in drawn(*sequence, "--text")
    mermaid = drawn(*sequence)
    assert mermaid.startswith("sequenceDiagram\n")
    assert "messages" in drawn(*sequence, "-o", "run.mmd")
    assert mermaid == (pay_desk / "run.mmd").read_text(encoding="utf-8")
    assert "FILE.mmd or FILE.txt" in refused("draw", *sequence, "-o", "run.svg")
    assert "-.mmd, -.txt for stdout" in refused("draw", *sequence, "-o", "-.dot")
    assert "cannot be written" in refused("draw", *sequence, "-o", "nowhere/run.mmd")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--sequence",), "expected one --run, found 0"),
        (("--check", "--run", "a"), "a proof or runs, not both"),
        (("--sequence", "--run", "a", "--expand"), "--expand"),
        (("--sequence", "--run", "a", "--level", "phase"), "--level"),
        (("-o", "a.scxml", "--level", "phase", "--theme", "dark"), "--level and --theme would"),
        (("-o", "-.scxml", "--level", "phase"), "--level would"),
        (("--text", "-o", "a.svg"), "--text"),
        (("-o", "loop.bmp"), ".svg, .png"),
        (("-o", "-.png"), "found '-.png'"),
        (("-o", "/proc/c.svg"), "-o: '/proc/c.svg' cannot be written"),
        (("-o", "/proc/c.scxml"), "-o: '/proc/c.scxml' cannot be written"),
    ],
)
def test_options_that_cannot_work_are_refused(
    options: tuple[str, ...], words: str, desk: Path
) -> None:
    """No file is written, not even one called `-.png`."""
    assert words in refused("draw", *options)
    assert not list(desk.iterdir())


LEAF = agent_tool(ScriptedModel(()), name="leaf", description="Ends.")
CHILD = sub_graph(Agent(ScriptedModel(()), tools=[LEAF], name="writer"))
APPEND = Append()
WRITER: Graph[None] = Graph("g", CHILD, {CHILD: {Answered: APPEND, ...: END}, APPEND: {...: END}})
KID = agent_tool(ScriptedModel(()), name="kid", description="Asks the leaf.", tools=[LEAF])

FILE = """
graphloop: 1
name: desk
start: prepare_step
tools: [helper]
agents:
  helper:
    description: Helps.
    graph:
      name: helper
      start: append
      nodes: {append: {use: append}}
      edges: {append: {else: END}}
nodes: {prepare_step: {use: prepare_step}, gate: {use: gate}, execute: {use: execute}}
edges:
  prepare_step: {calls: gate, else: END}
  gate: {settled: execute, else: END}
  execute: {else: END}
"""


def children_of(graph: NodeGraph[Any]) -> list[object]:
    """Return the child graphs of a graph and of its child graphs."""
    return [(node, name, children_of(child)) for node, name, child in child_graphs(graph)]


AGENT = Agent(ScriptedModel(()))
TREES: list[tuple[Loop, Tools, list[object]]] = [
    (AGENT, (), []),
    (
        Agent(ScriptedModel(()), tools=[KID]),
        (),
        [("execute", "kid", [("execute", "leaf", [])])],
    ),
    (AGENT.graph, [LEAF], [("execute", "leaf", [])]),
    (WRITER, (), [("writer", "writer", [("execute", "leaf", [])])]),
    (load(FILE), (), [("execute", "helper", [])]),
    (
        with_agents(CHAIN, {"writer": REPLY, "judge": REPLY}),
        (),
        [("draft", "writer", []), ("vote", "judge", [])],
    ),
]


@pytest.mark.parametrize(("loop", "tools", "children"), TREES)
def test_agents_are_drawn_where_they_run(loop: Loop, tools: Tools, children: list[object]) -> None:
    """Agents come from an agent's tools, from TOOLS, from nodes and from topology files."""
    assert children_of(graph_with_tools(loop, tools)) == children


@pytest.mark.parametrize("columns", [44, 80])
def test_a_picture_in_text_fits_the_terminal(columns: int) -> None:
    """A terminal would break a longer row in its words."""
    with Terminal("draw", "agent", "--text", cwd=ROOT, columns=columns) as terminal:
        assert terminal.end() == 0
        lines = terminal.text.splitlines()

    assert max(map(len, lines)) <= columns
    assert "▶ prepare_step ↑" in terminal.text
