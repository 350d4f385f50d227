"""fuzz: every planted bug is found and shrunk; what is sound passes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from graphloop import END, Agent, Compaction, Graph, allow, ask, node, tool
from graphloop.cli.target import load_graph
from graphloop.errors import ConfigError
from graphloop.outcomes import Outcome
from graphloop.rules import never
from graphloop.testing import ScriptedModel
from graphloop.testing.choices import Choices
from graphloop.testing.fuzzing import Fuzzer, fuzz, replay_token
from graphloop.testing.report import Failing
from graphloop.testing.subject import subject_of
from graphloop.testing.trial import Trial
from graphloop.testing.violation import Violation
from graphloop.topology.loaded import dump, load
from graphloop.topology.registration import Registry
from tests.sizes import sized
from tests.unit.testing.planted import BUGS, table

EXAMPLE = Path(__file__).parents[3] / "examples" / "custom_topology"

ENDLESS = sized(300, 1_000)
SOUND = sized(60, 1_000)
"""How many runs find nothing in what is sound."""

EVENTS = {"endless": ENDLESS, "bound": 25}
"""Within how many events a shrunk run shows its bug; six turns are needed to exceed a bound."""


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
def read(text: str) -> str:
    """Read."""
    return text


def first_failing(bug: str) -> Failing:
    """Return the run of the first of 200 seeds that shows the bug, at its simplest."""
    code, make = BUGS[bug]
    fuzzer = Fuzzer(subject_of(make()), ENDLESS)
    failing = (one for seed in range(200) for one in fuzzer.search(seed, 1).failing)
    return next(one for one in failing if one.violations[0].code == code)


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found_within_200_seeds_and_shrunk(bug: str) -> None:
    """A fuzzer that has never found anything has proven nothing."""
    code, _ = BUGS[bug]

    found = first_failing(bug)

    assert 0 < found.violations[0].event <= EVENTS.get(code, 12)
    assert len(found.token) < 60


def test_a_replayed_token_tells_the_same_story() -> None:
    """That is how a failure travels from CI to a desk."""
    code, make = BUGS["a tool that is run again"]
    found = first_failing("a tool that is run again")

    once, twice = replay_token(make(), found.token), replay_token(make(), found.token)

    assert str(once) == str(twice)
    (again,) = once.failing
    assert (found.trace, found.token, code) == (again.trace, again.token, again.violations[0].code)
    assert not once.notes


def test_a_token_of_another_table_says_so_and_still_runs() -> None:
    """Whoever mends a graph wants to see that it is mended."""
    token = first_failing("a call that is lost").token

    mended = replay_token(table(), token)
    changed = replay_token(Agent(ScriptedModel(())), token)

    assert mended.ok
    assert not mended.notes
    assert "have changed since" in changed.notes[0]


def test_the_standard_agent_keeps_every_promise() -> None:
    """With tools, rules of the gate, and a caller who iterates it."""
    report = fuzz(Agent(ScriptedModel(()), tools=[pay]), seeds=SOUND)

    assert report.ok, str(report)
    assert all(report.coverage.nodes.values())


def test_a_sound_loop_and_the_example_keep_every_promise() -> None:
    """The first topology that most people see."""
    example = load_graph(str(EXAMPLE))

    assert fuzz(table(), seeds=SOUND).ok
    assert fuzz(example, seeds=SOUND).ok


@tool(needs_approval=True)
def refund(amount: int) -> str:
    """Pay back, when a person agrees."""
    return f"refunded {amount}"


def test_a_tool_that_needs_approval_never_runs_without_one() -> None:
    """It is no function that could decide otherwise: the rule holds, and nothing is found."""
    rule = never("tool:refund", before="approval:refund")

    of_agent = fuzz(Agent(ScriptedModel(()), tools=[refund, pay]), seeds=SOUND, rules=rule)
    of_graph = fuzz(table(), seeds=SOUND, rules=rule, tools={"refund": refund})

    assert of_agent.ok, str(of_agent)
    assert of_graph.ok, str(of_graph)


def test_the_tools_of_a_file_are_fuzzed_as_registered() -> None:
    """Its file says which they are, and the registry whether a person is asked about them."""
    registry = Registry()
    registry.tool(refund)
    graph = load(dump(table(), registry=registry) + "tools: [refund]\n", registry=registry)
    rule = never("tool:refund", before="approval:refund")

    subject = subject_of(graph, rules=rule)

    assert {"refund": True} == subject.approvals
    assert {"refund", "read"} < {one.name for one in subject.setup.tools}
    assert ("refund", "pay") == tuple(one.name for one in subject_of(graph, [pay]).setup.tools)
    assert fuzz(graph, seeds=SOUND, rules=rule).ok


def test_a_broken_rule_is_found_at_its_event() -> None:
    """Rules of one's own are invariants as well."""
    report = fuzz(table(), seeds=200, rules=never("tool:deploy"))

    (found,) = report.failing
    assert "rule: never tool:deploy" in str(found.violations[0])
    assert found.violations[0].event <= 4


