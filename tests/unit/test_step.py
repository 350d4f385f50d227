"""step: the kernel's own rules, with nodes made for breaking them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from graphloop.effects import CallTool, Effect, Invoke
from graphloop.errors import GraphError, IllegalEvent
from graphloop.events import (
    CallbackReturned,
    CallCheck,
    CallsChecked,
    Cancelled,
    Event,
    ModelReplied,
    Setup,
    Started,
    ToolReturned,
    Tripped,
)
from graphloop.graph import END, Graph
from graphloop.node import Kind, Leave, Reaction, Wait
from graphloop.outcomes import Aborted, Done, Go, Outcome
from graphloop.run import EndReason, Run, evolve
from graphloop.step import SETTLE_MAX, Step, begin, step
from graphloop.values import Usage
from tests.graphs import Place
from tests.strategies import QUESTION, call, loop, reply, setup, wrong

STARTED = Started(1.0, "r", "g", QUESTION, Setup())


@dataclass(frozen=True)
class Wishing:
    """Wishes for these effects, and leaves by one outcome when one is answered."""

    effects: Callable[[int], tuple[Effect, ...]]
    outcome: type[Outcome] = Done
    name: str = "wishing"
    kind: Kind = "pure"
    outcomes: frozenset[type[Outcome]] = frozenset({Done, Aborted})

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Wish."""
        return Wait(run, self.effects(run.next_effect))

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Leave."""
        return Leave(run, self.outcome())


def graph(node: Wishing) -> Graph[None]:
    """Return a graph of this node alone."""
    return Graph("g", node, {node: {...: END}})


def begun(node: Wishing) -> Step[None]:
    """Return the first step."""
    return begin(graph(node), STARTED, None)


def invoke(number: int) -> tuple[Effect, ...]:
    """Wish for one callback."""
    return (Invoke(number, "f"),)


def test_a_run_begins_at_the_start_with_what_it_was_given() -> None:
    """The first event is all it knows."""
    node = Wishing(invoke)

    taken = begun(node)

    run = taken.run
    assert ("r", "g", "wishing", 1) == (run.id, run.graph, run.node, run.seq)
    assert (1.0, 1.0) == (run.at, run.started_at)
    assert QUESTION == tuple(run.messages)
    assert (Invoke(1, "f"),) == taken.effects
    assert {1: Invoke(1, "f")} == run.pending
    assert 2 == run.next_effect


def test_an_answer_is_taken_once() -> None:
    """The second is a driver's bug."""
    node = Wishing(invoke)
    answer = CallbackReturned(2.0, 1, Tripped())

    taken = step(graph(node), begun(node).run, answer)

    assert taken.run.ended
    assert taken.run.ending is not None
    assert EndReason.COMPLETED is taken.run.ending.reason
    assert (2.0, 2) == (taken.run.at, taken.run.seq)
    with pytest.raises(IllegalEvent, match="is over"):
        step(graph(node), taken.run, answer)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (CallbackReturned(2.0, 9, Tripped()), "waits for \\[1\\]"),
        (ToolReturned(2.0, 1, ""), "answered by CallbackReturned or EffectFailed"),
        (STARTED, "has started already"),
    ],
)
def test_an_event_that_nothing_asked_for_is_refused(event: Event, message: str) -> None:
    """Nothing is counted, nothing is changed."""
    node = Wishing(invoke)

    with pytest.raises(IllegalEvent, match=message):
        step(graph(node), begun(node).run, event)


def test_an_abort_voids_everything_that_is_pending() -> None:
    """And says who or what stopped the run."""
    node = Wishing(invoke, Aborted)

    run = step(graph(node), begun(node).run, Cancelled(3.0, "user")).run

    assert not run.pending
    assert (3.0, 2) == (run.at, run.seq)
    assert run.ending is not None
    assert (EndReason.ABORTED, ("user",)) == (run.ending.reason, run.ending.stopped_by)


