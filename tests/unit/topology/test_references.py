"""Names that a file speaks of, in rules, options and reasons: refused where they name nothing."""

from __future__ import annotations

import pytest

from graphloop import END, Agent, Graph, tool
from graphloop.nodes import Append
from graphloop.own_nodes import sub_graph
from graphloop.providers.script import ScriptedModel
from graphloop.rules import Rules, at_most, never
from graphloop.topology.compose import compose
from graphloop.topology.conditions import read_rules, rules_of_texts
from graphloop.topology.diagnostics import Diagnostics, TopologyError
from graphloop.topology.document import AgentEntry, Document
from graphloop.topology.loaded import load
from graphloop.topology.reader import read_text
from graphloop.topology.references import Declared, brought_tools, known_tools
from graphloop.topology.registration import RegisteredNames, Registry
from tests.topology_files import lines_of, problems

IGNORING = """\
graphloop: 1
name: t
start: draft
agents:
  writer:
    graph:
      name: inner
      start: said
      agents:
        deep:
          graph:
            {name: d, start: low, nodes: {low: {use: append}}, edges: {low: {else: END}}}
      nodes: {said: {use: append}, ask: {use: child, agent: deep}}
      edges: {said: {else: ask}, ask: {else: END}}
  other: {given: true}
nodes: {draft: {use: child, agent: writer}, ask: {use: child, agent: other}, own: {use: mine}}
edges: {draft: {else: ask}, ask: {else: own}, own: {else: END}}
"""
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
BIT = "graphloop: 1\nname: b\nstart: bit\nnodes: {bit: {use: append}}\nedges: {bit: {else: END}}\n"


@tool
def refund(amount: int) -> str:
    """Pay back."""
    return f"{amount} paid back"


@tool
def search(query: str) -> str:
    """Search."""
    return query


def names() -> RegisteredNames:
    """Return tools, an agent with a tool among them, and nodes that bring graphs."""
    registry = Registry()
    registry.tool(refund)
    registry.tool(search)
    helper = Agent(ScriptedModel(["done"]), tools=[search], name="helper")
    registry.tool(helper.as_tool(description="helps"))
    registry.node(sub_graph(helper, name="worker"))
    registry.node(sub_graph(load(BIT), name="own"), name="mine")
    registry.tool(load(BIT).as_tool(None, description="b", name="bits"), name="bits")
    return RegisteredNames(registry, installed=False)


def ignoring(*nodes: str) -> str:
    """Return the file that sets a finding of each of these nodes aside."""
    said = ", ".join(f"{{node: '{name}', code: GL3, reason: seen}}" for name in nodes)
    return f"{IGNORING}ignore: [{said}]\n"


def gated(rule: str, more: str = "tools: [refund]\n") -> str:
    """Return a file whose gate has one rule before all others are allowed."""
    return GATED.replace("[{allow: *}]", f'[{rule}, {{allow: "*"}}]') + more


def place_of(text: str, written: str) -> str:
    """Return the place of a word in a file."""
    line = next(n for n, line in enumerate(text.splitlines(), 1) if written in line)
    return f"a.yaml:{line}:{text.splitlines()[line - 1].index(written) + 1}"


def test_nodes_at_any_depth_are_set_aside() -> None:
    """Of agents, of agents' agents, of what a registered node brings; an agent as a whole.

    Below an agent that is given, nothing is known; a registered agent is one of the tools.
    """
    known = ("draft", "writer/said", "writer/", "writer/deep/low", "writer/deep/", "own/bit")
    every = (*known, "other/anything/at all", "bits/bit")

    document = read_text(ignoring(*every) + "tools: [bits]\n", names())

    assert [(path, "GL3") for path in every] == [*document.ignore]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("drft", "there is no node 'drft'. Did you mean 'draft'"),
        ("writer", "there is no node 'writer'. Fix: write 'writer/' for the agent as a whole"),
        ("writer/sad", "there is no node 'sad' of the agent 'writer'. Did you mean 'said'"),
        ("writer/deep/lw", "there is no node 'lw' of the agent 'deep'. Did you mean 'low'"),
        ("wrter/said", "'wrter' is no agent, so nothing stands below it. Did you mean 'writer'"),
        ("draft/said", "'draft' runs no agent, so nothing stands below it"),
        ("writer/said/x", "'said' of the agent 'writer' runs no agent"),
        ("own/bat", "there is no node 'bat' of the agent 'own'. Did you mean 'bit'"),
    ],
)
def test_a_node_that_there_is_not_is_refused_where_it_stands(path: str, said: str) -> None:
    """It would set nothing aside, and only the checker would say so."""
    text = ignoring("own", path)

    (problem,) = problems(text, names())

    assert said in str(problem)
    assert place_of(text, f"'{path}'") == problem.place


