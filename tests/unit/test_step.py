"""step: the kernel's own rules, with nodes made for breaking them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from graphloop.effects import AskHuman, AwaitCaller, CallTool, Effect, Invoke, StartRun
from graphloop.errors import GraphError, IllegalEvent
from graphloop.events import (
    CallbackReturned,
    CallCheck,
    CallsChecked,
    Cancelled,
    ChildEnded,
    Decided,
    EffectFailed,
    EffectsStarted,
    Event,
    Failure,
    ModelReplied,
    Queued,
    Resumed,
    Setup,
    Started,
    Steered,
    StopRequested,
    ToolReturned,
)
from graphloop.graph import END, NodeGraph
from graphloop.node_protocol import Kind, Leave, Reaction, Wait
from graphloop.nodes import StopCheck
from graphloop.outcomes import Aborted, Done, Go, Outcome, Stop
from graphloop.run import Ending, EndReason, Run, evolve
from graphloop.spending import Spent
from graphloop.step import TRANSITIONS_MAX, Step, begin, step
from graphloop.turn import Turn
from graphloop.values import ToolResult, Usage, UserMessage
from tests.graphs import Place
from tests.runs import changed
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


def graph(node: Wishing) -> NodeGraph[None]:
    """Return a graph of this node alone."""
    return NodeGraph("g", node, {node: {...: END}})


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
    assert ("r", "wishing", 1) == (run.id, run.node, run.seq)
    assert (1.0, 1.0) == (run.at, run.record.started_at)
    assert QUESTION == tuple(run.messages)
    assert (Invoke(1, "f"),) == taken.effects
    assert {1: Invoke(1, "f")} == run.pending
    assert 2 == run.next_effect


def test_an_answer_is_taken_once() -> None:
    """The second is a driver's bug."""
    node = Wishing(invoke)
    answer = CallbackReturned(2.0, 1, StopRequested())

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
        (CallbackReturned(2.0, 9, StopRequested()), "waits for \\[1\\]"),
        (ToolReturned(2.0, 1, ""), "expected CallbackReturned or EffectFailed"),
        (STARTED, "has started already"),
    ],
)
def test_an_event_that_nothing_asked_for_is_refused(event: Event, message: str) -> None:
    """Nothing is counted, nothing is changed."""
    node = Wishing(invoke)

    with pytest.raises(IllegalEvent, match=message):
        step(graph(node), begun(node).run, event)


def test_an_outcome_that_was_not_declared_is_an_error_with_a_fix() -> None:
    """No transition exists outside the table."""
    node = Wishing(invoke, Go)

    with pytest.raises(GraphError, match="left by 'go', which it does not declare"):
        step(graph(node), begun(node).run, CallbackReturned(2.0, 1, StopRequested()))


def test_a_cycle_that_never_waits_is_found() -> None:
    """A thousand nodes within one event are a circle."""
    place = Place("round", frozenset({Go}))
    circle = NodeGraph[None]("g", place, {place: {Go: place}})

    with pytest.raises(GraphError, match=f"within {TRANSITIONS_MAX} transitions"):
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
    (lambda _: (wrong(None),), "asked for None, which is no effect.*CallTool"),
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


def behind(unruly: Unruly) -> NodeGraph[None]:
    """Return a graph that leads to the node after the first answer."""
    first = Wishing(invoke)
    return NodeGraph("g", first, {first: {...: unruly}, unruly: {...: END}})


