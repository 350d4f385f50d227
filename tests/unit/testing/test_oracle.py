"""The oracle: its judgement of runs that it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from graphloop.contract import Contract
from graphloop.errors import IllegalEvent
from graphloop.events import Cancelled, Event, Setup
from graphloop.graph import names_of
from graphloop.node_protocol import Kind, Leave
from graphloop.proofs.bounds import bound
from graphloop.rules import always_followed_by, never
from graphloop.rules.names import resolve_words
from graphloop.run import Ending, EndReason, Run
from graphloop.spending import Budget
from graphloop.testing.choices import Choices
from graphloop.testing.fuzzing import fuzz
from graphloop.testing.oracle import unexplained, unfinished, violations
from graphloop.testing.sim import Simulation
from graphloop.testing.subject import Subject, invented_tools
from graphloop.testing.trial import Trial, tried
from graphloop.values import evolve
from tests.runs import changed
from tests.strategies import loop
from tests.unit.testing.planted import Decision, Twisted, deciding, table, twisted

GRAPH = loop()
SETUP = Setup("model", invented_tools(GRAPH))
CALM = tried(Subject(GRAPH, None, SETUP), Choices.replayed(()), 100)
CALLING = tried(Subject(GRAPH, None, SETUP), Choices.replayed([0] * 9 + [1]), 100)


def codes(trial: Trial[None]) -> list[str]:
    """Return what is said of a trial."""
    subject = Subject(GRAPH, None, SETUP)
    return [one.code for one in violations(subject, trial, bound(GRAPH))]


def with_run(trial: Trial[None], run: Run[None], repeated: Sequence[str] = ()) -> Trial[None]:
    """Return a trial that came to another run."""
    assert trial.simulation is not None
    made = Simulation(run, list(trial.events), repeated=set(repeated))
    return replace(trial, simulation=made)


def test_nothing_is_said_of_a_run_that_keeps_everything() -> None:
    """Silence has to mean something."""
    assert [] == codes(CALM)
    assert [] == codes(CALLING)


def test_another_run_than_the_journal_s_is_found() -> None:
    """Resume would go on with it."""
    assert CALM.trace.run is not None
    run = CALM.trace.run

    assert ["replay"] == codes(with_run(CALM, changed(run, denials=7)))
    assert ["replay", "ending"] == codes(with_run(CALM, evolve(run, ending=None)))
    assert ["replay", "stuck"] == codes(with_run(CALM, evolve(run, node="gate")))
    assert ["once"] == codes(with_run(CALM, run, ["c0.0"]))


def test_more_tools_than_the_budget_has_room_for_are_found() -> None:
    """The one number of a budget that no run may exceed."""
    subject = Subject(GRAPH, None, SETUP)

    def found(most: int) -> list[str]:
        within = bound(GRAPH, budget=Budget(tool_calls=most))
        return [one.what for one in violations(subject, CALLING, within)]

    assert [] == found(1)
    assert ["1 tools run; the budget has room for 0"] == found(0)


def test_what_was_raised_is_told_as_what_it_means() -> None:
    """A loop without an end, a journal that does not fit, or a node that broke."""
    raised = replace(CALM, simulation=None, error=IllegalEvent("?"))
    broken = replace(raised, trace=replace(CALM.trace, broken=KeyError("x")))

    assert ["replay"] == codes(raised)
    assert ["endless"] == codes(replace(raised, endless=True))
    assert ["broken"] == codes(broken)


def test_a_broken_rule_has_its_event_and_an_owed_one_the_end() -> None:
    """Both kinds of rule: what must not happen, and what has to."""
    found = [
        (one.code, one.event)
        for one in violations(
            Subject(
                GRAPH,
                None,
                SETUP,
                resolve_words(
                    never("node:append") & always_followed_by("node:gate", "node:compact"),
                    names_of(GRAPH),
                ),
            ),
            CALLING,
            None,
        )
    ]

    assert 2 == len(found)
    assert {"rule"} == {code for code, _ in found}
    assert found[0][1] < found[1][1] == len(CALLING.events)


PLAIN = table()
PLAIN_SUBJECT: Subject[None] = Subject(PLAIN, None, Setup("model", invented_tools(PLAIN)))
ANSWERED = tried(PLAIN_SUBJECT, Choices.replayed(()), 100)


def silenced(_: Run[None], __: Event | None, reaction: Decision) -> Decision:
    """Leave without an ending of the run."""
    if not isinstance(reaction, Leave):
        return reaction
    return Leave(evolve(reaction.run, ending=None), reaction.outcome)


class Unpromising(Twisted):
    """Has promised nothing."""

    @property
    def contract(self) -> object:
        return Contract()


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("stop", "node 'stop_check' left by 'stop', and the run has no ending"),
        ("model", "node 'model_call' left by 'failed', and the run has no ending"),
    ],
)
def test_a_node_that_drops_the_ending_is_found(kind: Kind, found: str) -> None:
    """The caller would read that a run is completed which came to its bound, or broke."""
    report = fuzz(twisted(kind, deciding(silenced)), seeds=100)

    told = [one for each in report.failing for one in each.violations if one.code == "ending"]
    assert any(found in one.what for one in told)
    assert all(one.event for one in told)


def test_a_node_that_has_promised_no_ending_owes_none() -> None:
    """A node of one's own that stops a run may mean that it is completed."""
    graph = twisted("stop", lambda node: Unpromising(node, decided=silenced))
    subject = replace(PLAIN_SUBJECT, graph=graph)

    for seed in range(60):
        trial = tried(subject, Choices.seeded(seed), 500)
        assert [] == list(unexplained(subject, trial.trace))


def test_a_run_that_was_stopped_says_so() -> None:
    """Whoever stopped it would think that it had its answer."""
    assert ANSWERED.simulation is not None
    run, at = ANSWERED.simulation.run, len(ANSWERED.events)

    def found(*events: Event, ending: Ending | None = run.ending) -> list[str]:
        made = with_run(ANSWERED, evolve(run, ending=ending))
        return [one.what for one in unfinished(replace(made, events=(*made.events, *events)))]

    stopped = Cancelled(9.0, "enough")
    assert [] == found()
    assert ["a run that is over has no ending"] == found(ending=None)
    assert ["a run that was stopped says that it is completed"] == found(stopped)
    assert [] == found(stopped, ending=Ending(EndReason.ABORTED))
    assert [] == found(stopped, ending=Ending(EndReason.TIMEOUT))
    assert [] == found(Cancelled(9.0, "enough", after_step=True))
    made = replace(ANSWERED, events=(*ANSWERED.events, stopped))
    assert [at + 1] == [one.event for one in unfinished(made)]
