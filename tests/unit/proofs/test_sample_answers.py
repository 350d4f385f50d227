"""What may be answered to an effect covers what a driver may answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType
from uuid import UUID

import pytest
from pydantic import BaseModel, TypeAdapter

from graphloop.events import Cancelled, EffectFailed, ModelReplied, Queued, Started
from graphloop.proofs.sample_answers import CONVERSATIONS, SETUPS, answers, functions_of, sample
from graphloop.step import begin, step
from graphloop.values import FinishReason
from tests.graphs import agent


def test_a_model_may_answer_by_every_finish_reason_or_not_at_all() -> None:
    """A witness may need any of them."""
    graph = agent()
    started = Started(0.0, "r", graph.name, CONVERSATIONS[""], SETUPS[0], None)

    events = list(answers(functions_of(graph), begin(graph, started, None).run))

    reasons = {one.reply.finish_reason for one in events if isinstance(one, ModelReplied)}
    assert {
        FinishReason.STOP,
        FinishReason.TOOL_CALLS,
        FinishReason.LENGTH,
        FinishReason.PAUSE,
        FinishReason.REFUSAL,
        FinishReason.CONTEXT_WINDOW,
    } <= reasons
    assert any(isinstance(one, EffectFailed) for one in events)
    assert isinstance(events[-1], Cancelled)


def test_a_caller_adds_each_kind_of_message_once() -> None:
    """A message to steer by, and one to follow up with; the run reads it before another comes."""
    graph = agent()
    started = Started(0.0, "r", graph.name, CONVERSATIONS[""], SETUPS[0], None)
    run = begin(graph, started, None).run

    said = [one for one in answers({}, run) if isinstance(one, Queued)]
    assert {False, True} == {one.follow_up for one in said}
    for one in said:
        run = step(graph, run, one).run
    assert not any(isinstance(one, Queued) for one in answers({}, run))


Name = NewType("Name", str)


class Color(Enum):
    RED = "red"


class Pair(NamedTuple):
    number: int
    text: str = "x"


@dataclass
class Tree:
    name: Name
    left: Tree | None
    more: list[Tree]
    built: int = field(init=False, default=3)
    size: int = 7


class Model(BaseModel):
    tree: Tree
    told: str = "y"


TYPES: list[Any] = [
    *(None, bool, int, float, str, date, timedelta, UUID, Path, Color, Pair, Tree, Model),
    *(list[int], set[str], frozenset[int], tuple[int, ...], tuple[int, str], dict[str, Pair]),
    *(int | None, Literal["a", "b"], Annotated[int, "seconds"]),
]


@pytest.mark.parametrize("of", TYPES, ids=str)
def test_a_value_is_of_its_type(of: Any) -> None:
    """A sample of something else would prove nothing."""
    TypeAdapter(of).validate_python(sample(of), strict=True)


@pytest.mark.parametrize("of", [object, bytes, list, complex])
def test_of_what_is_not_known_there_is_no_value(of: object) -> None:
    """The proof says so, then."""
    with pytest.raises(TypeError, match="no value"):
        sample(of)
