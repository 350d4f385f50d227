"""The simulation: crashes, aborts, silence and failures where and when they are ordered."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from graphloop import EndReason
from graphloop.effects import AwaitCaller, CallTool, Effect, StartRun
from graphloop.errors import GraphloopError
from graphloop.events import (
    CallCheck,
    Cancelled,
    Changes,
    ChildEnded,
    Event,
    Queued,
    Setup,
    Steered,
    ToolReturned,
)
from graphloop.graph import END, NodeGraph
from graphloop.node_protocol import Kind, Leave, Reaction, Wait
from graphloop.outcomes import Done, Outcome
from graphloop.own_nodes.compose import parallel
from graphloop.policy.approvals import Approval
from graphloop.replay import replay
from graphloop.run import Run, evolve
from graphloop.spending import Spent
from graphloop.testing import sim
from graphloop.testing.sim import LATENCY_MAX_S, ChildAnswer, Simulation, World, simulate
from graphloop.tools.outcome import ToolOutcome
from graphloop.values import UserMessage
from tests.strategies import QUESTION, SETUP, Adversary, call, loop, reply, setup, spec

DONE = reply("done")
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


def test_a_crash_at_the_start_performs_the_first_effects_again() -> None:
    """The first event is as good a place to die as any other."""
    node = ToolFirst()
    graph: NodeGraph[None] = NodeGraph("g", node, {node: {Done: END}})

    simulation = simulate(graph, QUESTION, TWO.world, None, setup=Setup(), crash_after=(1,))

    assert simulation.run.ended
    assert {"c0.0": 1} == simulation.executions
    assert ["Started", "Resumed", "EffectsStarted", "ToolReturned"] == kinds(simulation)


def kinds(simulation: Simulation[None]) -> list[str]:
    """Return the kinds of the events of a journal."""
    return [type(one).__name__ for one in simulation.events]


def test_an_interruption_comes_after_the_named_event() -> None:
    """At the time that it is then; nothing that is under way is lost by it."""
    said = Queued(0.0, UserMessage("Wait."))
    enough = Cancelled(0.0, "enough", after_step=True)
    meanwhile: dict[int, Queued | Cancelled] = {1: said, 3: enough}

    run = simulate(loop(), QUESTION, TWO.world, None, setup=setup(), meanwhile=meanwhile)

    assert ["Started", "Queued", "ModelReplied", "Cancelled", "CallsChecked"] == kinds(run)[:5]
    assert run.events[2].at == run.events[3].at > 0
    assert run.run.ending is not None
    assert EndReason.ABORTED == run.run.ending.reason


def crashing(after: int, *, repeatable: bool, seed: int = 0) -> tuple[Simulation[None], int]:
    """Return a run of one tool that crashes after an event, and how often the tool took effect."""
    node = ToolFirst()
    graph: NodeGraph[None] = NodeGraph("g", node, {node: {Done: END}})
    effects: list[str] = []

    def tool(effect: CallTool) -> ToolOutcome:
        effects.append(effect.key)
        return ToolOutcome("fine", "ok")

    world = World(model=TWO.model, tool=tool, repeatable=lambda _: repeatable)
    simulation = simulate(
        graph, QUESTION, world, None, setup=Setup(), seed=seed, crash_after=(after,)
    )
    return simulation, len(effects)


def test_a_tool_that_must_not_repeat_is_noted_before_it_starts() -> None:
    """A process that dies between the two has started nothing, and nobody knows that."""
    simulation, effects = crashing(2, repeatable=False)

    assert ["Started", "EffectsStarted", "Resumed", "ToolReturned"] == kinds(simulation)
    assert ({}, 0) == (simulation.executions, effects)
    last = simulation.events[-1]
    assert isinstance(last, ToolReturned)
    assert "unknown" == last.status


def interrupted(*, repeatable: bool, seed: int) -> tuple[Simulation[None], list[str]]:
    """Return a run of two tools that crashes when the first has ended, and what took effect."""
    effects: list[str] = []
    models = (DONE, reply(call(), call()), *[DONE] * 9)
    adversary = Adversary(models, repeatable=repeatable)

    def tool(effect: CallTool) -> ToolOutcome:
        effects.append(effect.key)
        return ToolOutcome("fine", "ok")

    world = dataclasses.replace(adversary.world, tool=tool)
    run = simulate(loop(), QUESTION, world, None, setup=setup(), seed=seed)
    first = kinds(run).index("ToolReturned") + 1
    effects.clear()
    return simulate(
        loop(), QUESTION, world, None, setup=setup(), seed=seed, crash_after=(first,)
    ), effects


def test_a_crash_leaves_open_whether_a_tool_had_taken_effect() -> None:
    """Both happen, by the seed; the answer is "unknown" either way, and it starts once."""
    found = set[int]()
    for seed in range(20):
        simulation, effects = interrupted(repeatable=False, seed=seed)
        statuses = sorted(one.status for one in simulation.run.record.steps[0].tool_results)
        assert ["ok", "unknown"] == statuses
        assert {"c0.0": 1, "c0.1": 1} == simulation.executions
        assert not simulation.repeated
        found.add(len(effects))

    assert {1, 2} == found


def test_a_repeatable_tool_starts_again_after_a_crash() -> None:
    """That is what its author has allowed."""
    found = set[int]()
    for seed in range(20):
        simulation, effects = interrupted(repeatable=True, seed=seed)
        assert ["ok", "ok"] == [one.status for one in simulation.run.record.steps[0].tool_results]
        assert not simulation.repeated
        found.add(len(effects))

    assert {2, 3} == found


def test_the_time_that_a_process_was_dead_is_nobody_s_work() -> None:
    """A run that is taken up a week later has not used up its budget."""
    adversary = Adversary((reply("done"), reply(call())))
    calm = adversary.run(loop())

    crashed = adversary.run(loop(), crash_after=range(1, 9))

    assert crashed.run.at - calm.run.at > LATENCY_MAX_S * 10
    assert crashed.run.spent.seconds <= LATENCY_MAX_S * len(crashed.events)
    assert calm.run.at == pytest.approx(calm.run.spent.seconds)


def test_a_begun_call_that_starts_again_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fold that forgets `EffectsStarted` would pay twice, and the simulation must say so."""

    def forgetful(graph: NodeGraph[None], events: Iterable[Event]) -> Run[None]:
        return evolve(replay(graph, events), started=frozenset())

    monkeypatch.setattr(sim, "replay", forgetful)

    simulation, _ = interrupted(repeatable=False, seed=1)

    assert simulation.repeated


