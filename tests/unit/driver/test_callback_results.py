"""Facts: what functions of the user's made is looked at before a journal holds it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TypedDict

import pytest
from pydantic import BaseModel

from graphloop.errors import ConfigError
from graphloop.events import (
    AnswerChecked,
    BranchesJoined,
    CallbackAnswer,
    Changes,
    NodeReturned,
    StopRequested,
)
from graphloop.policy.policy import allow, deny
from graphloop.stores.round_trip import check_callback_answer, check_state
from graphloop.tools.gates import gates_of
from graphloop.values import UserMessage
from tests.own_nodes import Ticket
from tests.strategies import wrong


class Form(BaseModel):
    """A state that is copied without being looked at."""

    text: str = ""


class Loose(TypedDict):
    """A state whose type does not show in it."""

    text: str


@dataclass(frozen=True)
class Lock:
    """A state that no file can hold."""

    held: object


@pytest.mark.parametrize(
    "answer",
    [
        BranchesJoined("yes"),
        AnswerChecked(accepted=True),
        StopRequested(("cost",)),
        NodeReturned("Ok", state=Lock(object()), changed=True),
        Changes(messages=(UserMessage("hi"),)),
        BranchesJoined("half \ud800"),
    ],
)
def test_a_good_answer_stays_the_same_object(answer: CallbackAnswer) -> None:
    """A state in it is looked at by its own type; half a character is mended when it is written."""
    assert answer is check_callback_answer(answer, "mine")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            "yes",
            "callback 'mine' to return Changes, StopRequested, .* or RequestYielded, found str",
        ),
        (
            BranchesJoined(wrong(3)),
            "callback 'mine' returned BranchesJoined with what no journal .*`str`.*`int`",
        ),
        (AnswerChecked(wrong("yes")), "AnswerChecked"),
        (AnswerChecked(accepted=False, feedback=wrong(5)), "AnswerChecked"),
        (StopRequested(wrong((1,))), "StopRequested"),
        (NodeReturned(wrong(5)), "NodeReturned"),
        (NodeReturned("Ok", fields=wrong({})), "NodeReturned"),
        (Changes(model=wrong(object())), "Changes"),
        (Changes(messages=wrong(("hi",))), "Changes"),
    ],
)
def test_an_answer_of_another_type_is_refused(answer: object, words: str) -> None:
    """Structs take anything when they are made; the journal would show it when it is too late."""
    with pytest.raises(ConfigError, match=words):
        check_callback_answer(answer, "mine")


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(
    ("state", "kind"),
    [
        (Ticket("x"), Ticket),
        (Form(text="x"), Form),
        ({"text": "x"}, dict),
        (None, None),
        (Lock(object()), None),
        (None, Ticket | None),
        (Ticket("x"), Ticket | None),
    ],
)
def test_a_state_of_the_graph_s_type_passes(state: object, kind: object, kept: bool) -> None:
    """Of a graph that tells no type, any does."""
    check_state(state, kind, "node 'n' returns", kept=kept)


def test_a_copy_that_was_not_looked_at_is_refused() -> None:
    """Pydantic looks at what is made, and not at what is copied."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ConfigError, match="`text`: Input should be a valid string"):
            check_state(Form().model_copy(update={"text": 5}), Form, "it is", kept=True)


def test_a_state_that_no_file_can_hold_is_refused_where_one_would() -> None:
    """A run in memory may carry it."""
    check_state(Lock(object()), Lock, "it is", kept=False)
    with pytest.raises(ConfigError, match="cannot be written as JSON"):
        check_state(Lock(object()), Lock, "it is", kept=True)


def test_a_state_of_an_unwritable_type_is_refused_where_it_is_written() -> None:
    """It would be met at the first resume."""
    with pytest.raises(ConfigError, match="no written form"):
        check_state(object(), type("Thing", (), {"x": object()}) | int, "it is", kept=True)


def test_a_state_of_another_type_is_refused() -> None:
    """In words that name both; what does not show is not refused."""
    with pytest.raises(ConfigError, match="type Ticket, found str"):
        check_state("x", Ticket, "it is")
    check_state({"text": "x"}, Loose, "it is")


def test_what_has_to_be_awaited_is_refused() -> None:
    """It is closed as well, so that nobody is told of a coroutine that was never awaited."""

    async def later() -> Ticket:
        return Ticket("x")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConfigError, match="a plain `def`"):
            check_state(later(), None, "`prompt` of node 'w' returns")
        with pytest.raises(ConfigError, match="found coroutine, which has"):
            check_state(later(), None, "`output` of node 'w' returns", kept=False)
    check_state("x", None, "it is")


def much(arguments: object, context: object) -> bool:
    """Whether it is much."""
    return True


def more(arguments: object, context: object) -> bool:
    """Whether it is more."""
    return False


STRICT = deny("pay", when=much) | allow("*")
LENIENT = allow("*")


def test_functions_are_found_by_the_rules() -> None:
    """Whatever stands before them; what the journal does not have is added."""
    assert ((STRICT,), (LENIENT,)) == gates_of([STRICT.rules], [LENIENT, STRICT])
    assert ((LENIENT, STRICT), ()) == gates_of([LENIENT.rules, STRICT.rules], [STRICT, LENIENT])


def test_of_two_gates_that_say_the_same_each_has_its_own_function() -> None:
    """Two conditions may be named alike, and each gate is looked at once."""
    more.__name__ = "much"
    other = deny("pay", when=more) | allow("*")
    assert other.rules == STRICT.rules

    (first, second), added = gates_of([STRICT.rules] * 2, [other, STRICT])

    assert other.conditions is first.conditions
    assert STRICT.conditions is second.conditions
    assert () == added


def test_a_condition_that_nobody_knows_cannot_be_told() -> None:
    """So it counts against the call."""
    (gate,), _ = gates_of([STRICT.rules], [LENIENT])

    assert STRICT.rules == gate.rules
    with pytest.raises(ConfigError, match="expected a function"):
        gate.conditions["much"]({}, None)
