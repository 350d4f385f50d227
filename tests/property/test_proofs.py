"""The checker, tested both ways: what it proves holds in every run, and no mutant escapes it.

Safe topologies are built from a small grammar, proven, and then run against adversaries. Each is
spoilt in every known way: the checker must name the property that is lost, and where its witness
is a path, a simulated run must be able to take it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphloop.conversation.repair import open_calls
from graphloop.events import AnswerChecked
from graphloop.graph import NodeGraph
from graphloop.proofs.bounds import bound
from graphloop.proofs.checking import check
from graphloop.proofs.report import Report
from graphloop.spending import Budget
from tests.recording import recorded
from tests.sizes import sized
from tests.strategies import Adversary, failing
from tests.topology_data import MUTANTS, Mutant, Topology, graph_of, standard
from tests.witness import is_run

REPEATED = 4


@st.composite
def safe_topologies(draw: st.DrawFn) -> Topology:
    """Draw one or two standard loops in a row, each varied."""
    loops = [
        standard(
            max_steps=draw(st.integers(1, 4)),
            retries=tuple(draw(st.lists(st.integers(0, 2), max_size=2))),
            context_window=draw(st.sampled_from([None, 1_000])),
            hold=draw(st.booleans()),
            critic=draw(st.booleans()),
            fallbacks=tuple(["other"] * draw(st.integers(0, 1))),
            prefix=prefix,
        )
        for prefix in draw(st.sampled_from([("",), ("one-", "two-")]))
    ]
    whole = loops[0]
    for after in loops[1:]:
        last = next(one for one in reversed(whole["nodes"]) if one.endswith(("critic", "verify")))
        whole["edges"][last]["accepted"] = after["start"]
        whole["nodes"] |= after["nodes"]
        whole["edges"] |= after["edges"]
    return whole


def checked(topology: Topology) -> tuple[NodeGraph[Any], Report]:
    graph, given = graph_of(topology), topology.get("budget")
    return graph, check(graph, budget=None if given is None else Budget(**given))


judging = st.lists(
    st.builds(AnswerChecked, st.booleans(), st.just("no"), st.booleans()), min_size=1, max_size=3
)


@settings(max_examples=sized(15))
@given(safe_topologies())
def test_safe_topologies_are_proven(topology: Topology) -> None:
    """A proof that refuses good graphs is turned off within a week."""
    _, report = checked(topology)

    assert () == report.findings
    assert {"GL12"} == {one.code for one in report.unknown}


@settings(max_examples=sized(15), deadline=None)
@given(safe_topologies(), failing, judging, st.none() | st.integers(1, 40), st.integers(0, 99))
def test_what_is_proven_holds_in_every_run(
    topology: Topology,
    adversary: Adversary,
    judged: list[AnswerChecked],
    abort_after: int | None,
    seed: int,
) -> None:
    """No call is left without an answer, and no node is visited more often than it may be."""
    graph = graph_of(topology)
    known = bound(graph)
    heard, left, entered = recorded(graph)
    world = Adversary(
        adversary.models,
        adversary.tools,
        adversary.checks,
        adversary.decisions,
        callbacks=tuple(judged),
    )

    run = world.run(heard, seed=seed, abort_after=abort_after).run

    if run.ended:
        assert () == run.turn.calls
        assert not open_calls(run.messages)
    assert known.model_calls is not None
    assert run.spent.model_calls <= known.model_calls
    for name, times in Counter(entered).items():
        most = known.visits[name]
        assert most is not None
        assert times <= most, (name, times, most)
    assert len(left) <= len(entered)


def _harmless(mutant: Mutant, topology: Topology) -> bool:
    """Whether no run takes what the mutant changes, which the tables alone do not show."""
    loops = [name for name in topology["nodes"] if name.endswith("stop")]
    last = topology["nodes"][loops[-1]]
    gate = topology["nodes"][loops[-1].removesuffix("stop") + "gate"]
    match mutant.name:
        case "gate bypassed by a conversation" | "handed-in calls skipped":
            # Calls that a conversation brings along are answered in the first loop.
            return len(loops) > 1
        case "held calls not asked about":
            # Such a gate holds the whole batch until a person has spoken: it leaves none held.
            return bool(gate["hold"])
        case "turn not opened":
            # Each loop before has taken a step, and this loop another: none is left to go on.
            return bool(last["max_steps"] <= len(loops))
        case _:
            return False


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
@settings(max_examples=sized(2, 200), deadline=None)
@given(topology=safe_topologies())
def test_every_mutant_is_found(mutant: Mutant, topology: Topology) -> None:
    """What nobody has ever seen the checker find, it may as well not look for."""
    _, report = checked(mutant.of(topology))

    found = {one.code for one in report.findings}
    if _harmless(mutant, topology):
        assert mutant.code in found | {one.code for one in report.unknown}
    else:
        assert not report.ok or mutant.warns
        assert mutant.code in found
    assert mutant.code not in report.proven


@pytest.mark.parametrize("mutant", [one for one in MUTANTS if one.walks], ids=lambda one: one.name)
def test_the_witness_of_a_mutant_can_be_walked(mutant: Mutant) -> None:
    """A counterexample that cannot happen costs more trust than it wins."""
    graph, report = checked(mutant.of(standard(hold=False, retries=(1,))))

    for finding in report.findings:
        if finding.code == mutant.code:
            # One that goes in circles does so several times.
            assert is_run(graph, finding, repeated=REPEATED * (finding.code == "GL4")), finding.path