REACTIONS: list[tuple[Callable[[Run[None]], object], str]] = [
    (lambda _: None, r"returned None, no reaction. Fix: return Wait\(run, …\) or Leave"),
    (lambda run: run, r"returned <Run .*, no reaction"),
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
    alone = NodeGraph[None]("g", node, {node: {...: END}})
    table = behind(node)
    run = begin(table, STARTED, None).run

    with pytest.raises(GraphError, match=f"node 'unruly': .*{found}"):
        begin(alone, STARTED, None)
    with pytest.raises(GraphError, match=f"node 'unruly': .*{found}"):
        step(table, run, CallbackReturned(2.0, 1, StopRequested()))
    with pytest.raises(GraphError, match=f"node 'unruly': .*{found}"):
        step(table, evolve(run, node="unruly"), Cancelled(2.0))


def test_the_node_behind_one_that_left_without_a_run_is_not_blamed_alone() -> None:
    """The kernel looks at a run where it rests; the note of the error tells who lost it."""
    one, other = Unruly(lambda _: Leave(wrong(None), Done()), "one"), Wishing(invoke, name="other")
    table = NodeGraph[None]("g", one, {one: {...: other}, other: {...: END}})

    with pytest.raises(AttributeError) as raised:
        begin(table, STARTED, None)

    assert "the node before it left with None in place of a run" in raised.value.__notes__


@pytest.mark.parametrize("event", [ChildEnded(2.0, 1, "", "not_run"), Cancelled(2.0)])
def test_a_child_that_is_abandoned_stays_so_until_it_has_ended(event: Event) -> None:
    """A driver ends it; so does an abort of the run."""
    table = behind(Unruly(Wait))
    two: dict[int, Effect] = {at: StartRun(at, f"k.{at}", "a", "", ()) for at in (1, 2)}
    begun_run = begin(table, STARTED, None).run
    run = changed(begun_run, node="unruly", pending=two, abandoned=True)
    ending = Unruly(lambda run: Leave(run, Done()))
    if isinstance(event, Cancelled):
        table = behind(ending)

    taken = step(table, run, event)

    left = frozenset[int]() if isinstance(event, Cancelled) else frozenset({2})
    assert left == taken.run.abandoned


def test_what_a_node_raises_comes_through_with_the_node_s_name() -> None:
    """The exception is its author's; which of twenty nodes raised it is ours to say."""

    def fail(run: Run[None]) -> object:
        raise LookupError(run.id)

    node = Unruly(fail)
    alone = NodeGraph[None]("g", node, {node: {...: END}})
    table = behind(node)
    run = begin(table, STARTED, None).run

    with pytest.raises(LookupError) as entered:
        begin(alone, STARTED, None)
    with pytest.raises(LookupError) as reached:
        step(table, run, CallbackReturned(2.0, 1, StopRequested()))
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
        step(graph(node), begun(node).run, CallbackReturned(2.0, 1, StopRequested()))


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


WORK = Invoke(1, "f")
HUMAN = AskHuman(2, "c0.0", call())
CLIENT = CallTool(3, "c0.1", call("client"), client=True)
CHILD = StartRun(4, "c0.2", "agent", "", QUESTION)
CALLER = AwaitCaller(5)
TOOL = CallTool(6, "c0.3", call())


def idle(*pending: Effect, at: float = 10.0) -> Run[None]:
    """Return a run that waits for these effects at a node that never leaves for them."""
    run = begun(Wishing(invoke)).run
    return evolve(run, at=at, pending={one.id: one for one in pending}, next_effect=9)


def noted(event: Event, *pending: Effect) -> Run[None]:
    """Return the run after an event that answers nothing."""
    run = idle(*(pending or (WORK,)))
    taken = step(graph(Wishing(invoke)), run, event)
    assert () == taken.effects
    assert (run.node, run.seq + 1, run.pending) == (
        taken.run.node,
        taken.run.seq,
        taken.run.pending,
    )
    return taken.run


def test_what_somebody_says_is_noted_where_it_belongs() -> None:
    """The run stays where it is until somebody reads it."""
    note = UserMessage("wait")

    assert ((note,), ()) == (
        noted(Queued(11.0, note)).inbox.steering,
        noted(Queued(11.0, note)).inbox.follow_ups,
    )
    later = noted(Queued(11.0, note, follow_up=True))
    assert ((), (note,)) == (later.inbox.steering, later.inbox.follow_ups)


@pytest.mark.parametrize("follow_up", [True, False])
def test_a_message_of_a_store_counts_once(follow_up: bool) -> None:
    """A driver may hear it from the mailbox, and again from its worker; others have no id."""
    run = first = idle(WORK)
    for signal_id in ("s1", "s1", "s2", "", ""):
        said = Queued(11.0, UserMessage("x"), follow_up, signal_id)
        run = step(graph(Wishing(invoke)), run, said).run

    assert 4 == len(run.inbox.follow_ups if follow_up else run.inbox.steering)
    assert 5 == run.seq - first.seq


def test_a_stop_after_the_step_voids_nothing() -> None:
    """The turn comes to its end, and the stop check finds the reason."""
    run = noted(Cancelled(11.0, "enough", after_step=True))

    assert ("enough", None) == (run.inbox.stopping, run.ending)


def test_what_has_begun_is_known_until_it_is_answered() -> None:
    """Also when the same is said twice, as after a crash between the two."""
    table = graph(Wishing(invoke, name="wishing"))
    run = noted(EffectsStarted(11.0, (6, 1)), WORK, TOOL)
    again = step(table, run, EffectsStarted(11.0, (6,))).run

    assert frozenset({1, 6}) == run.started == again.started
    stays = NodeGraph[None]("g", staying := Staying(), {staying: {...: END}})
    answered = step(stays, evolve(run, node="staying"), ToolReturned(12.0, 6, "x")).run
    assert frozenset({1}) == answered.started


def test_what_a_lost_attempt_has_used_is_on_the_bill() -> None:
    """A process that died has paid for it; the next one says so when it begins again."""
    assert SPENT == noted(EffectsStarted(10.0, (1,), SPENT), WORK).spent


def test_what_nobody_wished_for_cannot_begin() -> None:
    """A journal that says so is not this run's."""
    with pytest.raises(
        IllegalEvent, match=r"EffectsStarted names effects \[7\] .* waits for \[1\]"
    ):
        noted(EffectsStarted(11.0, (1, 7)), WORK)


def test_being_taken_up_again_changes_nothing_but_the_time() -> None:
    """Nobody worked while no process was there."""
    run = noted(Resumed(5_000.0), TOOL)

    assert (5_000.0, 0.0) == (run.at, run.spent.seconds)


@pytest.mark.parametrize(
    ("pending", "seconds"),
    [
        ((WORK,), 7.0),
        ((TOOL,), 7.0),
        ((HUMAN,), 0.0),
        ((CLIENT,), 0.0),
        ((CHILD,), 0.0),
        ((CALLER,), 0.0),
        ((HUMAN, CLIENT, CHILD, CALLER), 0.0),
        ((HUMAN, TOOL), 7.0),
        ((CHILD, WORK), 7.0),
    ],
)
def test_only_time_in_which_the_run_itself_works_is_counted(
    pending: tuple[Effect, ...], seconds: float
) -> None:
    """People take their time, and children count their own."""
    for event in (
        Queued(17.0, UserMessage("x")),
        EffectsStarted(17.0, ()),
        Cancelled(17.0, after_step=True),
    ):
        assert seconds == noted(event, *pending).spent.seconds
    stopped = step(graph(Wishing(invoke, Aborted)), idle(*pending), Cancelled(17.0)).run
    assert seconds == stopped.spent.seconds


def test_a_clock_that_goes_backwards_gives_no_time_back() -> None:
    """Clocks are set while runs go on."""
    assert 0.0 == noted(EffectsStarted(3.0, ()), WORK).spent.seconds


def test_the_time_of_an_answer_is_counted_like_any_other() -> None:
    """From the last event on, whatever it was."""
    table = NodeGraph[None]("g", staying := Staying(), {staying: {...: END}})
    run = evolve(idle(TOOL, HUMAN, WORK), node="staying")

    run = step(table, run, ToolReturned(12.0, 6, "x")).run
    run = step(table, run, CallbackReturned(15.0, 1, StopRequested())).run
    run = step(table, run, Queued(99.0, UserMessage("x"))).run

    assert 5.0 == run.spent.seconds


SPENT = Spent(1, 2, Usage(3, 4), 0.5, 1, 6.0)


@pytest.mark.parametrize(
    ("effect", "event", "expected"),
    [
        (CHILD, ChildEnded(10.0, 4, "42", spent=SPENT), SPENT),
        (CHILD, EffectFailed(10.0, 4, Failure("E", "m"), SPENT), SPENT),
        (WORK, EffectFailed(10.0, 1, Failure("E", "m"), SPENT), SPENT),
        (TOOL, EffectFailed(10.0, 6, Failure("E", "m")), Spent(0, 1)),
        (TOOL, ToolReturned(10.0, 6, "x", "unknown"), Spent(0, 1)),
        (CALLER, Steered(10.0, 5), Spent()),
        (HUMAN, Decided(10.0, 2, approved=True), Spent()),
    ],
)
def test_what_children_and_failures_have_used_is_the_run_s(
    effect: Effect, event: Event, expected: Spent
) -> None:
    """It has been paid for (CONTRACT §9 #24); a tool that failed has run, or may have."""
    table = NodeGraph[None]("g", staying := Staying(), {staying: {...: END}})
    run = evolve(idle(effect, evolve(WORK, id=8)), node="staying")

    assert expected == step(table, run, event).run.spent


@pytest.mark.parametrize(
    ("agent", "event", "expected"),
    [
        ("c0.2", ChildEnded(10.0, 4, "42", spent=Spent(agent_calls=5)), 6),
        ("c0.2", ChildEnded(10.0, 4, "no", "error"), 1),
        ("c0.2", EffectFailed(10.0, 4, Failure("E", "m")), 1),
        ("c0.2", Cancelled(10.0, spent=Spent(agent_calls=5)), 6),
        ("c0.2", Cancelled(10.0, unstarted=(4,)), 0),
        ("node.4", ChildEnded(10.0, 4, "42", spent=Spent(agent_calls=5)), 5),
        ("node.4", Cancelled(10.0), 0),
        ("c0.9", ChildEnded(10.0, 4, "42"), 0),
    ],
)
def test_a_child_run_that_a_call_has_begun_is_counted(
    agent: str, event: Event, expected: int
) -> None:
    """Well or badly, with those that it has begun; one that a node has begun is no call."""
    table = NodeGraph[None]("g", staying := Staying(), {staying: {...: END}})
    turn = Turn(number=0, calls=tuple([call()] * 3))
    run = evolve(idle(evolve(CHILD, key=agent), evolve(WORK, id=8)), node="staying", turn=turn)

    assert expected == step(table, run, event).run.spent.agent_calls


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (Cancelled(10.0), 2),
        (Cancelled(10.0, spent=Spent(tool_calls=5)), 7),
        (Cancelled(10.0, unstarted=(6,)), 1),
        (Cancelled(10.0, unstarted=(6, CLIENT.id)), 0),
    ],
)
def test_a_tool_that_had_begun_has_run_or_may_have(event: Event, expected: int) -> None:
    """Whoever goes on without its answer must not have the call again: nor a client's."""
    run = idle(TOOL, CLIENT, WORK)

    stopped = step(graph(Wishing(invoke, Aborted)), run, event).run

    assert expected == stopped.spent.tool_calls