def test_an_outcome_that_was_not_declared_is_an_error_with_a_fix() -> None:
    """No transition exists outside the table."""
    node = Wishing(invoke, Go)

    with pytest.raises(GraphError, match="left by 'go', which it does not declare"):
        step(graph(node), begun(node).run, CallbackReturned(2.0, 1, Tripped()))


def test_a_cycle_that_never_waits_is_found() -> None:
    """A thousand nodes within one event are a circle."""
    place = Place("round", frozenset({Go}))
    circle = Graph[None]("g", place, {place: {Go: place}})

    with pytest.raises(GraphError, match=f"within {SETTLE_MAX} transitions"):
        begin(circle, STARTED, None)


def skipping(number: int) -> tuple[Effect, ...]:
    """Leave a number out."""
    return (Invoke(number + 1, "f"),)


def repeating(number: int) -> tuple[Effect, ...]:
    """Use a number twice."""
    return (Invoke(number, "f"), Invoke(number, "g"))


WISHES: list[tuple[Callable[[int], tuple[Effect, ...]], str]] = [
    (skipping, r"expected 1, found Invoke\(id=2.*`run.next_effect` upwards"),
    (repeating, r"expected 2, found Invoke\(id=1.*`run.next_effect` upwards"),
    (lambda _: (wrong(None),), "wished for None, which is no effect.*CallTool"),
    (lambda number: wrong(Invoke(number, "f")), r"write `Wait\(run, \(effect,\)\)`"),
    (lambda number: wrong([Invoke(number, "f")]), r"write `Wait\(run, \(effect,\)\)`"),
]


@pytest.mark.parametrize(("effects", "found"), WISHES)
def test_a_node_that_wishes_wrongly_is_named_with_the_fix(
    effects: Callable[[int], tuple[Effect, ...]], found: str
) -> None:
    """A wish under a wrong number could never be answered."""
    with pytest.raises(GraphError, match=f"node 'wishing': .*{found}"):
        begun(Wishing(effects))


@dataclass(frozen=True)
class Unruly:
    """Reacts to everything with whatever its function makes of the run."""

    react: Callable[[Run[None]], object]
    name: str = "unruly"
    kind: Kind = "pure"
    outcomes: frozenset[type[Outcome]] = frozenset({Done})

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """React."""
        reaction: Reaction[None, Outcome] = wrong(self.react(run))
        return reaction

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """React."""
        return self.enter(run)


def behind(unruly: Unruly) -> Graph[None]:
    """Return a graph that leads to the node after the first answer."""
    first = Wishing(invoke)
    return Graph("g", first, {first: {...: unruly}, unruly: {...: END}})


REACTIONS: list[tuple[Callable[[Run[None]], object], str]] = [
    (lambda _: None, r"returned None, no reaction. Fix: return Wait\(run, …\) or Leave"),
    (lambda run: run, r"returned Run\(.*, no reaction"),
    (lambda _: Wait(wrong(None)), "waits with something that is not a run"),
    (lambda run: Leave(run, wrong(Done)), r"by the class 'Done'.*`Leave\(run, Done\(\)\)`"),
    (lambda run: Leave(run, wrong("done")), "left by 'done', which is no outcome.*own: done"),
    (lambda _: Leave(wrong(None), Done()), "left with None in place of a run"),
]


@pytest.mark.parametrize(("react", "found"), REACTIONS)
def test_a_reaction_that_is_none_is_reported_by_the_name_of_its_node(
    react: Callable[[Run[None]], object], found: str
) -> None:
    """Wherever the kernel asks: at the start, behind an outcome, and at an event."""
    node = Unruly(react)
    alone = Graph[None]("g", node, {node: {...: END}})
    table = behind(node)
    run = begin(table, STARTED, None).run

    with pytest.raises(GraphError, match=f"node 'unruly': .*{found}"):
        begin(alone, STARTED, None)
    with pytest.raises(GraphError, match=f"node 'unruly': .*{found}"):
        step(table, run, CallbackReturned(2.0, 1, Tripped()))
    with pytest.raises(GraphError, match=f"node 'unruly': .*{found}"):
        step(table, evolve(run, node="unruly"), Cancelled(2.0))


