"""The oracle: what it says of runs that it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphloop.drivers.sim import Simulation
from graphloop.errors import IllegalEvent
from graphloop.events import Setup
from graphloop.fuzz.choices import Choices
from graphloop.fuzz.oracle import Trial, violations
from graphloop.fuzz.subject import Subject, invented_tools
from graphloop.fuzz.trials import tried
from graphloop.proofs.bound import bound
from graphloop.run import Run
from graphloop.spending import Budget
from graphloop.temporal import always_followed_by, never
from graphloop.temporal_names import names_of, resolve
from graphloop.values import evolve
from tests.runs import changed
from tests.strategies import loop

GRAPH = loop()
SETUP = Setup("model", invented_tools(GRAPH))
CALM = tried(Subject(GRAPH, None, SETUP), Choices.given(()), 100)
CALLING = tried(Subject(GRAPH, None, SETUP), Choices.given([0] * 9 + [1]), 100)


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
    assert CALM.story.run is not None
    run = CALM.story.run

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
    broken = replace(raised, story=replace(CALM.story, broken=KeyError("x")))

    assert ["replay"] == codes(raised)
    assert ["endless"] == codes(replace(raised, endless=True))
    assert ["broken"] == codes(broken)


def test_rules_are_judged_at_their_event_and_what_is_owed_at_the_end() -> None:
    """Both kinds of rule: what must not happen, and what has to."""
    found = [
        (one.code, one.event)
        for one in violations(
            Subject(
                GRAPH,
                None,
                SETUP,
                resolve(
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