def test_a_call_of_the_loop_s_own_tool_is_no_tool_call() -> None:
    """Neither stopped nor answered: it only gives the answer of an `output_type`."""
    table = NodeGraph[None]("g", staying := Staying(), {staying: {...: END}})
    run = evolve(idle(TOOL, CLIENT), node="staying")
    run = evolve(run, setup=evolve(run.setup, own=(TOOL.call.name,)))

    assert 1 == step(table, run, Cancelled(10.0)).run.spent.tool_calls
    assert 0 == step(table, run, ToolReturned(10.0, TOOL.id, "1", "ok")).run.spent.tool_calls


@pytest.mark.parametrize(
    ("timeout", "ending"),
    [
        (False, Ending(EndReason.ABORTED, ("x",))),
        (True, Ending(EndReason.TIMEOUT, ("step_timeout_s",))),
    ],
)
def test_a_time_limit_is_told_apart_from_a_person(timeout: bool, ending: Ending) -> None:
    """One may be raised, and is told by the name of its option; the other was wanted."""
    stopped = step(
        graph(Wishing(invoke, Aborted)), idle(WORK), Cancelled(11.0, "x", timeout=timeout)
    )

    assert stopped.run.ending == ending


@dataclass(frozen=True)
class Staying:
    """Stays for whatever else is pending."""

    name: str = "staying"
    kind: Kind = "pure"
    outcomes: frozenset[type[Outcome]] = frozenset({Done})

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Stay."""
        return Wait(run)

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Stay, or leave when nothing is pending."""
        return Wait(run) if run.pending else Leave(run, Done())


