"""Endings: what a run that is over, or was stopped, has to say of that."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from graphloop.contract import Contract
from graphloop.drivers.sim import Simulation
from graphloop.effects import Effect
from graphloop.events import Cancelled, Event, Setup
from graphloop.fuzz.choices import Choices
from graphloop.fuzz.endings import unexplained, unfinished
from graphloop.fuzz.fuzzing import fuzz
from graphloop.fuzz.subject import Subject, invented_tools
from graphloop.fuzz.trials import tried
from graphloop.node_protocol import Leave, Reaction
from graphloop.outcomes import Outcome
from graphloop.run import Ending, EndReason, Run, evolve
from tests.unit.fuzz.planted import Around, table, twisted

GRAPH = table()
SUBJECT: Subject[None] = Subject(GRAPH, None, Setup("model", invented_tools(GRAPH)))
CALM = tried(SUBJECT, Choices.given(()), 100)


@dataclass(frozen=True)
class Silent(Around):
    """Leaves without an ending of the run."""

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Drop it."""
        return silenced(super().enter(run))

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Drop it."""
        return silenced(super().on(run, event, answered))


class Unpromising(Silent):
    """Has promised nothing."""

    @property
    def contract(self) -> object:
        return Contract()


def silenced(reaction: Reaction[None, Outcome]) -> Reaction[None, Outcome]:
    """Return a decision without an ending."""
    if not isinstance(reaction, Leave):
        return reaction
    return Leave(evolve(reaction.run, ending=None), reaction.outcome)


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("stop", "node 'stop_check' left by 'stop', and the run has no ending"),
        ("model", "node 'model_call' left by 'failed', and the run has no ending"),
    ],
)
def test_a_node_that_drops_the_ending_is_found(kind: str, found: str) -> None:
    """The caller would read that a run is completed which came to its bound, or broke."""
    report = fuzz(table(lambda node: Silent(node) if node.kind == kind else node), seeds=100)

    told = [one for each in report.failing for one in each.violations if one.code == "ending"]
    assert any(found in one.what for one in told)
    assert all(one.event for one in told)


def test_a_node_that_has_promised_no_ending_owes_none() -> None:
    """A node of one's own that stops a run may mean that it is completed."""
    graph = twisted("stop", Unpromising)
    subject = replace(SUBJECT, graph=graph)

    for seed in range(60):
        trial = tried(subject, Choices.seeded(seed), 500)
        assert [] == list(unexplained(subject, trial.deeds))


def test_a_run_that_was_stopped_says_so() -> None:
    """Whoever stopped it would think that it had its answer."""
    assert CALM.simulation is not None
    run, at = CALM.simulation.run, len(CALM.events)

    def found(*events: Event, ending: Ending | None = run.ending) -> list[str]:
        made = Simulation(evolve(run, ending=ending), [*CALM.events, *events])
        return [one.what for one in unfinished(made)]

    stopped = Cancelled(9.0, "enough")
    assert [] == found()
    assert ["a run that is over has no ending"] == found(ending=None)
    assert ["a run that was stopped says that it is completed"] == found(stopped)
    assert [] == found(stopped, ending=Ending(EndReason.ABORTED))
    assert [] == found(stopped, ending=Ending(EndReason.TIMEOUT))
    assert [] == found(Cancelled(9.0, "enough", after_step=True))
    made = Simulation(run, [*CALM.events, stopped])
    assert [at + 1] == [one.event for one in unfinished(made)]