def test_a_finding_is_set_aside_once() -> None:
    """Of two reasons one would be dropped."""
    twice = IGNORING + (
        "ignore:\n- {node: draft, code: GL3, reason: seen by Ann}\n"
        "- {code: GL3, reason: of the graph}\n- {node: draft, code: GL3, reason: seen by Bob}\n"
    )

    (problem,) = problems(twice, names())

    assert place_of(twice, "{node: draft, code: GL3, reason: seen by Bob}") == problem.place
    first = place_of(twice, "{node: draft").split(":")[1]
    assert f"GL3 of 'draft' is set aside twice, first on line {first}." == problem.found


@pytest.mark.parametrize("name", ["refnud", "Refund", " refund", "tool:refund", "search"])
def test_a_rule_s_tool_that_there_is_not_is_refused_where_it_stands(name: str) -> None:
    """The tool that was meant would run unasked."""
    text = gated(f'{{ask: [refund, "{name}"]}}')

    (problem,) = problems(text, names())

    assert place_of(text, f'"{name}"') == problem.place
    assert f"the rule names {name!r}, and there is no such tool." in problem.found
    assert (name != "search") == ("Did you mean 'refund'?" in problem.found)
    assert f"a pattern, such as '{name}*'" in problem.fix


PREPARE, STEPS = "p: {use: prepare_step}", "max_steps: 5"


@pytest.mark.parametrize(
    ("written", "instead", "option"),
    [
        (PREPARE, 'p: {use: prepare_step, active_tools: ["X"]}', "active_tools"),
        (
            PREPARE,
            'p: {use: prepare_step, tool_choice: {mode: tool, name: "X"}}',
            "tool_choice",
        ),
        (STEPS, 'max_steps: 5, conditions: [{has_tool_call: "X"}]', "has_tool_call"),
        (
            STEPS,
            'max_steps: 5, conditions: [{not: {any_of: [{has_tool_call: "X"}]}}]',
            "has_tool_call",
        ),
    ],
)
def test_a_tool_that_another_option_names_is_looked_up(
    written: str, instead: str, option: str
) -> None:
    """A stop that never comes costs money, and a tool that is not there is not on offer."""
    text = gated("{ask: refund}", "tools: [refund, helper]\n").replace(written, instead, 1)

    for name in ("refnud", "search", "refund*"):  # A search is what the helper does.
        spoiled = text.replace("X", name)
        (problem,) = problems(spoiled, names())
        assert place_of(spoiled, f'"{name}"') == problem.place
        assert f"`{option}` names {name!r}, and there is no such tool." in problem.found
        assert (name == "search") == ("Did you mean" not in problem.found)
        assert "name one of refund, helper; or register" in problem.fix
    assert read_text(text.replace("X", "refund"), names())
    without_tools = text.replace("tools: [refund, helper]\n", "")
    assert read_text(without_tools.replace("X", "refnud"), names())


def test_all_rules_of_all_gates_are_told_at_once() -> None:
    """A rule of one name is read like a rule of many."""
    second = '  h: {use: gate, rules: [{deny: refind}, {allow: "*"}]}\n  e: {use'
    text = (
        gated("{ask: refnud}").replace("  e: {use", second, 1).replace("settled: e", "settled: h")
    )

    found = problems(text.replace("  e: {held", "  h: {settled: e, else: a}\n  e: {held"), names())

    assert [7, 8] == lines_of(found)


def worker(rule: str) -> str:
    """Return a file with a node that runs an agent."""
    text = gated(rule).replace("  e: {use", "  worker: {use: worker}\n  e: {use")
    return text.replace("s: {go: p, else: END}", "s: {go: p, else: worker}\n  worker: {else: END}")


HELPED = WRITER.replace("tools: [search]", "tools: [helper]")
WORKING = (
    HELPED.replace("  e: {use", "  worker: {use: worker}\n        e: {use", 1)
    .replace("s: {go: p, else: END}", "s: {go: p, else: worker}", 1)
    .replace("tools: [helper]", "tools: [refund]")
    .replace("      tools: [r", "        worker: {else: END}\n      tools: [r")
)


