"""JSON as a tree of values."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.topology.json_text import is_json, read_json
from graphloop.topology.problems import Complaints, Mark, Misread
from graphloop.topology.tree import DEPTH_MAX, VALUES_MAX, Fields, Items, Scalar, Value

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.floats(-1e300, 1e300)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
REFUSED = (
    ('{"a": 1,}', "1:9", "a key in quotes"),
    ('{"a": 1 "b": 2}', "1:9", "a comma or `}`"),
    ('{"a" 1}', "1:6", "a colon"),
    ("{a: 1}", "1:2", "a key in quotes"),
    ("{'a': 1}", "1:2", "a key in quotes"),
    ("[1,]", "1:4", "a value"),
    ("[1\n 2]", "2:2", "a comma or `]`"),
    ("[NaN]", "1:2", "a value"),
    ("[-Infinity]", "1:2", "a value"),
    ("[True]", "1:2", "a value"),
    ("[01]", "1:3", "a comma or `]`"),
    ("[.5]", "1:2", "a value"),
    ("[+5]", "1:2", "a value"),
    ('{"a": "x\ty"}', "1:9", "control character"),
    ('{"a": "x\ny"}', "1:9", "control character"),
    ('{"a": "\\x41"}', "1:8", "escape"),
    ('{"a": "x', "1:7", "Unterminated string"),
    ("graphloop: 1", "1:1", "a value"),
    ('{"a": 1} // x', "1:10", "the end"),
    ('{"a": 1} {}', "1:10", "the end"),
    ("[", "1:2", "a value"),
    ("", "1:1", "a value"),
    ("\x0c[]", "1:1", "a value"),
    ('{"a": 1, "a": 2}', "1:10", "stands here twice, first on line 1"),
    ('{"a": "\\ud83d"}', "1:7", "half of a surrogate pair"),
    ("[1e999]", "1:2", "a finite number"),
    ("[" + "9" * 5_000 + "]", "1:2", "at most 18 digits"),
    ("[" * 900_000, f"1:{DEPTH_MAX + 1}", "at most 32 levels"),
    ('{"a":' * 100_000, "1:157", "at most 32 levels"),
    ("[" + "1," * (VALUES_MAX + 1) + "1]", "1:100000", "at most 50,000 values"),
)


def _data(value: Value) -> object:
    match value:
        case Scalar():
            return value.value
        case Items():
            return [_data(one) for one in value.items]
        case Fields():
            return {one.key: _data(one.value) for one in value.entries}


@given(plain, st.sampled_from([None, 2, "\t"]), st.booleans())
def test_what_json_writes_is_read_as_it_was(
    data: object, indent: int | str | None, ascii_only: bool
) -> None:
    """With any indentation, any characters, any lengths of keys."""
    text = json.dumps(data, indent=indent, ensure_ascii=ascii_only)
    complaints = Complaints("a")

    assert data == _data(read_json(text, complaints))
    assert [] == complaints.problems
    assert is_json(text) is isinstance(data, list | dict)


def test_every_value_has_its_line_and_column() -> None:
    """Without them a message cannot say where."""
    tree = read_json('{\n\t"a"\n:\r\n [true, "\x7f\uffff"]}', Complaints("a"))

    assert isinstance(tree, Fields)
    (entry,) = tree.entries
    assert (Mark(1, 1), Mark(2, 2), "a") == (tree.mark, entry.mark, entry.key)
    items = (Scalar(True, Mark(4, 3), "true"), Scalar("\x7f\uffff", Mark(4, 9), "\x7f\uffff"))
    assert Items(items, Mark(4, 2)) == entry.value


@pytest.mark.parametrize(("text", "place", "said"), REFUSED, ids=[one[0][:16] for one in REFUSED])
def test_what_is_no_json_is_refused_where_it_stands(text: str, place: str, said: str) -> None:
    """Nothing is taken for something else, as YAML would."""
    complaints = Complaints("a")
    with suppress(Misread):
        read_json(text, complaints)

    (problem,) = complaints.problems
    assert f"a:{place}" == problem.place
    assert said in str(problem)
    assert problem.fix
