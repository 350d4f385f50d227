"""parameter_changes: which parameters differ, and whether that is known to be looser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from graphloop.contract import Cap, Contract
from graphloop.front.node_decorator import node
from graphloop.graph import END, Graph
from graphloop.node_protocol import Node
from graphloop.nodes import (
    AnswerCheck,
    Append,
    Approve,
    Child,
    Critique,
    Execute,
    Function,
    Gate,
    Limit,
    MapOver,
    ModelCall,
    PrepareStep,
    Retrying,
    Router,
    StopCheck,
    Verify,
)
from graphloop.nodes.parallel import Branch, Parallel
from graphloop.outcomes import Done, Final, Outcome
from graphloop.policy import Rule
from graphloop.proofs.parameter_change import in_words
from graphloop.proofs.parameter_changes import is_guard, parameter_changes
from graphloop.route_outcomes import route_outcomes
from graphloop.stop import any_of, cost_exceeds, has_tool_call, not_
from graphloop.topology.included import with_graphs
from tests.graphs import OUTCOMES, Place
from tests.varied_graphs import Onward

STRICT, LAX = AnswerCheck("strict", 2, failure="bad"), AnswerCheck("lax", 2)

LOOSER: list[tuple[Node[Any, Outcome], Node[Any, Outcome]]] = [
    (Limit(1), Limit(2)),
    (StopCheck(max_steps=2), StopCheck(max_steps=3)),
    (StopCheck(max_tool_errors=3), StopCheck(max_tool_errors=3000)),
    (StopCheck(max_denials=3), StopCheck(max_denials=4)),
    (StopCheck(max_pauses=3), StopCheck(max_pauses=4)),
    (StopCheck(conditions=(cost_exceeds(1),)), StopCheck(conditions=(cost_exceeds(2),))),
    (StopCheck(conditions=(cost_exceeds(1),)), StopCheck()),
    (
        StopCheck(conditions=(not_(cost_exceeds(2)),)),
        StopCheck(conditions=(not_(cost_exceeds(1)),)),
    ),
    (StopCheck(callback="a"), StopCheck(callback="b")),
    (StopCheck(callback="a"), StopCheck()),
    (
        StopCheck(conditions=(any_of(cost_exceeds(1), has_tool_call("a")),)),
        StopCheck(conditions=(any_of(has_tool_call("a"), cost_exceeds(2)),)),
    ),
    (Approve(ttl_s=60), Approve()),
    (Approve(ttl_s=60), Approve(ttl_s=61)),
    (Gate(hold=True), Gate(hold=False)),
    (Execute(hold=True), Execute(hold=False)),
    (MapOver("a", 2), MapOver("a", 3)),
    (Verify((STRICT,)), Verify()),
    (Verify((STRICT,)), Verify((LAX,))),
    (Verify((STRICT,)), Verify((replace(STRICT, retries=0),))),
    (Verify((STRICT,)), Verify((replace(STRICT, retries=20),))),
    (Verify((STRICT,)), Verify((replace(STRICT, failure=""),))),
    (Critique("Is it harmless?"), Critique("Say yes.")),
    (Critique("Good?", model="a"), Critique("Good?", model="b")),
    (PrepareStep(active_tools=("a",)), PrepareStep(active_tools=("a", "b"))),
    (PrepareStep(active_tools=("a",)), PrepareStep()),
    (Retrying(ModelCall(), 1), Retrying(ModelCall(), 2)),
    (Retrying(Critique("a"), 1), Retrying(Critique("b"), 1)),
    (
        Function("f", frozenset({Done}), caps=((Done, 1),)),
        Function("f", frozenset({Done}), caps=((Done, 2),)),
    ),
    (
        Function("f", frozenset({Done}), caps=((Done, 1),)),
        Function("f", frozenset({Done})),
    ),
    (
        Function("f", frozenset({Done}), "a", "check"),
        Function("f", frozenset({Done}), "b", "check"),
    ),
]

OTHER: list[tuple[Node[Any, Outcome], Node[Any, Outcome]]] = [
    (Child("reviewer", "a"), Child("yesman", "a")),
    (Child("a", prompt="Be strict."), Child("a", prompt="Say yes.")),
    (ModelCall(model="a"), ModelCall(model="b")),
    (ModelCall(fallbacks=("a",)), ModelCall(fallbacks=("b", "a"))),
    (Execute(concurrency=1), Execute(concurrency=2)),
    (Router({Onward: "one"}, "?"), Router({Onward: "other"}, "?")),
    (Parallel((Branch("a", name="x"),)), Parallel((Branch("b", name="x"),))),
    (Function("f", frozenset({Done}), "a"), Function("f", frozenset({Done}), "b")),
    (Verify((LAX,)), Verify((replace(LAX, given_up="so"),))),
    (Verify((STRICT, LAX)), Verify((LAX, STRICT))),
]


def effects(old: object, new: object) -> set[str]:
    """Return what the changes of a node mean."""
    return {one.effect for one in parameter_changes(old, new)}


@pytest.mark.parametrize(("old", "new"), LOOSER)
def test_what_is_looser_is_weaker(old: Node[Any, Outcome], new: Node[Any, Outcome]) -> None:
    """And so is what guards something, where nobody can compare."""
    assert "weaker" in effects(old, new)
    assert not list(parameter_changes(old, old))


@pytest.mark.parametrize(("old", "new"), LOOSER[:7])
def test_what_is_stricter_is_stronger(old: Node[Any, Outcome], new: Node[Any, Outcome]) -> None:
    """The other way round, but for what nobody can compare."""
    assert {"stronger"} == effects(new, old)


@pytest.mark.parametrize(("old", "new"), OTHER)
def test_what_is_merely_other_is_a_change(old: Node[Any, Outcome], new: Node[Any, Outcome]) -> None:
    """Nobody can say that it promises less; but it is never the same."""
    assert {"changed"} == effects(old, new)


def test_a_tightened_node_is_no_weaker() -> None:
    """Whoever adds a check must not be told off for it."""
    assert {"stronger"} == effects(Verify(), Verify((STRICT,)))
    assert {"stronger"} == effects(StopCheck(), StopCheck(conditions=(has_tool_call("a"),)))
    assert {"stronger"} == effects(StopCheck(), StopCheck(callback="a"))
    assert {"stronger"} == effects(PrepareStep(), PrepareStep(active_tools=()))
    assert {"stronger"} == effects(Verify((LAX,)), Verify((replace(LAX, failure="bad"),)))


def test_any_of_some_conditions_stops_as_these_do() -> None:
    """Any one condition stops a run already."""
    cost, call = cost_exceeds(2), has_tool_call("a")
    one, other = StopCheck(conditions=(cost, call)), StopCheck(conditions=(any_of(call, cost),))
    tighter = StopCheck(conditions=(any_of(any_of(call), cost_exceeds(1)),))

    assert {"changed"} == effects(one, other)
    assert {"changed"} == effects(StopCheck(conditions=(cost, cost)), StopCheck(conditions=(cost,)))
    assert {"stronger"} == effects(one, tighter) == effects(other, tighter)
    assert {"weaker"} == effects(tighter, other)


def test_what_stands_in_a_mapping_is_named_as_its_reader_knows_it() -> None:
    """A route by its outcome, and no Python class."""
    easy, hard = route_outcomes(["easy", "hard"])
    one, other = (Router({easy: words, hard: "hard"}, "?") for words in ("one", "other"))

    assert ["routes.easy"] == [change.name for change in parameter_changes(one, other)]
    (gone,) = parameter_changes(one, Router({easy: "one"}, "?"))
    assert ("routes", ("hard",), ()) == (gone.name, gone.before, gone.after)


def test_the_rules_of_gates_are_told_elsewhere() -> None:
    """By what they decide."""
    assert not effects(Gate(), Gate(rules=(Rule("deny", ("*",)),)))


def test_the_graph_of_an_agent_is_no_parameter() -> None:
    """A node with it is the node without it."""
    append = Append()
    graph: Graph[None] = Graph("g", append, {append: {...: END}})
    one, other = Child("kid"), Child("kid", prompt="Go.")

    assert not effects(one, with_graphs(one, {"kid": graph}))
    assert {"changed"} == effects(one, with_graphs(other, {"kid": graph}))


def own(least: int) -> object:
    """Return a node of a function, as if its file were loaded anew."""

    @node(kind="check")
    def judge(_: None) -> Onward:
        if least > 2:
            raise ValueError
        return Onward()

    return judge


def test_a_function_is_compared_by_what_it_says() -> None:
    """Two versions of a file have two functions, and most of them are the same."""
    assert not effects(own(1), own(1))
    assert {"weaker"} == effects(own(1), own(2))
    (change,) = parameter_changes(own(1), own(2))
    assert "function" in change.name


def promising(contract: Contract) -> object:
    """Return a node of a class that promises something."""
    made = type("Own", (Place,), {"contract": contract})
    return made("a", frozenset(OUTCOMES[:1]))


def test_what_no_parameter_says_is_seen() -> None:
    """A class can promise less under the same name."""
    few, many = (Contract(caps={Final: Cap(times)}) for times in (1, 2))

    assert {"weaker"} == effects(promising(few), promising(many))
    assert {"stronger"} == effects(promising(many), promising(few))
    assert {"changed"} == effects(promising(few), promising(replace(few, tools=True)))
    assert not effects(promising(few), promising(few))


def test_what_a_class_does_is_seen() -> None:
    """By the code of its methods."""

    def made(answer: Callable[[object], int]) -> object:
        return type("Own", (Place,), {"judge": answer})("a", frozenset(OUTCOMES[:1]))

    assert not effects(made(lambda _: 1), made(lambda _: 1))
    assert {"changed"} == effects(made(lambda _: 1), made(lambda _: 2))


def test_what_the_class_of_a_value_does_is_seen() -> None:
    """An object with the same fields may judge otherwise."""

    def made(least: int) -> object:
        class Judge:
            def __init__(self) -> None:
                self.number = 1

            def __call__(self, answer: str) -> bool:
                return len(answer) > (1 if least > 1 else self.number)

            def other(self) -> int:
                return least

        return Judge()

    holder = [SimpleNamespace(kind="check", outcomes=(), judge=made(one)) for one in (1, 1, 2)]

    assert not effects(holder[0], holder[1])
    assert {"weaker"} == effects(holder[0], holder[2])
    assert ["judge"] == [one.name for one in parameter_changes(holder[0], holder[2])]


def test_guards_are_known_by_what_they_are_for() -> None:
    """A router sends a run on, and keeps nothing from happening."""
    assert is_guard(Gate())
    assert is_guard(Critique("?"))
    assert not is_guard(Router({Onward: "one"}, "?"))
    assert not is_guard(ModelCall())


def test_values_are_told_in_words_that_harm_no_terminal() -> None:
    """Prompts may be anybody's, and long."""
    assert "none" == in_words(None)
    assert "\u202e" not in in_words("a\u202eb")
    assert "\x1b" not in in_words("\x1b[31m")
    assert len(in_words("a" * 900)) < 80
    assert "'a', 'b'" == in_words(frozenset({"b", "a"}))


def test_an_object_that_answers_with_errors_is_told_like_any_other() -> None:
    """It is anybody's; which of its fields differs can be said all the same."""

    class Judge:
        def __init__(self, least: int) -> None:
            self.least = least

        def __getattr__(self, name: str) -> object:
            raise KeyError(name)

    nodes = [SimpleNamespace(kind="check", outcomes=(), judge=Judge(least)) for least in (1, 2)]
    found: Any = list(parameter_changes(*nodes))

    assert [("judge.least", "weaker")] == [(one.name, one.effect) for one in found]
    assert in_words(Judge(1)).endswith(".Judge")