def test_rules_hold_for_the_tools_of_agents_below() -> None:
    """So they name them: of the file's agents at any depth, registered ones, and those of nodes."""
    assert read_text(gated("{ask: [search, writer]}", WRITER), names())
    for more in (WRITER, HELPED, WORKING, "tools: [refund, helper]\n"):
        assert read_text(gated("{ask: search}", more), names())
        assert "Did you mean 'search'" in str(problems(gated("{ask: serch}", more), names()))
    assert read_text(worker("{ask: search}"), names())
    assert "Did you mean 'search'" in str(problems(worker("{ask: serch}"), names()))


def test_rules_do_not_hold_for_tools_above_them() -> None:
    """The gate of an agent knows the tools of its own file only."""
    inner = WRITER.replace("rules: [{allow: '*'}]", "rules: [{ask: refund}]")

    (problem,) = problems(gated("{ask: search}", inner), names())
    assert "'refund', and there is no such tool" in problem.found


def test_tools_that_a_run_brings_are_named_by_patterns_or_not_at_all() -> None:
    """A file without tools leaves all of them to its runs; an agent that is given has its own."""
    given = "tools: [refund]\nagents: {other: {given: true, description: any}}\n"
    below = WRITER.replace("tools: [search]", "tools: [search]\n      agents: {x: {given: true}}")

    assert read_text(gated('{ask: "refn?d"}'), names())
    for more in ("", given, below):
        assert read_text(gated("{ask: refnud}", more), names())


def test_the_tools_of_a_file_are_known_with_those_of_its_agents() -> None:
    """Each once; where it names none, or an agent is given, a run brings what it likes."""
    graph: Graph[None] = Graph("a", Append(), {Append(): {...: END}})
    inner = Document(graph, tools=("search", "refund"), agents={"z": AgentEntry(Document(graph))})
    outer = Document(graph, tools=("refund", "a"), agents={"a": AgentEntry(inner)})

    assert ("refund", "a", "search") == known_tools(outer, names())
    agents = {"a": AgentEntry(inner), "b": AgentEntry()}
    given = Document(graph, tools=("refund",), agents=agents)
    assert known_tools(given, names()) is None
    assert ["refund", "search"] == list(brought_tools(Declared.by(given), names()))
    assert known_tools(Document(graph), names()) is None


def test_temporal_rules_know_the_tools_of_registered_agents() -> None:
    """As the rules of gates do."""
    rules = "rules: [{never: search, before: refund}]\n"

    assert read_text(gated("{ask: search}", f"{rules}tools: [refund, helper]\n"), names())
    assert "'search'" in str(problems(gated("{ask: refund}", f"{rules}tools: [refund]\n"), names()))


def test_a_temporal_rule_is_one_text_in_yaml_or_json() -> None:
    """As it would stand in a file."""
    texts = ("{never: 'tool:pay', before: review}", '{"at_most": "search", "times": 5}')

    assert never("tool:pay", before="review") & at_most("search", 5) == rules_of_texts(texts, "-r")
    assert Rules() == rules_of_texts((), "-r")


def test_every_problem_of_every_text_is_told_with_its_place() -> None:
    """A command line need not be tried again and again."""
    texts = ("{never: a, never: b}", "{at_most: x, times: 010}", "{never: [x]}", "{never: a")

    with pytest.raises(TopologyError) as caught:
        rules_of_texts(texts, "--rule")

    places = [problem.place for problem in caught.value.problems]
    assert ["--rule 1:1:12", "--rule 2:1:21", "--rule 3:1:1"] == places[:3]
    assert places[3].startswith("--rule 4:1:")


def test_a_wrong_rule_is_noted_and_the_others_are_read() -> None:
    """A file has other problems, too, and all of them are told at once."""
    diagnostics = Diagnostics("file")
    tree = compose("{never: deploy}", diagnostics)
    odd = compose("deploy", diagnostics)

    assert never("deploy") == read_rules([tree, odd], diagnostics)
    (problem,) = diagnostics.problems
    assert "rule 2: expected a mapping, found 'deploy'" in problem.found
    assert "write `{never: deploy, before: review}`" in problem.fix