def test_a_reply_without_a_price_is_counted_as_such() -> None:
    """The bill says that it is not complete."""
    table = loop()
    run = begin(table, Started(0.0, "r", "agent", QUESTION, setup()), None).run

    run = step(table, run, ModelReplied(1.0, 1, reply("done"))).run

    assert (1, 0, 0.0, 1) == counted(run)


@dataclass(frozen=True)
class Stubborn:
    """Wishes for a callback when it is entered, and again whatever it hears."""

    name: str = "stubborn"
    kind: Kind = "pure"
    outcomes: frozenset[type[Outcome]] = frozenset({Aborted})

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Wish."""
        return Wait(run, invoke(run.next_effect))

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Wish again, of a run that says it was never stopped."""
        return Wait(evolve(run, ending=None), invoke(run.next_effect))


def test_a_node_of_a_stopped_run_gets_no_further_effects() -> None:
    """Nor can it take back that the run was stopped; the run ends."""
    table = NodeGraph[None]("g", node := Stubborn(), {node: {...: END}})

    stopped = step(table, begin(table, STARTED, None).run, Cancelled(2.0))

    assert ((), True, {}) == (stopped.effects, stopped.run.ended, stopped.run.pending)


def test_a_stopped_run_in_a_circle_ends_as_stopped() -> None:
    """Each node that would start something is left as aborted, and nothing starts."""
    one, other = Wishing(invoke, Aborted, "one"), Wishing(invoke, Aborted, "other")
    table = NodeGraph[None]("g", one, {one: {...: other}, other: {...: one}})

    stopped = step(table, begin(table, STARTED, None).run, Cancelled(2.0, "enough"))

    assert ((), True) == (stopped.effects, stopped.run.ended)
    assert Ending(EndReason.ABORTED, ("enough",)) == stopped.run.ending


