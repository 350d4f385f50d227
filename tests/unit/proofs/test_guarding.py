"""Guarding: what a single node that is always passed cannot say."""

from __future__ import annotations

from typing_extensions import Unpack

from graphloop.front.agent import Agent
from graphloop.front.hooks import AnswerInfo
from graphloop.front.options import AgentOptions
from graphloop.graph import END, Graph
from graphloop.node_protocol import Kind, Node
from graphloop.nodes import Append, Approve
from graphloop.outcomes import Accepted, Final, Outcome, Rejected
from graphloop.proofs.ground import Ground
from graphloop.proofs.guarding import Unguarded, guards_of, unguarded
from graphloop.testing import ScriptedModel
from tests.graphs import build
from tests.honest_graphs import graph_of

KINDS: dict[str, Kind] = {
    "triage": "model",
    "small": "human",
    "big": "human",
    "last": "human",
    "deploy": "execute",
    "revise": "execute",
    "note": "pure",
    "judge": "check",
}


def made(**table: list[str]) -> Graph[None]:
    """Return the graph whose n-th outcome of each node leads to the n-th name in its row."""
    return graph_of(table, {name: KINDS[name] for name in table})


def told(before: Graph[None], after: Graph[None], acting: str = "deploy") -> list[Unguarded]:
    found = unguarded(Ground(before), Ground(after), frozenset(acting.split()))
    # That a run can end is told as well; a verdict leaves it out where it follows.
    return [one for one in found if not acting or one.nodes != ("END",)]


def test_guards_on_alternative_ways_are_one_guard_together() -> None:
    """None of them is always passed, and one of them always is."""
    rest = {"small": ["deploy", "END"], "big": ["deploy", "END"], "deploy": ["END"]}
    (one,) = told(
        made(triage=["small", "big", "small"], **rest),
        made(triage=["small", "big", "deploy"], **rest),
    )

    assert ("deploy",) == one.nodes
    assert ("small", "big") == one.guards
    assert one.behind is None
    assert [("triage", "deploy")] == [(way.source, way.target) for way in one.walked]


def test_a_guard_that_is_passed_again_each_time_is_missed_behind_what_comes_between() -> None:
    """What was revised is not what was approved."""
    rest = {"small": ["triage", "END"], "triage": ["deploy", "revise", "END"], "deploy": ["END"]}
    (one,) = told(made(**rest, revise=["small"]), made(**rest, revise=["deploy"]), "deploy revise")

    assert (("deploy",), ("small",)) == (one.nodes, one.guards)
    assert one.behind is not None
    assert ("revise", "deploy") == (one.behind.source, one.behind.target)


def test_a_no_is_no_yes() -> None:
    """A guard counts by the outcome that it was left by."""
    (one,) = told(
        made(small=["deploy", "END"], deploy=["END"]),
        made(small=["deploy", "deploy"], deploy=["END"]),
    )

    assert () == one.guards
    assert one.behind is not None
    assert ("small", "answered") == (one.behind.source, one.behind.word)


def test_one_stage_of_two_is_not_enough() -> None:
    """Another guard that stays does not stand for those that are led around."""
    rest = {"small": ["last"], "big": ["last"], "last": ["deploy"], "deploy": ["END"]}
    (one, *_) = told(
        made(triage=["small", "big", "END"], **rest), made(triage=["small", "big", "last"], **rest)
    )

    assert (("deploy",), ("small", "big")) == (one.nodes, one.guards)


def test_more_guards_and_new_ways_past_guards_are_no_loss() -> None:
    """Who adds a question, or a branch with one, has weakened nothing."""
    before = made(triage=["small", "END"], small=["deploy", "END"], deploy=["END"])
    more = made(
        triage=["small", "big"], small=["last", "END"], big=["deploy"], last=["deploy", "END"],
        deploy=["END"],
    )  # fmt: skip

    (one,) = told(before, more)
    assert (("deploy",), ("small",)) == (one.nodes, one.guards)
    asked = made(triage=["small", "END"], small=["last", "END"], last=["deploy"], deploy=["END"])
    assert [] == told(before, asked)
    first = made(triage=["last", "END"], last=["small"], small=["deploy"], deploy=["END"])
    assert [] == told(before, first)


def test_an_answer_that_was_always_judged_behind_a_line_is_told() -> None:
    """A run may end, and with what, is guarded as well; stops and gates guard no ending."""
    before = made(triage=["judge", "END"], judge=["END"])
    after = made(triage=["END", "END"], judge=["END"])

    assert [(("END",), ("judge",))] == [(one.nodes, one.guards) for one in told(before, after, "")]


def test_what_functions_do_counts_behind_a_line_only() -> None:
    """The next function may stand in another's place; but not where that was always passed."""
    rest = {"note": ["deploy"], "deploy": ["END"]}
    before = made(triage=["note", "note"], **rest)

    assert [("note",)] == [
        one.guards for one in told(before, made(triage=["note", "deploy"], **rest))
    ]
    assert [] == told(before, made(triage=["note", "note", "deploy"], **rest))


def test_what_is_told_already_is_not_told_again() -> None:
    """One sentence a loss."""
    before = made(triage=["small"], small=["deploy"], deploy=["END"])
    after = made(triage=["deploy"], small=["deploy"], deploy=["END"])
    known = frozenset({("small", "deploy")})

    assert [] == [
        one
        for one in unguarded(Ground(before), Ground(after), frozenset({"deploy"}), known)
        if "deploy" in one.nodes
    ]


def test_guards_are_those_that_runs_arrive_at_and_that_say_no() -> None:
    """By their kinds."""
    graph = build(
        {"a": ["b", "c"], "b": ["c"], "c": ["END"], "d": ["END"]},
        {"a": "gate", "b": "human", "c": "execute", "d": "check"},
    )

    assert ("a", "b") == guards_of(Ground(graph))
    assert ("b",) == guards_of(Ground(graph), {"human"})


def test_an_outcome_that_a_guard_was_never_left_by_is_passed_where_the_table_has_it() -> None:
    """A check that rejects, where it had nothing to judge, has been passed."""

    def agent(**options: Unpack[AgentOptions]) -> Ground[None]:
        return Ground(Agent(ScriptedModel(()), **options).graph)

    def good(answer: AnswerInfo) -> bool:
        return bool(answer.text)

    bare, checked = agent(), agent(verify=good)
    acting = frozenset({"execute", "model_call"})

    assert [] == [*unguarded(bare, checked, acting)]


def test_a_run_that_ends_without_an_answer_needs_no_guard_before_that() -> None:
    """Who aborts a run takes no answer from it; of other nodes nobody knows what they mean."""

    def ended(first: str, second: str) -> Graph[None]:
        said: Node[None, Outcome] = Append("said")
        judge: Node[None, Outcome] = Approve("judge")
        log: Node[None, Outcome] = Approve("log")
        by_name = {"judge": judge, "log": log}
        return Graph(
            "g",
            said,
            {
                said: {Final: by_name[first], ...: END},
                log: {Accepted: judge, Rejected: by_name.get(second, END), ...: END},
                judge: {...: END},
            },
        )

    old = Ground(ended("judge", "judge"))
    assert [] == told_of_end(old, Ground(ended("log", "judge")))
    (one,) = told_of_end(old, Ground(ended("log", "")))
    assert "rejected" == one.walked[-1].word


def told_of_end(old: Ground[None], new: Ground[None]) -> list[Unguarded]:
    return [one for one in unguarded(old, new, frozenset()) if one.nodes == ("END",)]
