"""Names in a file's rules: refused where they stand if they mean nothing."""

from __future__ import annotations

import pytest

from graphloop import Agent, tool
from graphloop.own_nodes import sub_graph
from graphloop.providers.script import ScriptedModel
from graphloop.rules import Rules, at_most, never
from graphloop.topology.conditions import rules_of_texts
from graphloop.topology.diagnostics import TopologyError
from graphloop.topology.loaded import load
from graphloop.topology.reader import read_text
from graphloop.topology.registration import Registry
from tests.topology_files import lines_of, problems, with_line

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
  e: {approval_needed: g, else: a}
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


@tool
def refund(amount: int) -> str:
    """Pay back."""
    return f"{amount} paid back"


@tool
def search(query: str) -> str:
    """Search."""
    return query


def names() -> Registry:
    """Return tools, an agent with a tool among them, and a node that brings a graph."""
    registry = Registry()
    registry.tool(refund)
    registry.tool(search)
    helper = Agent(ScriptedModel(["done"]), tools=[search], name="helper")
    registry.tool(helper.as_tool(description="helps"))
    registry.node(sub_graph(helper, name="worker"))
    return registry


def gated(rule: str, more: str = "tools: [refund]\n") -> str:
    """Return a file whose gate has one rule before all others are allowed."""
    return GATED.replace("[{allow: *}]", f'[{rule}, {{allow: "*"}}]') + more


def place_of(text: str, written: str) -> str:
    """Return the place of a word in a file."""
    line = next(n for n, line in enumerate(text.splitlines(), 1) if written in line)
    return f"a.yaml:{line}:{text.splitlines()[line - 1].index(written) + 1}"


@pytest.mark.parametrize("name", ["refnud", "Refund", " refund", "tool:refund", "search"])
def test_an_unknown_tool_in_a_gate_s_rule_is_refused(name: str) -> None:
    """The tool that was meant would run unasked."""
    text = gated(f'{{ask: [refund, "{name}"]}}')

    (problem,) = problems(text, names())

    assert place_of(text, f'"{name}"') == problem.place
    assert f"the rule names {name!r}, and there is no such tool." in problem.found
    assert (name != "search") == ("Did you mean 'refund'?" in problem.found)
    assert f"a pattern, such as '{name}*'" in problem.fix


def test_unknown_tools_of_all_gates_are_told_at_once() -> None:
    """A rule of one name is read like a rule of many."""
    second = '  h: {use: gate, rules: [{deny: refind}, {allow: "*"}]}\n  e: {use'
    text = gated("{ask: refnud}").replace("  e: {use", second, 1)
    text = text.replace("settled: e", "settled: h")

    found = problems(
        text.replace("  e: {approval_needed", "  h: {settled: e, else: a}\n  e: {approval_needed"),
        names(),
    )

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


@pytest.mark.parametrize("more", [WRITER, HELPED, WORKING, "tools: [refund, helper]\n", ""])
def test_a_gate_s_rule_may_name_the_tools_of_agents_below(more: str) -> None:
    """Of the file's agents at any depth, of registered agents, and of those that nodes run."""

    def text(rule: str) -> str:
        return gated(rule, more) if more else worker(rule)

    assert read_text(text("{ask: search}"), names())
    assert "Did you mean 'search'" in str(problems(text("{ask: serch}"), names()))


def test_a_gate_s_rule_may_not_name_the_tools_above() -> None:
    """The gate of an agent knows the tools of its own file only."""
    inner = WRITER.replace("rules: [{allow: '*'}]", "rules: [{ask: refund}]")

    (problem,) = problems(gated("{ask: search}", inner), names())
    assert "'refund', and there is no such tool" in problem.found


def test_a_file_does_not_refuse_tools_that_its_runs_may_bring() -> None:
    """A file without tools leaves all of them to its runs; a `given` agent has its own."""
    given = "tools: [refund]\nagents: {other: {given: true, description: any}}\n"
    below = WRITER.replace("tools: [search]", "tools: [search]\n      agents: {x: {given: true}}")

    assert read_text(gated('{ask: "refn?d"}'), names())
    for more in ("", given, below):
        assert read_text(gated("{ask: refnud}", more), names())


def test_the_checker_tells_what_the_reader_lets_pass() -> None:
    """A reason for a missing node sets nothing aside; a stop condition may name any tool."""
    ignore = "ignore: [{node: drft, code: GL3, reason: seen}]\n"
    text = gated("{ask: refund}", f"tools: [refund]\n{ignore}")
    registry = Registry()
    registry.tool(refund)

    found = load(text, registry=registry).check().findings

    assert ["ignore['drft', 'GL3']"] == [finding.place for finding in found]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("{never: zz, before: gate}", "has no node, outcome or tool 'zz'"),
        ("{never: execute, before: 'node:gaet'}", "Did you mean 'gate'?"),
        ("{never: aborted, before: gate}", "the word 'aborted' could mean"),
    ],
)
def test_a_temporal_rule_about_nothing_is_refused(rule: str, said: str) -> None:
    """It would hold for ever, and guard nothing."""
    (problem,) = problems(with_line(21, f"  - {rule}"))

    assert "a.yaml:21:5" == problem.place
    assert said in problem.found


def test_a_temporal_rule_may_name_tools_of_the_file_and_of_runs() -> None:
    """Those of the file and of registered agents by their names alone."""
    rules = "rules: [{never: search, before: 'tool:other'}]\n"

    assert 1 == len(
        read_text(gated("{ask: search}", f"{rules}tools: [refund, helper]\n"), names()).rules
    )
    assert "'search'" in str(problems(gated("{ask: refund}", f"{rules}tools: [refund]\n"), names()))


def test_a_rule_of_a_command_line_is_yaml_or_json() -> None:
    """As it would stand in a file."""
    texts = ("{never: 'tool:pay', before: review}", '{"at_most": "search", "times": 5}')

    assert never("tool:pay", before="review") & at_most("search", 5) == rules_of_texts(texts, "-r")
    assert Rules() == rules_of_texts((), "-r")


def test_all_problems_of_all_texts_are_told_at_once() -> None:
    """A command line need not be tried again and again."""
    texts = ("{never: a, never: b}", "{at_most: x, times: 010}", "{never: [x]}", "{never: a", "x")

    with pytest.raises(TopologyError) as caught:
        rules_of_texts(texts, "--rule")

    places = [problem.place for problem in caught.value.problems]
    assert ["--rule 1:1:12", "--rule 2:1:21", "--rule 3:1:1"] == places[:3]
    assert places[3].startswith("--rule 4:1:")
    last = caught.value.problems[-1]
    assert "rule 5: expected a mapping, found 'x'" in last.found
    assert "write `{never: deploy, before: review}`" in last.fix
