"""Fields of the state: items that a map reads, results that it writes, and reducers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from pydantic import BaseModel

from graphloop.errors import ConfigError
from graphloop.events import Setup
from graphloop.run import Run
from graphloop.states import ItemsOf, PromptsOf, ResultsInto, reduce, reduced_fields, with_result
from graphloop.turn import BranchRun, Turn


class Note(BaseModel):
    """What a result is."""

    title: str
    score: int = 0


class Tone(Enum):
    """A field of fixed words."""

    DRY = "dry"
    WARM = "warm"


@dataclass(frozen=True)
class Article:
    """A state with fields of every form."""

    questions: tuple[str, ...] = ()
    parts: list[Note] = field(default_factory=list[Note])
    notes: list[Note] = field(default_factory=list[Note])
    log: Annotated[list[str], reduce(operator.add)] = field(default_factory=list[str])
    total: Annotated[int, "a number", reduce(operator.add)] = 1
    pairs: tuple[int, ...] = ()
    draft: str = ""
    tone: Tone = Tone.DRY
    kind: Literal["long", "short"] = "long"


def run_of(state: Any, *contents: str, into: str = "") -> Run[Any]:
    """Return a run whose branches ended with this."""
    branches = [
        BranchRun(f"b{at}", "agent", status="ok", content=content, into=into)
        for at, content in enumerate(contents)
    ]
    turn = Turn(0, branches=tuple(branches))
    return Run(id="r", node="map", state=state, setup=Setup(), at=0.0, turn=turn)


def test_the_items_of_a_field_are_texts_or_json() -> None:
    state = Article(("a?", "b?"), [Note(title="x", score=1)])

    assert ("a?", "b?") == ItemsOf("questions")(run_of(state)).items
    assert ('{"title":"x","score":1}',) == ItemsOf("parts")(run_of(state)).items


def test_functions_choose_the_items_and_write_the_prompts() -> None:
    def best(state: Article) -> list[Note]:
        return [note for note in state.parts if note.score]

    def prompt(note: Note) -> str:
        return f"Look into {note.title}."

    state = Article(parts=[Note(title="x", score=1), Note(title="y")])

    assert ("Look into x.",) == ItemsOf(best, prompt)(run_of(state)).items
    asked = PromptsOf(("Go.", lambda article: f"{len(article.parts)} parts"))
    assert ("Go.", "2 parts") == asked(run_of(state)).items


def nothing(state: Article) -> None:
    """List no items."""


def blank(state: Article) -> list[str]:
    """List an item that says nothing."""
    return [" "]


@pytest.mark.parametrize(
    ("items", "found"),
    [
        ("question", "found 'question'. Did you mean 'questions'?"),
        ("draft", "expected a list of items, found ''"),
        (nothing, "expected a list of items, found None"),
        (blank, "expected a text for each item, found ' '"),
    ],
)
def test_what_holds_no_items_is_an_error(items: Any, found: str) -> None:
    with pytest.raises(ConfigError) as error:
        ItemsOf(items)(run_of(Article()))

    assert found in str(error.value)


@given(st.lists(st.builds(Note, title=st.text(), score=st.integers(-9, 9))))
def test_results_come_as_typed_values_in_the_order_of_the_branches(notes: list[Note]) -> None:
    contents = [note.model_dump_json() for note in notes]

    made = ResultsInto("notes", Article)(run_of(Article(), *contents))

    assert made.changed
    assert replace(Article(), notes=notes) == made.state


def test_a_list_field_gets_what_its_type_says() -> None:
    assert Article(pairs=(1, 2)) == ResultsInto("pairs", Article)(run_of(Article(), "1", "2")).state
    texts = ResultsInto("log", Article)(run_of(Article(log=["old"]), "1", '{"no": "JSON"}')).state
    assert Article(log=["old", "1", '{"no": "JSON"}']) == texts


@pytest.mark.parametrize(
    ("name", "content", "value"),
    [
        ("draft", '"quoted"', '"quoted"'),
        ("tone", "warm", Tone.WARM),
        ("tone", '"warm"', Tone.WARM),
        ("kind", "short", "short"),
        ("total", "4", 5),
        ("log", "one", ["one"]),
        ("log", '["one", "two"]', ["one", "two"]),
    ],
)
def test_one_result_fits_the_type_of_its_field(name: str, content: str, value: Any) -> None:
    state = with_result(Article(), Article, name, content, "agent")

    assert replace(Article(), **{name: value}) == state


def test_branches_write_into_their_own_fields_and_reducers_combine_in_order() -> None:
    run = run_of(Article(), "a", "b", into="log")

    assert Article(log=["a", "b"]) == ResultsInto("", Article)(run).state
    assert {"log", "total"} == reduced_fields(Article)


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("notes", "no JSON", "`into` 'notes': expected a result of type Note, found 'no JSON'"),
        ("draft", "x", "expected a field that holds a list or a tuple, found 'draft'"),
    ],
)
def test_a_result_of_another_type_is_an_error(name: str, content: str, found: str) -> None:
    with pytest.raises(ConfigError, match="Fix:") as error:
        ResultsInto(name, Article)(run_of(Article(), content))

    assert found in str(error.value)


def test_a_reducer_that_fails_is_named() -> None:
    state = replace(Article(), log=None)  # type: ignore[arg-type]  # A field without its default.

    with pytest.raises(ConfigError, match="the reducer of field 'log' raised TypeError"):
        ResultsInto("log", Article)(run_of(state, "a"))


def count(old: list[str], new: list[str]) -> object:
    """Return no value of the field."""
    return len(old) + len(new)


@dataclass(frozen=True)
class Counted:
    """Fields whose reducers return another type."""

    log: Annotated[list[str], reduce(count)] = ()  # type: ignore[assignment]
    held: Annotated[Any, reduce(count)] = ()


def test_a_reducer_that_returns_another_type_is_named_with_its_node() -> None:
    """Otherwise the run goes on with a state that a journal cannot read back."""
    found = "'map': the reducer of field 'log': expected .* of type .*str.*, found 1"
    with pytest.raises(ConfigError, match=found):
        ResultsInto("log", Counted)(run_of(Counted(), "a"))
    with pytest.raises(ConfigError, match="'critic': the reducer of field 'log'"):
        with_result(Counted(), Counted, "log", "a", "critic")

    assert Counted(held=2) == with_result(Counted(held="a"), Counted, "held", "b", "critic")


def of_three(first: object, second: object, third: object) -> object:
    """Take one argument too many."""
    return first


@pytest.mark.parametrize("function", [len, nothing, of_three, 7])
def test_a_reducer_takes_the_old_value_and_the_results(function: Any) -> None:
    with pytest.raises(ConfigError, match=r"`reduce`: expected .*Fix: give it two"):
        reduce(function)


def test_builtins_may_reduce() -> None:
    """Python tells no signature of `max`."""
    assert max is reduce(max).function


class Model(BaseModel):
    """A state as a pydantic model."""

    notes: list[int] = []


class Record(Struct):
    """A state as a struct."""

    notes: list[int] = []


class Named(NamedTuple):
    """A state as a named tuple."""

    notes: list[int]


class Typed(TypedDict):
    """A state as a mapping."""

    notes: list[int]


class Plain:
    """A state as a plain object."""

    notes: list[int]

    def __init__(self) -> None:
        self.notes = []


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        (Model(), Model),
        (Record(), Record),
        (Named([]), Named),
        ({"notes": [], "more": 1}, Typed),
        (Plain(), Plain),
    ],
)
def test_every_form_of_a_state_takes_results_and_stays_unchanged_itself(
    state: Any, kind: type[object]
) -> None:
    made: Any = ResultsInto("notes", kind)(run_of(state, "1", "2")).state

    def notes(of: Any) -> Any:
        return of["notes"] if kind is Typed else of.notes

    assert [1, 2] == notes(made)
    assert [] == notes(state)


def extended(lines: list[str], more: list[str]) -> list[str]:
    """Change the old value in place."""
    lines += more
    return lines


@dataclass
class Log:
    """A state that can be changed in place."""

    lines: Annotated[list[str], reduce(extended)]


def test_a_reducer_cannot_change_the_state_in_place() -> None:
    """The journal would not see it."""
    state = Log(["old"])

    assert Log(["old", "new"]) == ResultsInto("lines", Log)(run_of(state, "new")).state
    assert Log(["old"]) == state


def test_an_annotation_that_cannot_be_resolved_is_an_error() -> None:
    """A reducer that is not found would lose the old value."""

    class Hidden:
        """No part of any module."""

    @dataclass
    class Local:
        lines: list[Hidden]

    with pytest.raises(ConfigError, match="the annotations of Local"):
        ResultsInto("lines", Local)(run_of(Local([]), "new"))


def unsaid(state: Article) -> None:
    """Return no prompt."""


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: PromptsOf((unsaid,))(run_of(Article())), "a function that returns a text"),
        (lambda: ItemsOf("x")(run_of({"questions": []})), "(questions), found 'x'"),
        (lambda: ItemsOf("x")(run_of(7)), "(it has none), found 'x'"),
        (lambda: with_result({"log": ""}, dict, "lag", "x", "a"), "Did you mean 'log'?"),
    ],
)
def test_errors_name_what_was_found(make: Callable[[], object], found: str) -> None:
    with pytest.raises(ConfigError) as error:
        make()

    assert found in str(error.value)


def test_a_type_without_fields_has_no_reducers() -> None:
    class Hidden:
        """No part of any module."""

    @dataclass
    class Local:
        lines: list[Hidden]

    assert frozenset() == reduced_fields(Local) == reduced_fields(int) == reduced_fields(None)
