"""A rule that another before it decides protects nothing: it is refused, whoever wrote it.

A file's rules were not looked at: `[{allow: "*"}, {ask: refund}]` was proven, and asked nobody.
"""

from __future__ import annotations

import pytest

from graphloop import Agent, allow, ask, load, tool
from graphloop.errors import ConfigError
from graphloop.nodes import Gate
from graphloop.policy import Rule
from graphloop.testing import ScriptedModel
from graphloop.topology.problems import TopologyError
from graphloop.topology.registration import Registry


@tool
def refund() -> str:
    """Pay back."""
    return "paid back"


def much(arguments: object, context: object) -> bool:
    """Whether it is much."""
    return False


FILE = """\
graphloop: 1
name: desk
start: prepare_step
tools: [refund]
nodes:
  prepare_step: {use: prepare_step}
  model_call: {use: model_call}
  gate:
    use: gate
    rules:
      - {ask: refund, when: much}
      - {allow: "*"}
      - {ask: refund}
  execute: {use: execute}
  append: {use: append}
  stop_check: {use: stop_check, max_steps: 4}
edges:
  prepare_step: {ready: model_call, calls: gate, else: END}
  model_call: {calls: gate, else: append}
  gate: {settled: execute, else: append}
  execute: {held: gate, else: append}
  append: {answered_calls: stop_check, resend: stop_check, else: END}
  stop_check: {go: prepare_step, else: END}
"""
SAID = r"the rule `ask refund` has no effect: `allow \*` before it decides"


def test_a_file_with_a_shadowed_rule_is_refused_at_the_line_of_that_rule() -> None:
    """With the words that Python has for it, and the same fix."""
    names = Registry()
    names.tool(refund)
    names.predicate(much)

    with pytest.raises(TopologyError, match=SAID) as refused:
        load(FILE, registry=names)

    assert ":13:" in str(refused.value)
    assert "put the narrower rule first, or leave it out." in str(refused.value)
    load(FILE.replace("      - {ask: refund}\n", ""), registry=names)


def test_a_gate_node_and_a_policy_refuse_the_same_rules() -> None:
    """One function looks at the rules of all three."""
    rules = (Rule("allow", ("*",)), Rule("ask", ("refund",)))

    with pytest.raises(ConfigError, match=SAID):
        Gate(rules=rules)
    with pytest.raises(ConfigError, match=SAID):
        _ = allow("*") | ask("refund")
    assert rules[::-1] == Gate(rules=rules[::-1]).rules


KNOWN = r"the rule `ask refund\*` has no effect: the tools that it matches \(refund\) are decided"


def test_a_rule_that_only_the_known_tools_show_to_be_shadowed_is_refused() -> None:
    """By an agent, by a file that lists its tools, and by a proof that is told of them."""
    names = Registry()
    names.tool(refund)
    names.predicate(much)
    file = FILE.replace("{ask: refund, when: much}", "{allow: refund}")
    file = file.replace('      - {allow: "*"}\n', "").replace(
        "- {ask: refund}", '- {ask: "refund*"}'
    )
    gate = allow("refund") | ask("refund*")

    with pytest.raises(ConfigError, match=KNOWN):
        Agent(ScriptedModel([]), tools=[refund], gate=gate)
    with pytest.raises(TopologyError, match=KNOWN) as refused:
        load(file, registry=names)
    assert ":12:" in str(refused.value)
    open_file = load(file.replace("tools: [refund]\n", ""), registry=names)
    found = open_file.check(tools=["refund"]).findings
    assert "GL2" in {one.code for one in found if "`ask refund*` has no effect" in str(one)}
    assert not [
        one
        for one in open_file.check(tools=["refund", "refund_all"]).findings
        if "has no effect" in str(one)
    ]


def test_a_gate_of_a_file_has_a_rule_or_says_none() -> None:
    """An empty list is no policy, in Python as in a file: everything would run."""
    names = Registry()
    names.tool(refund)
    before, _, after = FILE.partition("    rules:\n")
    nodes = after[after.index("  execute:") :]

    with pytest.raises(TopologyError, match="a list with something in it was expected"):
        load(f"{before}    rules: []\n{nodes}", registry=names)
    load(f"{before}{nodes}", registry=names)