AGENT = (spec("ask", "agent"), spec("read"))
ASKING = Adversary((DONE, reply(call("ask"), call("read")), *[DONE] * 9))


@pytest.mark.parametrize(
    ("child", "status"),
    [
        (("42", "ok", Spent(1, 5)), "ok"),
        (("no", "error", Spent(1)), "error"),
        (OSError("?"), "error"),
    ],
)
def test_a_child_ends_as_the_world_says(child: ChildAnswer | Exception, status: str) -> None:
    """And what it has used is the run's."""
    adversary = dataclasses.replace(ASKING, children=(child,))

    run = adversary.run(loop(), setup=Setup("model", AGENT)).run

    assert [status, "ok"] == [one.status for one in run.record.steps[0].tool_results]
    assert run.spent.tool_calls == 1 + (5 if status == "ok" else 0)


def test_a_child_that_parks_parks_the_run_after_its_siblings() -> None:
    """Nothing of them is lost (CONTRACT §9 #41)."""
    adversary = dataclasses.replace(ASKING, children=(None,))

    simulation = adversary.run(loop(), setup=Setup("model", AGENT))

    assert ["StartRun"] == [type(one).__name__ for one in simulation.run.pending.values()]
    assert {"c0.1": 1} == simulation.executions


def test_the_caller_of_an_attended_run_is_part_of_the_world() -> None:
    """By default it lets the run go on; what it says is at the time, and for the effect, it is."""
    attended = evolve(setup(), attended=True)
    world = World(model=TWO.model, tool=TWO.tool)
    more = Steered(-1.0, 99, append=(UserMessage("more"),))

    def say_more(_: AwaitCaller, run: Run[None]) -> Steered:
        return more

    talking = dataclasses.replace(world, steer=say_more)

    silent = simulate(loop(), QUESTION, world, None, setup=attended)
    steered = simulate(loop(max_steps=1), QUESTION, talking, None, setup=attended)

    assert EndReason.COMPLETED is getattr(silent.run.ending, "reason", None)
    assert 3 == kinds(silent).count("Steered")
    assert 2 == kinds(steered).count("Steered")
    times = [one.at for one in steered.events]
    assert times == sorted(times)
    assert [UserMessage("more")] * 2 == list(steered.run.record.added)[-2:]


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


def test_a_world_in_which_nothing_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulation is bounded too, and names its seed."""
    monkeypatch.setattr(sim, "EVENTS_MAX", 5)

    with pytest.raises(GraphloopError, match="seed 3: not over after 5 events"):
        Adversary((reply(call()),)).run(loop(), seed=3)


@pytest.mark.parametrize("after", range(1, 12))
def test_an_abort_counts_only_the_tools_that_have_started(after: int) -> None:
    """The simulated process knows, as a real one does, what it has begun."""
    world = Adversary((DONE, reply(call(), call()))).world

    simulation = simulate(loop(), QUESTION, world, None, setup=SETUP, seed=3, abort_after=after)

    assert simulation.executions.total() == simulation.run.spent.tool_calls


@pytest.mark.parametrize("seed", range(8))
def test_an_abandoned_child_ends_and_has_spent_all_or_nothing(seed: int) -> None:
    """A process may die before it, or in the middle of it: the run still hears of each child."""
    fan, spent = parallel("quick", "slow", "slow", join="first"), Spent(1, 1)
    graph: NodeGraph[None] = NodeGraph("fan", fan, {fan: {...: END}})

    def child(effect: StartRun) -> ChildAnswer:
        return (effect.agent, "ok", spent)

    world = World(model=TWO.model, tool=TWO.tool, child=child)
    for crash in range(1, 6):
        simulation = simulate(
            graph, QUESTION, world, None, setup=SETUP, seed=seed, crash_after=(crash,)
        )

        ends = [one for one in simulation.events if isinstance(one, ChildEnded)]
        assert ["ok", "not_run", "not_run"] == [one.status for one in ends]
        assert {Spent(), spent} >= {one.spent for one in ends}
        assert simulation.run.ended
        assert not simulation.repeated