def test_the_search_stops_when_enough_has_failed() -> None:
    """The eleventh failure says little more."""
    report = fuzz(BUGS["no gate at all"][1](), seeds=200)

    assert 10 == report.failed
    assert report.seeds < 200
    assert ("stopped after 10 failing seeds",) == report.notes


@pytest.mark.parametrize("interrupt_at", [15, 40])
def test_ctrl_c_tells_what_was_found(interrupt_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long search is ended by hand, while it searches or shrinks, and nothing found is lost."""
    fuzzer = Fuzzer(subject_of(BUGS["no gate at all"][1]()))
    tried = fuzzer.tried
    calls = 0

    def interrupted(
        choices: Choices, events_max: int | None = None
    ) -> tuple[Trial[None], tuple[Violation, ...]]:
        nonlocal calls
        calls += 1
        if calls == interrupt_at:
            raise KeyboardInterrupt
        return tried(choices, events_max)

    monkeypatch.setattr(fuzzer, "tried", interrupted)
    report = fuzzer.search(0, 200)

    assert report.interrupted
    # It heeds no budget either.
    assert ["gate", "bound"] == [one.violations[0].code for one in report.failing]


@dataclass(frozen=True)
class Ticket:
    """A state."""

    text: str


class Filed(Outcome):
    """Done."""


@node
def file_ticket(ticket: Ticket) -> Filed:
    """File it."""
    return Filed()


DESK: Graph[Ticket] = Graph("desk", file_ticket, {file_ticket: {...: END}})


def test_a_state_that_cannot_be_made_is_asked_for() -> None:
    """By its type; what can be made is made."""
    with pytest.raises(ConfigError, match="give one with `state=`"):
        fuzz(DESK)

    report = fuzz(DESK, seeds=50, state=Ticket("x"))
    assert report.ok
    assert 0 < report.coverage.edges["file_ticket", "filed"] < 50


def test_a_token_of_other_rules_says_so() -> None:
    """They are a part of the world: without them the same token may find nothing."""
    rules = never("tool:read", before="append")
    token = fuzz(table(), seeds=50, rules=rules).failing[0].token

    without = replay_token(table(), token)

    assert without.ok
    assert without.other_rules
    assert "other rules than this token was made with" in without.notes[0]
    assert not replay_token(table(), token, rules=rules).other_rules


def test_every_outcome_that_an_agent_s_options_allow_is_seen() -> None:
    """What never comes is never tried; `compact.failed` needs a `compact` function of one's own."""
    agent = Agent(
        ScriptedModel(()),
        tools=[pay, read],
        gate=ask("pay") | allow("*"),
        run_ungated=True,
        compaction=Compaction(context_window=1_000, keep_recent_turns=1),
        prepare_step=lambda _: None,
        stop_when=lambda _: False,
        verify=lambda _: True,
    )

    report = fuzz(agent, seeds=sized(600, 2_000))

    assert report.ok, str(report)
    assert {"compact.failed"} >= set(report.coverage.unseen)


@pytest.mark.parametrize("parallel", [False, True])
def test_every_verdict_of_a_screen_is_seen(parallel: bool) -> None:
    """A fuzzer whose judges give no verdict tries nothing of what comes after them."""
    judge = Agent(ScriptedModel(()), name="judge", output_type=bool)
    agent = Agent(ScriptedModel(()), screen=[bool, judge], screen_in_parallel=parallel)

    report = fuzz(agent, seeds=300)

    assert report.ok, str(report)
    node = "model_call" if parallel else "screen"
    assert all(report.coverage.edges[node, way] for way in ("blocked", "failed", "aborted"))
    assert all(report.coverage.nodes[name] for name in ("model_call", "verify", "append"))
