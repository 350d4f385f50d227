"""The simulation: crashes, aborts, silence and failures where and when they are ordered."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from graphloop import EndReason
from graphloop.drivers import sim
from graphloop.drivers.ports import Approval
from graphloop.drivers.sim import World, simulate
from graphloop.effects import CallTool, Effect
from graphloop.errors import GraphloopError
from graphloop.events import CallCheck, Changes, Event, Setup
from graphloop.graph import END, Graph
from graphloop.node import Kind, Leave, Reaction, Wait
from graphloop.outcomes import Done, Outcome
from graphloop.run import Run
from graphloop.tool_outcome import ToolOutcome
from graphloop.values import Reply
from tests.strategies import QUESTION, Adversary, call, loop, reply, setup

ASKED = (CallCheck(needs_approval=True),)
TWO = Adversary((reply("done"), reply(call())))


@dataclass(frozen=True)
class ToolFirst:
    """Calls one tool at once."""

    name: str = "tool_first"
    kind: Kind = "execute"
    outcomes: frozenset[type[Outcome]] = frozenset({Done})

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Call."""
        return Wait(run, (CallTool(run.next_effect, "c0.0", call()),))

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Leave."""
        return Leave(run, Done())


def test_a_crash_right_after_the_start_performs_the_first_effects_again() -> None:
    """The first event is as good a place to die as any other."""
    node = ToolFirst()
    graph: Graph[None] = Graph("g", node, {node: {Done: END}})

    simulation = simulate(graph, QUESTION, TWO.world, None, setup=Setup(), crash_after=(1,))

    assert simulation.run.ended
    assert {"c0.0": 2} == simulation.executions
    assert not simulation.repeated


@dataclass(frozen=True)
class ToolTwice(ToolFirst):
    """Calls one tool, and once it has answered calls it again under the same key."""

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Call again, once."""
        return self.enter(run) if run.next_effect == 2 else Leave(run, Done())


def test_a_call_that_runs_again_after_its_result_is_reported() -> None:
    """The simulation's own alarm must ring, or its silence proves nothing."""
    node = ToolTwice()
    graph: Graph[None] = Graph("g", node, {node: {Done: END}})

    assert {"c0.0"} == simulate(graph, QUESTION, TWO.world, None, setup=Setup()).repeated


def test_a_crash_repeats_only_what_had_not_ended() -> None:
    """Of two tools under way, the one whose result is in the journal does not run again."""
    adversary = Adversary((reply("done"), reply(call(), call())))
    kinds = [type(one).__name__ for one in adversary.run(loop()).events]
    first_result = kinds.index("ToolReturned") + 1

    simulation = adversary.run(loop(), crash_after=(first_result,))

    counts = simulation.executions
    assert [1, 2] == sorted([counts["c0.0"], counts["c0.1"]])
    assert not simulation.repeated


@pytest.mark.parametrize("decision", [Approval(True), Approval(False), ValueError("?")])
def test_a_human_who_answers_lets_the_run_go_on(decision: Approval | Exception) -> None:
    """A human who fails is one who did not approve."""
    adversary = Adversary((reply("done"), reply(call())), checks=ASKED, decisions=(decision,))

    simulation = adversary.run(loop())

    assert simulation.run.ended
    assert (decision == Approval(True)) == bool(simulation.executions)


def test_a_human_who_says_nothing_parks_the_run() -> None:
    """And an abort still ends it."""
    adversary = Adversary((reply(call()),), checks=ASKED, decisions=(None,))

    parked = adversary.run(loop())
    aborted = adversary.run(loop(), abort_after=len(parked.events))

    assert not parked.run.ended
    assert aborted.run.ending is not None
    assert EndReason.ABORTED is aborted.run.ending.reason


@pytest.mark.parametrize("answers", [(Changes(),), (ValueError("bug"),)])
def test_callbacks_are_part_of_the_world(answers: tuple[Changes | Exception, ...]) -> None:
    """A world without them says so."""
    graph = loop(callback="mine")

    with_them = Adversary((reply("done"),), callbacks=answers).run(graph)
    world = World(model=TWO.model, tool=TWO.tool)
    without = simulate(graph, QUESTION, world, None, setup=Setup())

    assert with_them.run.ended
    assert without.run.ending is not None
    assert without.run.ending.failure is not None
    assert "no callback for 'mine'" in without.run.ending.failure.message


def test_by_default_calls_are_valid_and_nobody_is_there() -> None:
    """The smallest world is a model and a tool."""
    world = World(model=TWO.model, tool=TWO.tool)
    asking = World(model=TWO.model, tool=TWO.tool, check=lambda effect: ASKED * len(effect.calls))

    simulation = simulate(loop(), QUESTION, world, None, setup=setup())
    parked = simulate(loop(), QUESTION, asking, None, setup=setup())

    assert {"c0.0": 1} == {key: simulation.executions[key] for key in ["c0.0"]}
    assert simulation.run.ended
    assert ["AskHuman"] == [type(one).__name__ for one in parked.run.pending.values()]


def test_a_world_in_which_nothing_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulation is bounded too, and names its seed."""
    monkeypatch.setattr(sim, "EVENTS_MAX", 5)

    with pytest.raises(GraphloopError, match="seed 3: not over after 5 events"):
        Adversary((reply(call()),)).run(loop(), seed=3)


def test_the_replies_of_a_world_are_what_the_run_keeps() -> None:
    """Nothing is added by the simulation."""
    said: Reply = reply("only this")

    simulation = Adversary((said,)).run(loop())

    assert said.message == simulation.run.messages[-1]
    assert ToolOutcome("fine", "ok") == TWO.tools[0]
