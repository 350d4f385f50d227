"""Choices: a world is a list of numbers, which is shrunk."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.errors import ConfigError
from graphloop.testing.choices import COUNT_MAX, TRIALS_MAX, Choices, from_token, shrunk, to_token

counts = st.lists(st.integers(1, COUNT_MAX), max_size=30)
values = st.lists(st.integers(0, 255), max_size=40)


@given(seed=st.integers(0, 999), asked=counts)
def test_a_seed_and_its_list_draw_the_same_numbers(seed: int, asked: list[int]) -> None:
    """That is what replaying and shrinking stand on."""
    first, second = Choices.seeded(seed), Choices.seeded(seed)
    drawn = [first.draw(count) for count in asked]

    assert drawn == [second.draw(count) for count in asked]
    again = Choices.replayed(first.taken)
    assert drawn == [again.draw(count) for count in asked]
    assert first.taken == again.taken
    assert all(0 <= one < count for one, count in zip(drawn, asked, strict=True))


@given(given_values=values, asked=counts)
def test_any_list_is_a_world(given_values: list[int], asked: list[int]) -> None:
    """What is too large is the largest, what is missing 0: a shrinker may leave out anything."""
    choices = Choices.replayed(given_values)

    drawn = [choices.draw(count) for count in asked]

    assert all(0 <= one < count for one, count in zip(drawn, asked, strict=True))
    assert [0] * 3 == [Choices.replayed(()).draw(count) for count in (1, 2, 256)]


@given(given_values=values, mark=st.integers(0, 2**32 - 1))
def test_a_token_is_the_list_without_the_zeros_at_its_end(
    given_values: list[int], mark: int
) -> None:
    """It is typed into command lines: short, and without a sign that a shell knows."""
    token = to_token(given_values, mark)
    found, found_mark = from_token(f" {token}\n")

    assert mark == found_mark
    assert [*found, *[0] * (len(given_values) - len(found))] == given_values
    assert token.replace("-", "").replace("_", "").isalnum()


@pytest.mark.parametrize(
    "token", ["", "f1-", "f1-AAA", "f2-AAAAAA", "f1-äöü", "f1-AAAAAAA", "f1-!"]
)
def test_what_is_no_token_is_refused(token: str) -> None:
    """A token that lost its end must not run another world."""
    with pytest.raises(ConfigError, match="expected a token"):
        from_token(token)


Values = tuple[int, ...]


CASES: list[tuple[Callable[[Values], bool], Values]] = [
    (lambda one: True, ()),
    (lambda one: max(one, default=0) >= 10, (10,)),
    (lambda one: 7 in one, (7,)),
    (lambda one: one[2:3] > (4,), (0, 0, 5)),
    (lambda one: 3 in one and 9 in one, (3, 9)),
    # The first number says how many pairs come before the one that matters.
    (lambda one: one[:1] != () and one[1 + 2 * one[0] : 2 + 2 * one[0]] == (9,), (0, 9)),
]


@pytest.mark.parametrize(("condition", "simplest"), CASES)
def test_the_simplest_list_is_found(condition: Callable[[Values], bool], simplest: Values) -> None:
    """Short, and of small numbers."""
    start = (4, 9, 7, 0, 3, 9, 200, 7, 1, 9, 0, 9, 3, 1)

    found = shrunk(start, lambda one: one if condition(one) else None)

    assert simplest == found


@given(values=st.lists(st.integers(0, 255), max_size=60).map(tuple))
def test_what_is_returned_fails_and_is_no_longer(values: Values) -> None:
    """And the search ends, whatever it is asked."""
    trials = 0

    def fails(one: Values) -> Values | None:
        nonlocal trials
        trials += 1
        return one if sum(one) % 3 == sum(values) % 3 else None

    found = shrunk(values, fails)

    assert sum(values) % 3 == sum(found) % 3
    assert (len(found), found) <= (len(values), values)
    assert trials <= TRIALS_MAX
