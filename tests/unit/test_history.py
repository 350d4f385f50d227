"""History: a tuple that can be grown without being copied."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.run import BLOCK, History
from tests.for_each import for_each

chunks = st.lists(st.lists(st.integers(), max_size=2 * BLOCK + 1), max_size=6)
BORDERS = (0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 1, BLOCK**2 - 1, BLOCK**2, BLOCK**2 + 1)


@given(chunks=chunks)
def test_a_history_is_the_tuple_of_what_was_appended(chunks: list[list[int]]) -> None:
    """However it was cut into appends."""
    grown: History[int] = History()
    for chunk in chunks:
        grown = grown.append(*chunk)
    expected = tuple(item for chunk in chunks for item in chunk)

    assert expected == tuple(grown)
    assert expected[::-1] == tuple(reversed(grown))
    assert len(expected) == len(grown)
    assert History(expected) == grown
    assert hash(History(expected)) == hash(grown)
    assert [expected[at] for at in range(len(expected))] == [grown[at] for at in range(len(grown))]
    assert expected[::-1] == grown[::-1]
    assert expected[1:-1] == grown[1:-1]


@given(first=st.integers(0, 3 * BLOCK), second=st.integers(0, 3 * BLOCK))
def test_appending_leaves_older_versions_as_they_are(first: int, second: int) -> None:
    """Two branches of one run share their past."""
    trunk = History(range(first))

    left, right = trunk.append(*range(second)), trunk.append(-1)

    assert tuple(range(first)) == tuple(trunk)
    assert (*range(first), *range(second)) == tuple(left)
    assert (*range(first), -1) == tuple(right)


@for_each("size", BORDERS)
@pytest.mark.parametrize("grown", BORDERS)
def test_a_history_starts_with_every_history_it_grew_from(size: int, grown: int) -> None:
    """Encoders trust this to send cached bytes."""
    older = History([object() for _ in range(size)])

    newer = older.append(*(object() for _ in range(grown)))

    assert newer.starts_with(older)
    assert older.starts_with(newer) == (grown == 0)


@pytest.mark.parametrize("size", BORDERS[1:])
def test_a_history_does_not_start_with_another_of_its_length(size: int) -> None:
    """Equal is not enough: other objects may be encoded otherwise."""
    trunk = History([object() for _ in range(size)])
    branch = History(trunk[:-1]).append(object())

    assert not trunk.append(object()).starts_with(branch)


@pytest.mark.parametrize("index", [BLOCK + 1, -BLOCK - 2, 10**9])
def test_an_index_outside_is_an_error(index: int) -> None:
    """Never an item of the neighbouring block."""
    with pytest.raises(IndexError, match="outside a history of 33"):
        History(range(BLOCK + 1))[index]


@pytest.mark.parametrize("size", [0, 1, BLOCK, BLOCK + 1])
def test_a_history_equals_a_tuple_of_its_items(size: int) -> None:
    """A first event has one or the other; both hash alike, or they would break sets."""
    items = tuple(range(size))

    assert History(items) == items == History(items)
    assert hash(History(items)) == hash(items)
    assert History(items) != (*items, 0)
    assert History(items) != [*items]


def test_a_history_of_a_history_copies_nothing() -> None:
    """The runs of a chat begin with one conversation, however long it is."""
    items = History([object() for _ in range(BLOCK**2)])
    same = History(items)  # Python remembers the types that it has looked at.
    tracemalloc.start()
    same = History(items)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert same == items
    assert peak < 1_000


@pytest.mark.parametrize("size", [BLOCK**2 - 1, BLOCK**2, BLOCK**2 + BLOCK, BLOCK**3 + BLOCK + 1])
def test_blocks_of_blocks_hold_what_was_appended(size: int) -> None:
    """Appended one by one, in one go, or given: the same, wherever it is read."""
    items = tuple(range(size))
    one_by_one: History[int] = History()
    for item in items:
        one_by_one = one_by_one.append(item)

    assert History(items) == one_by_one == History[int]().append(*items)
    assert hash(History(items)) == hash(one_by_one)
    assert items == tuple(one_by_one)
    borders = (0, BLOCK - 1, BLOCK, size // 2, size - BLOCK - 1, size - 1)
    assert list(borders) == [one_by_one[at] for at in borders]
    assert [items[-at - 1] for at in borders] == [one_by_one[-at - 1] for at in borders]
    for start in borders:
        assert items[start : start + 2 * BLOCK] == one_by_one[start : start + 2 * BLOCK]
    assert not History(items[:-1]).starts_with(one_by_one)
    assert not one_by_one.starts_with(History((*items[:-1], -1)))
