"""Rules of gates name tools that there are: one about another name protects nothing."""

from __future__ import annotations

import pytest

from graphloop import END, Agent, Graph, tool
from graphloop.nodes import Append
from graphloop.own_nodes import sub_graph
from graphloop.providers.script import ScriptedModel
from graphloop.topology.diagnostics import TopologyError
from graphloop.topology.document import AgentEntry, Document
from graphloop.topology.reader import read_text
from graphloop.topology.registration import RegisteredNames, Registry
from graphloop.topology.ruled_tools import brought_tools, known_tools

GATED = """\
graphloop: 1
name: t
start: p
nodes:
  p: {use: prepare_step}
  m: {use: model_call}
  g: {use: gate, rules: [{allow: *}]}
  e: {use: execute}
  a: {use: append}
  s: {use: stop_check, max_steps: 5}
edges:
  p: {ready: m, calls: g, else: END}
  m: {calls: g, else: a}
  g: {settled: e, else: a}
  e: {held: g, else: a}
  a: {answered_calls: s, resend: s, else: END}
  s: {go: p, else: END}
"""
GATE_LINE = 7


@tool
def refund(amount: int) -> str:
    """Pay back."""
    return f"{amount} paid back"


@tool
def search(query: str) -> str:
    """Search."""
    return query


def names() -> RegisteredNames:
    """Return tools, an agent with a tool among them, and a node that runs one."""
    registry = Registry()
    registry.tool(refund)
    registry.tool(search)
    helper = Agent(ScriptedModel(["done"]), tools=[search], name="helper")
    registry.tool(helper.as_tool(description="helps"))
    registry.node(sub_graph(helper, name="worker"))
    return RegisteredNames(registry, installed=False)


def gated(rule: str, more: str = "tools: [refund]\n") -> str:
    """Return a file whose gate has one rule before all others are allowed."""
    return GATED.replace("[{allow: *}]", f'[{rule}, {{allow: "*"}}]') + more


@pytest.mark.parametrize("name", ["refnud", "Refund", " refund", "tool:refund", "search"])
def test_a_name_that_no_tool_has_is_refused_where_it_stands(name: str) -> None:
    """The tool that was meant would run unasked."""
    text = gated(f'{{ask: [refund, "{name}"]}}')

    with pytest.raises(TopologyError) as refused:
        read_text(text, names(), "a.yaml")

    (problem,) = refused.value.problems
    column = text.splitlines()[GATE_LINE - 1].index(f'"{name}"') + 1
    assert f"a.yaml:{GATE_LINE}:{column}" == problem.place
    assert f"the rule names {name!r}, and there is no such tool." in problem.found
    assert (name != "search") == ("Did you mean 'refund'?" in problem.found)
    assert f"a pattern, such as '{name}*'" in problem.fix


@pytest.mark.parametrize(
    ("written", "instead", "option"),
    [
        ("p: {use: prepare_step}", 'p: {use: prepare_step, active_tools: ["X"]}', "active_tools"),
        (
            "p: {use: prepare_step}",
            'p: {use: prepare_step, tool_choice: {mode: tool, name: "X"}}',
            "tool_choice",
        ),
        ("max_steps: 5", 'max_steps: 5, conditions: [{has_tool_call: "X"}]', "has_tool_call"),
        (
            "max_steps: 5",
            'max_steps: 5, conditions: [{not: {any_of: [{has_tool_call: "X"}]}}]',
            "has_tool_call",
        ),
    ],
)
def test_a_tool_that_another_option_names_is_looked_up(
    written: str, instead: str, option: str
) -> None:
    """A stop that never comes costs money, and what is not there is not on offer."""
    text = gated("{ask: refund}", "tools: [refund, helper]\n").replace(written, instead, 1)

    for name in ("refnud", "search", "refund*"):  # A search is what the helper does.
        spoiled = text.replace("X", name)
        with pytest.raises(TopologyError) as refused:
            read_text(spoiled, names(), "a.yaml")
        (problem,) = refused.value.problems
        line = next(n for n, one in enumerate(spoiled.splitlines(), 1) if f'"{name}"' in one)
        column = spoiled.splitlines()[line - 1].index(f'"{name}"') + 1
        assert f"a.yaml:{line}:{column}" == problem.place
        assert f"`{option}` names {name!r}, and there is no such tool." in problem.found
        assert (name == "search") == ("Did you mean" not in problem.found)
        assert "name one of refund, helper; or register" in problem.fix
    assert read_text(text.replace("X", "refund"), names())
    assert read_text(text.replace("X", "refnud").replace("tools: [refund, helper]\n", ""), names())


