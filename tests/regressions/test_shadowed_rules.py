"""A rule that another before it decides protects nothing: it is refused, whoever wrote it.

A file's rules were not looked at: `[{allow: "*"}, {ask: refund}]` was proven, and asked nobody.
"""

from __future__ import annotations

import pytest

from graphloop import Agent, allow, ask, tool
from graphloop.errors import ConfigError
from graphloop.nodes import Gate
from graphloop.policy.policy import Rule
from graphloop.testing import ScriptedModel
from graphloop.topology.diagnostics import TopologyError
from tests.topology_files import desk


@tool
def refund() -> str:
    """Pay back."""
    return "paid back"


def much(arguments: object, context: object) -> bool:
    """Whether it is much."""
    return False


SAID = r"the rule `ask refund` has no effect: `allow \*` before it decides"


def test_a_shadowed_rule_of_a_file_is_refused_at_its_line() -> None:
    """With the words that Python has for it, and the same fix."""
    with pytest.raises(TopologyError, match=SAID) as refused:
        desk("[{ask: refund, when: much}, {allow: '*'}, {ask: refund}]", refund, when=much)

    assert ":8:70:" in str(refused.value)
    assert "put the narrower rule first, or leave it out." in str(refused.value)
    desk("[{ask: refund, when: much}, {allow: '*'}]", refund, when=much)


def test_a_gate_node_and_a_policy_refuse_the_same_rules() -> None:
    """One function looks at the rules of all three."""
    rules = (Rule("allow", ("*",)), Rule("ask", ("refund",)))

    with pytest.raises(ConfigError, match=SAID):
        Gate(rules=rules)
    with pytest.raises(ConfigError, match=SAID):
        _ = allow("*") | ask("refund")
    assert rules[::-1] == Gate(rules=rules[::-1]).rules


KNOWN = r"the rule `ask refund\*` has no effect: the tools that it matches \(refund\) are decided"


def test_a_rule_that_known_tools_show_as_shadowed_is_refused() -> None:
    """By an agent, by a file that lists its tools, and by a proof that is told of them."""
    rules = "[{allow: refund}, {ask: 'refund*'}]"
    gate = allow("refund") | ask("refund*")

    with pytest.raises(ConfigError, match=KNOWN):
        Agent(ScriptedModel([]), tools=[refund], gate=gate)
    with pytest.raises(TopologyError, match=KNOWN) as refused:
        desk(rules, refund)
    assert ":8:52:" in str(refused.value)
    open_file = desk(rules)
    found = open_file.check(tools=["refund"]).findings
    assert "GL2" in {one.code for one in found if "`ask refund*` has no effect" in str(one)}
    assert not [
        one
        for one in open_file.check(tools=["refund", "refund_all"]).findings
        if "has no effect" in str(one)
    ]


def test_a_gate_of_a_file_has_a_rule_or_says_none() -> None:
    """An empty list is no policy, in Python as in a file: everything would run."""
    with pytest.raises(TopologyError, match=":8:28: `rules`: expected something in it"):
        desk("[]", refund)
    desk("[]", refund, edit=lambda text: text.replace(", rules: []", ""))
