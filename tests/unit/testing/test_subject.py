"""Subject: the graph that is fuzzed, and its tools."""

from __future__ import annotations

import pytest

from graphloop import Agent, Graph, allow, ask, deny
from graphloop.cli.errors import Status
from graphloop.contract import contract_of
from graphloop.events import Setup
from graphloop.nodes import Gate
from graphloop.rules import never
from graphloop.testing import ScriptedModel
from graphloop.testing.choices import Choices
from graphloop.testing.fuzzing import Fuzzer, fuzz
from graphloop.testing.subject import Subject, furnished, invented_tools, rules_of_gate, subject_of
from tests.sizes import sized
from tests.unit.cli.command_line import called
from tests.unit.testing.kernel_faults import FAULTS
from tests.unit.testing.planted import table


def gated() -> Graph[None]:
    """Return a loop whose gate names tools."""
    rules = (deny("drop_table", "db_*") | ask("pay")).rules
    return table(lambda node: Gate(rules=rules) if node.kind == "gate" else node)


def test_invented_tools_include_those_that_gates_and_rules_name() -> None:
    """A rule about a tool that nobody can call would never be tried."""
    graph = gated()

    tools = invented_tools(graph, never("tool:deploy", before="approval:merge"))

    names = [one.name for one in tools]
    assert {"drop_table", "pay", "deploy", "merge"} < set(names)
    assert "db_*" not in names
    assert {"function", "client", "agent"} == {one.kind for one in tools}
    assert [2, 0] == [len(rules_of_gate(graph.nodes[one])) for one in ("gate", "append")]


def test_the_mark_tells_a_changed_table_and_changed_tools() -> None:
    """The same choices make another run then."""
    graph = gated()
    subject = Subject(graph, None, Setup("model", invented_tools(graph)))

    assert subject.mark == Subject(gated(), None, subject.setup).mark
    assert subject.mark != Subject(table(), None, Setup("model")).mark
    assert subject.mark != Subject(graph, None, Setup("model")).mark


SEEDS = 300
EVENTS_MAX = 400
"""After how many events a run of a kernel that never ends has shown enough."""


def test_the_kernel_is_sound_where_its_faults_are_looked_for() -> None:
    """Each of the faults below is found by what this finds nothing with."""
    report = fuzz(Agent(ScriptedModel(())), seeds=sized(SEEDS // 2, 2 * SEEDS))

    assert report.ok, str(report)
    assert all(report.coverage.nodes.values())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_kernel_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No tool of a user's own is needed: the standard agent comes with a world."""
    plant, codes = FAULTS[fault]
    fuzzer = Fuzzer(subject_of(Agent(ScriptedModel(()))))
    plant(monkeypatch)

    found = set[str]()
    for seed in range(SEEDS):
        found |= {one.code for one in fuzzer.tried(Choices.seeded(seed), EVENTS_MAX)[1]}
        if found & codes:
            break

    assert found & codes, found


def test_the_command_finds_a_fault_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """`graphloop fuzz agent` is what somebody types who has changed the kernel."""
    FAULTS["a denied call runs"][0](monkeypatch)

    done = called("fuzz", "agent", "--seeds", "50")

    assert Status.FAILED == done.returncode
    assert "gate: tool " in done.stdout


def test_an_option_of_the_agent_s_own_stays() -> None:
    """Only what it lacks is added."""
    gate = allow("*")
    agent = furnished(Agent(ScriptedModel(()), gate=gate, max_steps=3))

    assert (gate, 3) == (agent.options.get("gate"), agent.options.get("max_steps"))
    kinds = {one.kind for one in subject_of(agent).setup.tools}
    assert {"function", "client", "agent"} == kinds
    assert contract_of(agent.graph.nodes["compact"]) is not None
    assert agent.options.get("compaction") is not None
