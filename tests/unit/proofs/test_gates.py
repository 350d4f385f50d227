"""GL2: no tool runs that a gate has not spoken about."""

from __future__ import annotations

from typing import Any

import pytest

from graphloop import END, Edges, Graph, node
from graphloop.nodes import (
    Append,
    Approve,
    Critique,
    Gate,
    ModelCall,
    PrepareStep,
    Screen,
    Screened,
)
from graphloop.outcomes import (
    Accepted,
    Blocked,
    Calls,
    Final,
    Outcome,
    Passed,
    Ready,
    Rejected,
    Settled,
)
from graphloop.own_nodes import Asking, ask_person
from graphloop.proofs.checking import check
from graphloop.proofs.report import Ignore
from tests.topology_data import MUTANTS, graph_of, standard

NAMES = (
    "tools run before a park",
    "gate removed",
    "gate bypassed by the model",
    "gate bypassed by a conversation",
    "held calls not asked about",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_way_around_the_gate_is_found(name: str) -> None:
    """Each is one line of a table that leads elsewhere."""
    (mutant,) = (one for one in MUTANTS if one.name == name)

    report = check(graph_of(mutant.of(standard(hold=False))))

    found = [one for one in report.findings if one.code == mutant.code]
    assert found
    assert all(one.fix and one.witness and one.location for one in found)
    assert mutant.code in check(graph_of(standard())).proven


class Published(Outcome):
    """The text is public."""


@node(kind="act")
async def publish(state: None) -> Published:
    """Make the answer public."""
    return Published()


@node(model_calls=0)
def confirm(state: None) -> Asking[Accepted | Rejected]:
    """Ask a person in a function."""
    said = yield from ask_person("Publish it?")
    return Accepted() if said.approved else Rejected()


PREPARE, MODEL, APPEND, APPROVE = PrepareStep(), ModelCall(), Append(), Approve()
CRITIC = Critique("Is it short?")
TURN: Edges[None] = {
    PREPARE: {Ready: MODEL, ...: END},
    MODEL: {...: APPEND},
    publish: {...: END},
}
ASKED: Edges[None] = {**TURN, APPEND: {Final: APPROVE, ...: END}}


def codes(
    edges: Edges[None], ignore: Ignore | None = None
) -> list[tuple[str, str, tuple[str, ...]]]:
    report = Graph("desk", PREPARE, edges).check(ignore=ignore)
    return [(one.code, one.node, one.witness) for one in report.findings if one.code != "GL3"]


def test_an_act_needs_an_approval_of_the_last_reply() -> None:
    """A function that pays or publishes is no better guarded than a tool that does."""
    unasked: Edges[None] = {**TURN, APPEND: {Final: publish, ...: END}}
    way = ("prepare_step", "model_call", "append", "publish")

    assert codes(unasked) == [("GL2", "publish", way)]
    assert codes({**ASKED, APPROVE: {Accepted: publish, ...: END}}) == []


def test_the_no_of_a_person_lets_nothing_act() -> None:
    """The lines out of one node differ in what they allow."""
    either: Edges[None] = {**ASKED, APPROVE: {Accepted: publish, Rejected: publish, ...: END}}

    (found,) = codes(either)

    assert found[:2] == ("GL2", "publish")


def test_an_approval_is_over_once_a_model_is_asked_again() -> None:
    """The person has not seen what came after."""
    later: Edges[None] = {
        **ASKED,
        APPROVE: {Accepted: CRITIC, ...: END},
        CRITIC: {Accepted: publish, ...: END},
    }

    assert [("GL2", "publish")] == [one[:2] for one in codes(later)]


def test_a_function_that_asks_a_person_approves_by_accepted() -> None:
    """The outcome says what the function's author means by it."""
    ways: Edges[None] = {**TURN, APPEND: {Final: confirm, ...: END}}

    assert codes({**ways, confirm: {Accepted: publish, ...: END}}) == []
    assert codes({**ways, confirm: {Rejected: publish, ...: END}}) != []
    unasked = Graph("desk", PREPARE, {**TURN, APPEND: {Final: publish, ...: END}})
    fixes = [found.fix for found in unasked.check().findings if found.code == "GL2"]
    assert ["a function that asks a person and returns `Accepted`" in fix for fix in fixes] == [
        True
    ]


def test_a_gate_before_a_node_that_acts_is_enough() -> None:
    """The gate has spoken about the calls that the node acts upon."""
    gate = Gate()
    gated: Edges[None] = {
        **TURN,
        MODEL: {Calls: gate, ...: APPEND},
        gate: {Settled: publish, ...: APPEND},
        publish: {...: APPEND},
        APPEND: {...: END},
    }

    assert codes(gated) == []


@node(kind="act")
def publish_when_asked(state: None) -> Asking[Published]:
    """Ask a person, and act, in one visit."""
    yield from ask_person("Publish it?")
    return Published()


def test_a_node_that_acts_asks_in_a_node_of_its_own() -> None:
    """A resumed generator runs again from its beginning, and would act again."""
    report = Graph("desk", publish_when_asked, {publish_when_asked: {...: END}}).check()

    assert "GL10" in {one.code for one in report.findings}


class Known(Outcome):
    """The user is an employee."""


class Stranger(Outcome):
    """The user is anybody."""


@node
async def greet(state: None) -> Known | Stranger:
    """Look the user up."""
    return Stranger()


SCREEN = Screen(("polite",))
LOOP: Edges[None] = {PREPARE: {Ready: MODEL, ...: END}, MODEL: {...: APPEND}, APPEND: {...: END}}


def warnings(start: Any, edges: Edges[None]) -> list[tuple[str, tuple[str, ...]]]:
    report = Graph("desk", start, edges).check()
    assert report.ok or any(one.code == "GL3" for one in report.findings)
    return [(one.node, one.witness) for one in report.findings if one.severity == "warning"]


@pytest.mark.parametrize(
    ("start", "rows", "way"),
    [
        (SCREEN, {SCREEN: {Passed: PREPARE, ...: END}}, ()),
        (SCREEN, {SCREEN: {Passed: PREPARE, Blocked: APPEND, ...: END}}, ()),
        (greet, {greet: {...: SCREEN}, SCREEN: {Passed: PREPARE, ...: END}}, ()),
        (
            greet,
            {greet: {Known: PREPARE, ...: SCREEN}, SCREEN: {Passed: PREPARE, ...: END}},
            ("greet", "prepare_step", "model_call"),
        ),
        (SCREEN, {SCREEN: {...: PREPARE}}, ("screen", "prepare_step", "model_call")),
    ],
)
def test_a_way_past_the_screen_to_a_model_is_a_warning(
    start: Any, rows: Edges[None], way: tuple[str, ...]
) -> None:
    """A screen that a way goes past protects the others alone; the user sees no difference."""
    expected = [("model_call", way)] if way else []

    assert expected == warnings(start, {**rows, **LOOP})


def test_a_model_that_is_asked_beside_its_screen_is_no_warning() -> None:
    beside: Screened[None] = Screened(MODEL, ("polite",))
    rows: Edges[None] = {
        PREPARE: {Ready: beside, ...: END},
        beside: {...: APPEND},
        APPEND: {...: END},
    }

    assert [] == warnings(PREPARE, rows)
