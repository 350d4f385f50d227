"""The adversary: its model, functions, people and callers are functions of its choices."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop import Graph, ask, node
from graphloop.effects import AskHuman, CallModel, CheckCalls, StartRun
from graphloop.events import (
    AnswerChecked,
    BranchesJoined,
    CallbackAnswer,
    Changes,
    NodeReturned,
    RequestYielded,
    StopRequested,
)
from graphloop.node_protocol import Node
from graphloop.nodes import Gate, PrepareStep, StopCheck
from graphloop.nodes.function import Function
from graphloop.nodes.parallel import Parallel
from graphloop.nodes.verify import AnswerCheck, Verify
from graphloop.outcomes import Outcome
from graphloop.own_nodes import Asking, ask_model
from graphloop.run import evolve
from graphloop.spending import Budget, Spent
from graphloop.testing.adversary import Adversary, steered_by_a_caller
from graphloop.testing.callbacks import answered_by_a_callback
from graphloop.testing.choices import Choices
from graphloop.testing.replies import (
    answered_by_a_model,
    fitting,
)
from graphloop.turn import Turn
from graphloop.values import FinishReason, ModelRequest, Reply
from tests.strategies import QUESTION, call, fresh, spec
from tests.unit.testing.planted import Looping, table


def adversary(
    seed: int = 0, *, stubborn: bool = False, graph: Graph[None] | None = None
) -> Adversary:
    """Return the adversary of a seed, against a loop whose gate has conditions."""
    askers = dict.fromkeys(range(9), "gate")
    return Adversary(graph or table(), Choices.seeded(seed), stubborn=stubborn, askers=askers)


def gated() -> Graph[None]:
    """Return a loop whose gate asks under a condition."""

    def large(arguments: object, context: object) -> bool:
        return True

    rules = ask("read", when=large).rules
    return table(lambda node: Gate(rules=rules) if node.kind == "gate" else node)


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
            told.add((check.met, check.unmet))

    assert {((("large",),), ((),)), (((),), (("large",),)), (((),), ((),))} == told


def test_a_child_never_exceeds_the_tool_calls_of_its_budget() -> None:
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


TOOLS = (spec("read"), spec("write"), spec("search", "provider"))


def replies(request: ModelRequest, seeds: int = 600) -> list[Reply | Exception]:
    """Return what models of many seeds answer."""
    every: list[Reply | Exception] = []
    for seed in range(seeds):
        try:
            every.append(answered_by_a_model(CallModel(1, "m", request), Choices.seeded(seed)))
        except Exception as error:  # noqa: BLE001 - any of them
            every.append(error)
    return every


def test_all_finish_reasons_failures_and_shapes_come() -> None:
    """What never comes is never tried."""
    every = replies(ModelRequest(QUESTION, TOOLS))
    said = [one for one in every if isinstance(one, Reply)]

    assert set(FinishReason) == {one.finish_reason for one in said}
    assert {"ContextOverflow", "Overloaded", "ValueError"} <= {
        type(one).__name__ for one in every if isinstance(one, Exception)
    }
    names = {call.name for one in said for call in one.message.calls}
    assert {"read", "write", "nowhere", ""} == names
    sizes = {len(one.message.calls) for one in said}
    assert {0, 1, 2, 3} < sizes
    assert max(sizes) > 20
    assert any(not one.message.parts for one in said)
    ids = [call.id for one in said for call in one.message.calls]
    assert len(set(ids)) < len(ids)


SCHEMA = {
    "type": "object",
    "properties": {
        "route": {"type": "string", "enum": ["a", "b"]},
        "amount": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "ratio": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "boolean"}},
        "kind": {"const": "x"},
        "deep": {"type": "object", "properties": {"text": {"type": "string"}}},
        "any": {},
    },
    "required": ["route", "kind"],
}


@given(values=st.lists(st.integers(0, 255), max_size=30))
def test_arguments_fit_the_schema(values: list[int]) -> None:
    """Otherwise a forced choice would never be made, and half a graph never seen."""
    arguments = json.loads(fitting(json.dumps(SCHEMA), Choices.replayed(values)))

    jsonschema.validate(arguments, SCHEMA)


def test_a_schema_that_goes_round_in_circles_ends() -> None:
    """A tool's schema is the user's, and may nest as deep as it likes."""
    schema: dict[str, object] = {"type": "string"}
    for _ in range(50):
        schema = {"type": "object", "properties": {"in": schema}, "required": ["in"]}

    assert '"deep"' in fitting(json.dumps(schema), Choices.replayed(()))


@dataclass(frozen=True)
class Billing(Outcome):
    """To the cashier."""

    amount: int
    currency: Literal["EUR", "USD"]
    note: str | None = None


class Technical(Outcome):
    """To the workshop."""


@node
def route(state: None) -> Billing | Technical:
    """Route."""
    return Technical()


def answers(one: Node[None, Outcome], name: str) -> list[CallbackAnswer]:
    """Return what is answered with many seeds."""
    every: list[CallbackAnswer] = []
    for seed in range(300):
        try:
            every.append(answered_by_a_callback(one, name, Choices.seeded(seed)))
        except ValueError:
            continue
    assert 200 < len(every) < 300
    return every


def test_a_function_leaves_by_all_outcomes_with_fitting_fields() -> None:
    """An outcome whose fields do not decode ends the run in an error, not where it leads."""
    left = {one.outcome for one in answers(route, "route") if isinstance(one, NodeReturned)}
    fields = {one.fields for one in answers(route, "route") if isinstance(one, NodeReturned)}

    assert {"Billing", "Technical", "Nowhere", "Failed"} == left
    assert any('"amount": 1, "currency": "USD"' in one for one in fields)


@pytest.mark.parametrize(
    ("one", "kind"),
    [
        (PrepareStep(callback="f"), Changes),
        (StopCheck(callback="f"), StopRequested),
        (Verify((AnswerCheck("f", 1),)), AnswerChecked),
        (Looping(), AnswerChecked),
        (Parallel(("a", "b"), callback="f"), BranchesJoined),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        (Function("f", frozenset({Technical}), kind="check"), NodeReturned),
    ],
)
def test_an_answer_is_of_the_kind_that_the_node_expects(
    one: Node[None, Outcome], kind: type[CallbackAnswer]
) -> None:
    """Junk comes too, but seldom: it ends most runs at once."""
    every = answers(one, "f")

    fitting = [answer for answer in every if isinstance(answer, kind)]
    assert len(every) * 0.8 < len(fitting) < len(every)


@node(agents={"helper": 1})
def talk(state: None) -> Asking[Technical]:
    """Talk."""
    yield from ask_model("?")
    return Technical()


def test_a_generator_makes_every_request_and_ends() -> None:
    """In any order: what it may not ask for is refused to it."""
    every = answers(talk, "talk")

    asked = {one.ask.kind for one in every if isinstance(one, RequestYielded)}
    assert {"model", "person", "agent", "tell"} == asked
    assert any(isinstance(one, NodeReturned) and one.outcome == "Technical" for one in every)
