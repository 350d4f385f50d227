"""`check` tells of rules that guard nothing: a misspelt tool, and a held call that nobody decides.

A name in a rule of a Python graph was looked up when a run began; held calls that were led to the
append were denied without a question, and proven.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphloop import END, Graph, check, nodes, outcomes
from graphloop.cli import app
from graphloop.errors import ConfigError
from graphloop.node_protocol import Node
from graphloop.outcomes import Outcome
from graphloop.policy.policy import Rule
from graphloop.rules import only_after


def looping(gate: nodes.Gate, held: Node[None, Outcome] | None = None) -> Graph[None]:
    """Return the loop with this gate, and with held calls led there; to the gate if not given."""
    begin, ask, execute = nodes.PrepareStep(), nodes.ModelCall(), nodes.Execute()
    append, stop = nodes.Append(), nodes.StopCheck(max_steps=3)
    to: Node[None, Outcome] = gate if held is None else append
    return Graph(
        "loop",
        begin,
        {
            begin: {outcomes.Ready: ask, outcomes.Calls: gate, ...: END},
            ask: {outcomes.Calls: gate, outcomes.Failed: END, ...: append},
            gate: {outcomes.Settled: execute, ...: append},
            execute: {outcomes.ApprovalNeeded: to, ...: append},
            append: {outcomes.AnsweredCalls: stop, outcomes.Resend: stop, ...: END},
            stop: {outcomes.Go: begin, ...: END},
        },
    )


RULES = (Rule("ask", ("refund",)), Rule("allow", ("*",)))


def test_held_calls_that_are_led_past_the_gate_are_a_finding() -> None:
    """At the row that leads them there; a gate that asks before it is left needs no way back."""
    past = check(looping(nodes.Gate(rules=RULES, hold=False), nodes.Append()))

    (found,) = [one for one in past.findings if one.code == "GL2"]
    assert "no person is asked" in found.message
    assert ("execute", "append") == found.witness[-2:]
    assert check(looping(nodes.Gate(rules=RULES, hold=False))).ok
    assert check(looping(nodes.Gate(rules=RULES), nodes.Append())).ok


def test_a_misspelt_tool_of_a_gate_is_found_with_known_tools() -> None:
    """With the nearest that exists; a pattern may match nothing yet."""
    graph = looping(nodes.Gate(rules=(Rule("ask", ("refnud",)), Rule("allow", ("re*", "x_*")))))

    (found,) = check(graph, tools=["refund", "read"]).findings
    assert ("GL2", "node 'gate'") == (found.code, found.place)
    assert "names 'refnud', which is none of the tools. Did you mean 'refund'?" in found.message
    assert check(graph).ok
    assert check(looping(nodes.Gate(rules=RULES)), tools=["refund"]).ok


def test_a_misspelt_tool_in_a_temporal_rule_is_found_too() -> None:
    """A rule about it would hold for ever, and guard nothing."""
    rules = only_after("tool:refnud", "node:gate")
    graph = looping(nodes.Gate(rules=RULES))

    with pytest.raises(ConfigError, match=r"no tool 'refnud'\. Did you mean 'refund'"):
        graph.check(rules=rules, tools=["refund"])
    graph.check(rules=rules)


SOURCE = '''\
from graphloop import END, Graph, nodes, outcomes, tool
from graphloop.policy.policy import Rule


@tool
def refund() -> str:
    """Pay back."""
    return "paid back"


TOOLS, RULE = [refund], Rule("ask", ("NAME",))
begin, ask, gate = nodes.PrepareStep(), nodes.ModelCall(), nodes.Gate(rules=(RULE,))
execute, append = nodes.Execute(), nodes.Append()
graph = Graph("once", begin, {
    begin: {outcomes.Ready: ask, outcomes.Calls: gate, ...: END},
    ask: {outcomes.Calls: gate, outcomes.Failed: END, ...: append},
    gate: {outcomes.Settled: execute, ...: append},
    execute: {...: append},
    append: {...: END},
})
'''


def test_the_command_line_knows_the_tools_of_a_file(tmp_path: Path) -> None:
    """`TOOLS` beside a graph are those that its runs are given."""
    file = tmp_path / "desk.py"
    for name, status in (("refnud", 1), ("refund", 0)):
        file.write_text(SOURCE.replace("NAME", name), encoding="utf-8")
        done = CliRunner().invoke(app, ["check", str(file)])
        assert status == done.exit_code, done.output
        assert (name == "refnud") == ("refnud" in done.output)
