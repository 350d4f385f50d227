"""item_list: a plan is read strictly, or what is wrong with it is said."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.nodes.map_over import ItemForm, read_items


@pytest.mark.parametrize(
    ("text", "form", "items"),
    [
        ('["a", "b"]', "json", ("a", "b")),
        (' ["a"]\n', "json", ("a",)),
        ('```json\n["a", "b"]\n```', "json", ("a", "b")),
        ('```\n["a"]\n```', "json", ("a",)),
        ('["a", {"city": "Rome"}, 3]', "json", ("a", '{"city": "Rome"}', "3")),
        ("a\n\n b \n", "lines", ("a", "b")),
        ("- a\n* b\n1. c\n2) d\n• e", "lines", ("a", "b", "c", "d", "e")),
        ("-5 degrees\n1.5 miles", "lines", ("-5 degrees", "1.5 miles")),
        ("```text\na\nb\n```", "lines", ("a", "b")),
    ],
)
def test_a_list_is_read(text: str, form: ItemForm, items: tuple[str, ...]) -> None:
    """With what models put around it, and nothing of it lost."""
    assert items == read_items(text, form, 5)


@pytest.mark.parametrize(
    ("text", "form", "found"),
    [
        ("", "json", "no list that can be read"),
        ("Sure! [1, 2]", "json", "no list that can be read"),
        ('["a"] and more', "json", "no list that can be read"),
        ('{"a": 1}', "json", "no list that can be read"),
        ('"a"', "json", "no list that can be read"),
        ('["a",', "json", "no list that can be read"),
        ("[NaN]", "json", "no list that can be read"),
        ("[" * 100_000, "json", "no list that can be read"),
        ("[]", "json", "The list is empty"),
        (" \n ", "lines", "The list is empty"),
        ('["a", " "]', "json", "An item of the list is empty"),
        ('["a", "b", "c"]', "json", "The list has 3 items"),
        ("a\nb\nc", "lines", "The list has 3 items"),
    ],
)
def test_what_is_no_list_says_what_is_wrong(text: str, form: ItemForm, found: str) -> None:
    """In words for the model that wrote it."""
    wrong = read_items(text, form, 2)

    assert isinstance(wrong, str)
    assert found in wrong
    assert "at most 2" in wrong


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=6))
def test_a_list_of_texts_comes_back_whole(items: list[str]) -> None:
    """An item is exactly what was written."""
    assert tuple(items) == read_items(json.dumps(items), "json", 6)


@given(st.text(), st.sampled_from(["json", "lines"]), st.integers(1, 3))
def test_nothing_is_ever_longer_than_it_may_be(text: str, form: ItemForm, most: int) -> None:
    """The bound is what the proofs count with."""
    items = read_items(text, form, most)

    assert isinstance(items, str) or (1 <= len(items) <= most and all(map(str.strip, items)))