def test_a_run_that_stops_after_its_turn_starts_nothing_more() -> None:
    """It was stopped as much as one that was stopped at once."""
    entered: list[int] = []

    def wish(number: int) -> tuple[Effect, ...]:
        entered.append(number)
        return invoke(number)

    check, after = StopCheck(callback="enough"), Wishing(wish, Aborted)
    table = NodeGraph[None]("g", check, {check: {Stop: after, ...: END}, after: {...: END}})
    run = begin(table, STARTED, None).run
    asked = step(table, run, Cancelled(2.0, "later", after_step=True)).run

    stopped = step(table, asked, CallbackReturned(3.0, 1, StopRequested()))

    assert ((), True) == (stopped.effects, stopped.run.ended)
    assert Ending(EndReason.ABORTED, ("later",)) == stopped.run.ending
    assert 1 == len(entered)


def calls(*keys: str) -> Callable[[int], tuple[Effect, ...]]:
    """Wish for these calls, and a callback."""

    def wish(number: int) -> tuple[Effect, ...]:
        started = [CallTool(number + at, key, call()) for at, key in enumerate(keys)]
        return (*started, Invoke(number + len(keys), "f"))

    return wish


def started_twice(turn: Turn, *keys: str) -> Step[None]:
    """Return what comes of two nodes in a row that wish for these calls of a turn."""
    one, other = Wishing(calls(*keys), name="one"), Wishing(calls(*keys), name="other")
    table = NodeGraph[None]("g", one, {one: {...: other}, other: {...: END}})
    run = evolve(begin(table, STARTED, None).run, turn=turn, pending={1: Invoke(1, "f")})
    run = evolve(run, node="one", next_effect=2)
    return step(table, run, CallbackReturned(2.0, 1, StopRequested()))


TWO_CALLS = Turn(number=0, calls=(call(), call()))


def test_a_call_is_started_once_in_its_turn_by_whichever_node() -> None:
    """Nobody has to see to it but the kernel."""
    taken = started_twice(TWO_CALLS, "c0.1")

    assert ("c0.1",) == taken.run.turn.started
    with pytest.raises(GraphError, match=r"asked for call c0\.1, which has started"):
        started_twice(taken.run.turn, "c0.1")


@pytest.mark.parametrize("place", [0, 1])
def test_a_call_that_has_its_result_is_not_started(place: int) -> None:
    """A gate has denied it, perhaps."""
    denied = ToolResult(f"c0.{place}", "", "read", "no", "denied")
    results = tuple(denied if at == place else None for at in range(2))

    with pytest.raises(GraphError, match=rf"call c0\.{place}, which has started or has"):
        started_twice(evolve(TWO_CALLS, results=results), f"c0.{place}")


def test_a_call_is_started_again_if_a_person_wants_it_again() -> None:
    """The one exception; and what is no call of the turn is a node's own affair."""
    turn = evolve(TWO_CALLS, started=("c0.0", "c0.1", "own.1"), again=frozenset({1}))

    started_twice(turn, "c0.1", "c0.7", "own.1")
    with pytest.raises(GraphError, match=r"asked for call c0\.0, which has started"):
        started_twice(turn, "c0.0")


def test_to_wait_on_wishes_for_nothing_and_keeps_what_is_pending() -> None:
    """The number of the next wish stays as it is."""
    table = NodeGraph[None]("g", staying := Staying(), {staying: {...: END}})
    run = evolve(idle(TOOL, WORK), node="staying", next_effect=8)

    taken = step(table, run, ToolReturned(12.0, 6, "x"))

    assert ((), {1: WORK}, 8) == (taken.effects, taken.run.pending, taken.run.next_effect)
