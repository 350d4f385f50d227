"""Forms of single values."""

from __future__ import annotations

import pytest

from graphloop.topology.forms import (
    Flag,
    Form,
    Many,
    Maybe,
    Number,
    Text,
    Unwritable,
    Whole,
    Word,
)
from tests.topology_forms import read, refusal, written

FORMS: tuple[tuple[Form, str, object], ...] = (
    (Text(), "a", "a"), (Whole(1), "3", 3), (Number(), "2", 2), (Number(), "0.5", 0.5),
    (Flag(), "true", True), (Word(("a", "b")), "b", "b"), (Maybe(Whole()), "null", None),
    (Maybe(Whole()), "1", 1), (Many(Text()), "[a, b]", ("a", "b")),
    (Many(Text(), single=True), "a", ("a",)),
)  # fmt: skip


@pytest.mark.parametrize(("form", "text", "value"), FORMS)
def test_what_is_read_is_written_as_it_was(form: Form, text: str, value: object) -> None:
    """The two ways never part."""
    found = read(form, text)

    assert (type(value), value) == (type(found), found)
    assert value == read(form, str(written(form, value)).replace("None", "null"))


@pytest.mark.parametrize(
    ("form", "text", "said"),
    [
        (Text(), "1", "write '1' in quotes"),
        (Text(filled=True), "' '", "says something"),
        (Whole(), "1.0", "write 1."),
        (Whole(), "true", "a whole number was expected; found the boolean true"),
        (Whole(2), "1", "at least 2"),
        (Number(positive=True), "0", "above 0"),
        (Number(), "true", "a number was expected"),
        (Flag(), "yes", "yes, no, on and off are text here"),
        (Word(("left", "right")), "rigth", "Did you mean 'right'?"),
        (Many(Text()), "a", "a list was expected"),
        (Many(Text(), least=1), "[]", "something in it"),
    ],
)
def test_what_is_not_of_the_form_is_refused_with_what_is(form: Form, text: str, said: str) -> None:
    """A message says what was expected, what was found, and what to write."""
    assert said in refusal(form, text)


def test_every_wrong_value_of_a_list_is_told() -> None:
    """All problems at once."""
    assert 2 == refusal(Many(Whole()), "[1, a, 2, b]").count("a whole number was expected")


@pytest.mark.parametrize(
    ("form", "value"),
    [
        (Text(), 1), (Text(), "\ud800"), (Whole(), True), (Number(), float("nan")), (Flag(), 1),
        (Word(("a",)), "b"), (Many(Text()), "a"),
    ],
)  # fmt: skip
def test_what_has_no_form_cannot_be_written(form: Form, value: object) -> None:
    """A file that would not be read again is never written."""
    with pytest.raises(Unwritable):
        written(form, value)


@pytest.mark.parametrize(
    ("form", "value"),
    [
        (Text(filled=True), " "),
        (Whole(1), 0),
        (Whole(), 10**18),
        (Number(positive=True), 0.0),
        (Number(), 10**400),
        (Number(), 10**18 + 1),
        (Many(Text(), least=1), ()),
    ],
)
def test_nothing_is_written_that_would_be_refused(form: Form, value: object) -> None:
    """A file that cannot be read again is none."""
    with pytest.raises(Unwritable):
        written(form, value)


@pytest.mark.parametrize(
    ("one", "other"), [(5, 5.0), (0, -0.0), (10**22, 1e22), (10**15, 1e15), (10**17, 1e17)]
)
def test_equal_numbers_are_written_alike(one: float, other: float) -> None:
    """Or equal graphs would have two fingerprints."""
    assert one == other
    assert repr(written(Number(), one)) == repr(written(Number(), other))
    assert one == written(Number(), one)