def test_a_node_may_stay_for_the_rest_of_its_effects() -> None:
    """It need not wish for more to go on waiting."""
    table = behind(Unruly(Wait))
    two = {number: Invoke(number, "f") for number in (1, 2)}
    run = evolve(begin(table, STARTED, None).run, node="unruly", pending=two)

    taken = step(table, run, CallbackReturned(2.0, 1, Tripped()))

    assert () == taken.effects
    assert ("unruly", {2: two[2]}) == (taken.run.node, taken.run.pending)


def test_what_a_node_raises_comes_through_with_the_node_s_name() -> None:
    """The exception is its author's; which of twenty nodes raised it is ours to say."""

    def fail(run: Run[None]) -> object:
        raise LookupError(run.id)

    node = Unruly(fail)
    alone = Graph[None]("g", node, {node: {...: END}})
    table = behind(node)
    run = begin(table, STARTED, None).run

    with pytest.raises(LookupError) as entered:
        begin(alone, STARTED, None)
    with pytest.raises(LookupError) as reached:
        step(table, run, CallbackReturned(2.0, 1, Tripped()))
    with pytest.raises(LookupError) as told:
        step(table, evolve(run, node="unruly"), Cancelled(2.0))

    for caught in (entered, reached, told):
        assert ["raised by node 'unruly' of graph 'g'"] == caught.value.__notes__


def test_a_node_that_waits_for_nothing_is_named() -> None:
    """Its run would stand still for ever."""
    with pytest.raises(GraphError, match="waits for nothing"):
        begun(Wishing(lambda _: ()))


def test_a_run_must_not_end_while_it_waits() -> None:
    """What is pending at the end would be performed for nobody."""
    node = Wishing(lambda number: (Invoke(number, "f"), Invoke(number + 1, "g")))

    with pytest.raises(GraphError, match=r"node 'wishing': ended the run while it waits.* 2"):
        step(graph(node), begun(node).run, CallbackReturned(2.0, 1, Tripped()))


def test_what_models_and_tools_cost_is_added_up() -> None:
    """An unknown price is counted, never taken for nothing."""
    started = Started(0.0, "r", "agent", QUESTION, setup())
    table = loop()
    run = begin(table, started, None).run

    run = step(table, run, ModelReplied(1.0, 1, reply(call()), 0.5)).run

    assert (1, 0, 0.5, 0) == counted(run)
    run = step(table, run, CallsChecked(2.0, 2, (CallCheck(),))).run
    run = step(table, run, ToolReturned(3.0, 3, "x")).run
    run = step(table, run, ModelReplied(4.0, 4, reply("done"), 0.25)).run

    assert (2, 1, 0.75, 0) == counted(run)
    assert Usage(20, 10) == run.spent.usage


def counted(run: Run[None]) -> tuple[int, int, float, int]:
    """Return what was counted."""
    spent = run.spent
    return (spent.model_calls, spent.tool_calls, spent.cost_usd, spent.unpriced_calls)


def test_a_tool_s_answer_is_counted() -> None:
    """By the answer, not by the wish."""
    node = Wishing(lambda number: (CallTool(number, "c0.0", call()),))

    run = step(graph(node), begun(node).run, ToolReturned(2.0, 1, "x")).run

    assert (0, 1, 0.0, 0) == counted(run)


def test_a_reply_without_a_price_is_counted_as_such() -> None:
    """The bill says that it is not complete."""
    table = loop()
    run = begin(table, Started(0.0, "r", "agent", QUESTION, setup()), None).run

    run = step(table, run, ModelReplied(1.0, 1, reply("done"))).run

    assert (1, 0, 0.0, 1) == counted(run)
