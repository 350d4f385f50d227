"""The adversary: a world that is a function of its choices."""

from __future__ import annotations

from graphloop import Graph, ask
from graphloop.approvals import Approval
from graphloop.drivers.sim import Simulation, simulate
from graphloop.effects import AskHuman, CallTool, CheckCalls, HandOver, StartRun
from graphloop.fuzz.adversary import Adversary, steered_by_a_caller
from graphloop.fuzz.choices import Choices
from graphloop.fuzz.watching import Notes, watched_graph
from graphloop.nodes import Gate
from graphloop.run import evolve
from graphloop.spending import Budget, Spent
from graphloop.turn import Turn
from graphloop.values import call_key
from tests.strategies import QUESTION, SETUP, call, fresh, loop
from tests.unit.fuzz.planted import table


def adversary(
    seed: int = 0, *, stubborn: bool = False, graph: Graph[None] | None = None
) -> Adversary:
    """Return the adversary of a seed, against a loop whose gate has conditions."""
    wishers = dict.fromkeys(range(9), "gate")
    return Adversary(graph or table(), Choices.seeded(seed), stubborn=stubborn, wishers=wishers)


def gated() -> Graph[None]:
    """Return a loop whose gate asks under a condition."""

    def large(arguments: object, context: object) -> bool:
        return True

    rules = ask("read", when=large).rules
    return table(lambda node: Gate(rules=rules) if node.kind == "gate" else node)


def played(seed: int, *, stubborn: bool = False) -> Simulation[None]:
    """Return a run of the standard loop against the adversary."""
    notes, graph = Notes(), loop()
    world = Adversary(graph, Choices.seeded(seed), stubborn=stubborn, wishers=notes.wishers).world
    return simulate(watched_graph(graph, notes), QUESTION, world, None, setup=SETUP)


def test_the_same_choices_make_the_same_run() -> None:
    """Byte for byte."""
    for seed in range(20):
        assert played(seed).events == played(seed).events


def test_silence_may_be_broken_and_a_word_stays() -> None:
    """A person is asked again when a process comes back, and does not change their mind."""
    words: list[tuple[object, object]] = []
    for seed in range(200):
        world = adversary(seed).world
        asked = AskHuman(1, "c0.0", call())
        try:
            words.append((world.human(asked), world.human(asked)))
        except ValueError:
            continue

    assert all(first == second for first, second in words if first is not None)
    assert any(first is None and second is not None for first, second in words)


def test_conditions_of_a_gate_hold_do_not_hold_and_fail() -> None:
    """All three decide differently."""
    told = set[tuple[object, object]]()
    for seed in range(200):
        try:
            (check,) = adversary(seed, graph=gated()).world.check(CheckCalls(1, 0, (call(),), (0,)))
        except RuntimeError:
            continue
        if not check.problem:
            told.add((check.held, check.unmet))

    assert {((("large",),), ((),)), (((),), (("large",),)), (((),), ((),))} == told


def test_a_stubborn_world_says_the_same_for_ever_and_is_kind() -> None:
    """So that what nothing bounds goes on."""
    world = adversary(3, stubborn=True).world

    assert Approval(approved=True) == world.human(AskHuman(1, "k", call()))
    assert ("42", "ok") == (world.child(StartRun(1, "k", "a", "", ())) or ("", "", None))[:2]
    assert "ok" == world.tool(CallTool(1, "k", call())).status
    assert 1 == len(world.check(CheckCalls(1, 0, (call(),), (0,))))


def test_a_caller_says_something_now_and_then() -> None:
    """Or lets the run go on."""
    said = {len(adversary(seed).world.steer(HandOver(1), fresh()).append) for seed in range(20)}

    assert {0, 1} == said


def test_a_child_uses_up_its_budget_and_never_more_tool_calls_than_it_has() -> None:
    """No run does; money and tokens are looked at between turns, and may be exceeded."""
    spent: list[Spent] = []
    for seed in range(60):
        child = StartRun(1, "k", "a", "", (), Budget(tool_calls=2, usd=0.5))
        try:
            ended = adversary(seed).world.child(child)
        except RuntimeError:
            continue
        spent += [] if ended is None else [ended[2]]

    assert {0, 1, 2} == {one.tool_calls for one in spent}
    assert any(one.cost_usd > 0.5 for one in spent)


TURN = Turn(number=2, calls=(call("read"), call("write")))
RUN = evolve(fresh(), turn=TURN)


def test_a_caller_says_everything_that_it_may() -> None:
    """Nothing, messages, results, another conversation, other tools."""
    said = [steered_by_a_caller(RUN, Choices.seeded(seed)) for seed in range(300)]

    assert any(not one.append and one.messages is None and not one.results for one in said)
    assert any(one.append for one in said)
    assert any(one.messages is not None for one in said)
    assert any(one.setup is not None for one in said)
    assert {0, 1, 2} == {len(one.results) for one in said}


def test_results_are_of_calls_of_the_turn() -> None:
    """Others would be refused, and nothing would have been tried."""
    keys = {call_key(2, 0), call_key(2, 1)}
    for seed in range(200):
        assert keys >= {one.key for one in steered_by_a_caller(RUN, Choices.seeded(seed)).results}


def test_the_simplest_caller_says_nothing() -> None:
    """So that shrinking gets rid of it."""
    said = steered_by_a_caller(RUN, Choices.given(()))

    assert ((), None, (), None) == (said.append, said.messages, said.results, said.setup)
