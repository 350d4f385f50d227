"""Fuzzer: nodes that roll dice, leave or hang, and its own faults, cost nothing that was found."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from graphloop import Graph
from graphloop.proofs.call_bounds import Bound
from graphloop.testing.fuzzing import Fuzzer, fuzz, replay_token
from graphloop.testing.oracle import violations
from graphloop.testing.subject import Subject, subject_of
from graphloop.testing.trial import Trial
from graphloop.testing.violation import Violation
from tests.unit.testing.moody import (
    exiting,
    flaky,
    interrupting,
    open_gate,
    rolling,
    seldom,
    two_faults,
)
from tests.unit.testing.planted import BUGS


@pytest.mark.parametrize("graph", [flaky(50), flaky(7), rolling()])
def test_a_node_that_rolls_dice_is_a_finding_with_its_name(graph: Graph[None]) -> None:
    """It does not fail again when it is shrunk, so all that can be told is where runs part."""
    report = fuzz(graph, seeds=200)

    told = [one for each in report.failing for one in each.violations if one.code == "replay"]
    assert told
    assert any("node 'model_call'" in one.what for one in told)
    assert any(one.event for one in told)
    assert all(each.violations and each.trace for each in report.failing)


def test_a_node_that_changes_between_runs_is_found_by_repeating() -> None:
    """Within one run it is consistent, and its journal leads to the run again."""
    report = fuzz(seldom(), seeds=20)

    found = report.failing[0]
    assert "replay" == found.violations[0].code
    assert "the same choices made another run" in found.violations[0].what
    assert "'model_call'" in found.violations[0].what
    assert not found.repeats
    assert "may not fail again" in str(report)


def test_no_promise_is_made_that_an_impure_node_fails_again() -> None:
    """It has failed twice, and a third time is up to it."""
    graph = BUGS["a node that remembers"][1]()

    report = fuzz(graph, seeds=20)
    again = replay_token(graph, report.failing[0].token)

    assert "replay" == report.failing[0].violations[0].code
    assert [False] == [one.repeats for one in report.failing]
    assert "at its simplest" not in str(report)
    assert all("may not fail again" in str(one) for one in (report, again) if one.failing)


def test_a_node_that_rolls_dice_hides_nothing_else() -> None:
    """What else is wrong is found, and is shrunk as far as the dice let it."""
    report = fuzz(two_faults(), seeds=200)

    assert {"broken", "replay"} <= {one.code for each in report.failing for one in each.violations}


@pytest.mark.parametrize("leaves", [SystemExit(3), GeneratorExit()])
def test_a_node_that_exits_the_process_breaks_only_its_run(
    leaves: BaseException,
) -> None:
    """The search goes on, and nobody thinks that somebody pressed Ctrl-C."""
    report = fuzz(exiting(leaves), seeds=50)

    assert not report.interrupted
    assert "broken" == report.failing[0].violations[0].code
    assert type(leaves).__name__ in report.failing[0].violations[0].what
    assert report.seeds > 5


@pytest.fixture
def _python_s_handler() -> Iterator[None]:
    """Have Ctrl-C raise `KeyboardInterrupt`, whatever handler an earlier test has left."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_python_s_handler")
def test_ctrl_c_in_a_node_that_does_not_return_names_it() -> None:
    """With the seed that brings it there again."""
    report = fuzz(interrupting(lambda: signal.raise_signal(signal.SIGINT)), seeds=50)

    assert report.interrupted
    assert f"node 'execute' had not returned, in seed {report.seeds}" in str(report)


def test_a_fault_of_the_fuzzer_costs_one_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others were judged, and what was found there is told."""
    fuzzer = Fuzzer(subject_of(BUGS["a tool that is run again"][1]()))
    judged = violations
    calls = 0

    def faulty(subject: Subject[None], trial: Trial[None], bound: Bound) -> Iterator[Violation]:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise LookupError("lost")
        yield from judged(subject, trial, bound)

    monkeypatch.setattr("graphloop.testing.fuzzing.violations", faulty)
    report = fuzzer.search(0, 60)

    codes = {one.code for each in report.failing for one in each.violations}
    assert {"unjudged", "broken"} <= codes
    assert "LookupError: lost" in str(report)


def test_a_gate_of_one_s_own_that_lets_everything_pass_is_found() -> None:
    """What a gate calls itself does not count; that nobody checked the call does."""
    report = fuzz(open_gate(), seeds=200)

    assert "gate" == report.failing[0].violations[0].code
    assert "no gate has checked this call" in report.failing[0].violations[0].what
    assert report.failing[0].violations[0].event <= 4