def test_a_rule_of_one_name_is_read_like_one_of_many() -> None:
    """And all rules of all gates are told at once."""
    second = '  h: {use: gate, rules: [{deny: refind}, {allow: "*"}]}\n  e: {use'
    text = gated("{ask: refnud}").replace("  e: {use", second, 1)

    with pytest.raises(TopologyError) as refused:
        read_text(
            text.replace("settled: e", "settled: h").replace(
                "  e: {held", "  h: {settled: e, else: a}\n  e: {held"
            ),
            names(),
        )

    assert ["7", "8"] == [one.place.split(":")[1] for one in refused.value.problems]


def test_tools_that_a_run_brings_are_named_by_patterns_or_not_at_all() -> None:
    """A file without tools leaves all of them to its runs."""
    assert read_text(gated('{ask: "refn?d"}'), names())
    assert read_text(gated("{ask: refnud}", ""), names())
    given = "tools: [refund]\nagents: {other: {given: true, description: any}}\n"
    assert read_text(gated("{ask: refnud}", given), names())


INNER = GATED.replace("\n", "\n      ").removeprefix("graphloop: 1\n").strip()
WRITER = f"""\
agents:
  writer:
    description: writes
    graph:
      {INNER.replace("[{allow: *}]", "[{allow: '*'}]")}
      tools: [search]
tools: [refund, writer]
"""


def test_rules_hold_for_the_tools_of_agents_below() -> None:
    """So they name them: of agents of the file, registered ones, and those that nodes run."""
    assert read_text(gated("{ask: [search, writer]}", WRITER), names())
    assert read_text(gated("{ask: search}", "tools: [refund, helper]\n"), names())
    worker = gated("{ask: search}").replace("  e: {use", "  worker: {use: worker}\n  e: {use")
    worker = worker.replace(
        "s: {go: p, else: END}", "s: {go: p, else: worker}\n  worker: {else: END}"
    )
    assert read_text(worker, names())

    for text in (
        gated("{ask: serch}", WRITER),
        gated("{ask: serch}", "tools: [refund, helper]\n"),
        worker.replace("ask: search", "ask: serch"),
    ):
        with pytest.raises(TopologyError, match="Did you mean 'search'"):
            read_text(text, names())


def test_an_agent_s_gate_knows_the_tools_of_its_own_file_only() -> None:
    """Rules do not hold for what stands above."""
    inner = WRITER.replace("rules: [{allow: '*'}]", "rules: [{ask: refund}]")

    with pytest.raises(TopologyError, match="'refund', and there is no such tool"):
        read_text(gated("{ask: search}", inner), names())


def test_rules_know_the_tools_of_agents_two_levels_down() -> None:
    """Of registered agents that agents of the file call, and of those that their nodes run."""
    helped = WRITER.replace("tools: [search]", "tools: [helper]")
    working = helped.replace("  e: {use", "  worker: {use: worker}\n        e: {use", 1)
    working = working.replace("s: {go: p, else: END}", "s: {go: p, else: worker}", 1)
    working = working.replace("tools: [helper]", "tools: [refund]")
    working = working.replace("      tools: [r", "        worker: {else: END}\n      tools: [r")

    for inner in (helped, working):
        assert read_text(gated("{ask: search}", inner), names())
        with pytest.raises(TopologyError, match="Did you mean 'search'"):
            read_text(gated("{ask: serch}", inner), names())


def test_temporal_rules_know_the_tools_of_registered_agents() -> None:
    """As the rules of gates do."""
    rules = "rules: [{never: search, before: refund}]\n"

    assert read_text(gated("{ask: search}", f"{rules}tools: [refund, helper]\n"), names())
    with pytest.raises(TopologyError, match="'search'"):
        read_text(gated("{ask: refund}", f"{rules}tools: [refund]\n"), names())


def test_what_an_unknown_agent_below_has_nobody_misses() -> None:
    """It is handed to each run, with tools that no file names."""
    inner = WRITER.replace("tools: [search]", "tools: [search]\n      agents: {x: {given: true}}")

    assert read_text(gated("{ask: serch}", inner), names())


def test_the_tools_of_a_file_are_known_with_those_of_its_agents() -> None:
    """Each once; where it names none, or an agent is given, a run brings what it likes."""
    graph: Graph[None] = Graph("a", Append(), {Append(): {...: END}})
    inner = Document(graph, tools=("search", "refund"), agents={"z": AgentEntry(Document(graph))})
    outer = Document(graph, tools=("refund", "a"), agents={"a": AgentEntry(inner)})

    assert ("refund", "a", "search") == known_tools(outer, names())
    agents = {"a": AgentEntry(inner), "b": AgentEntry()}
    given = Document(graph, tools=("refund",), agents=agents)
    assert known_tools(given, names()) is None
    assert ["refund", "search"] == list(brought_tools(("refund",), agents, names()))
    assert known_tools(Document(graph), names()) is None
