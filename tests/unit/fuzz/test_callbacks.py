"""Callbacks of an adversary: every way that a node declares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from graphloop import Asking, ask_model, node
from graphloop.events import Answer, Asked, Changes, Joined, Judged, Left, Tripped
from graphloop.fuzz.callbacks import answered_by_a_callback
from graphloop.fuzz.choices import Choices
from graphloop.node_protocol import Node
from graphloop.nodes import PrepareStep, StopCheck
from graphloop.nodes.function import Function
from graphloop.nodes.parallel import Parallel
from graphloop.nodes.verify import AnswerCheck, Verify
from graphloop.outcomes import Outcome
from tests.unit.fuzz.planted import Looping


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


def answers(one: Node[None, Outcome], name: str) -> list[Answer]:
    """Return what is answered with many seeds."""
    every: list[Answer] = []
    for seed in range(300):
        try:
            every.append(answered_by_a_callback(one, name, Choices.seeded(seed)))
        except ValueError:
            continue
    assert 200 < len(every) < 300
    return every


def test_a_function_leaves_by_all_its_outcomes_with_fields_that_fit() -> None:
    """An outcome whose fields do not decode ends the run in an error, not where it leads."""
    left = {one.outcome for one in answers(route, "route") if isinstance(one, Left)}
    fields = {one.fields for one in answers(route, "route") if isinstance(one, Left)}

    assert {"Billing", "Technical", "Nowhere", "Failed"} == left
    assert any('"amount": 1, "currency": "USD"' in one for one in fields)


@pytest.mark.parametrize(
    ("one", "kind"),
    [
        (PrepareStep(callback="f"), Changes),
        (StopCheck(callback="f"), Tripped),
        (Verify((AnswerCheck("f", 1),)), Judged),
        (Looping(), Judged),
        (Parallel(("a", "b"), callback="f"), Joined),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        (Function("f", frozenset({Technical}), kind="check"), Left),
    ],
)
def test_an_answer_is_of_the_kind_that_the_node_expects(
    one: Node[None, Outcome], kind: type[Answer]
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


def test_a_generator_asks_for_all_that_it_may_and_comes_to_an_end() -> None:
    """In any order: what it may not ask for is refused to it."""
    every = answers(talk, "talk")

    asked = {one.ask.kind for one in every if isinstance(one, Asked)}
    assert {"model", "person", "agent", "tell"} == asked
    assert any(isinstance(one, Left) and one.outcome == "Technical" for one in every)
