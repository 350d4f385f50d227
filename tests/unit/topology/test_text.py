"""Bytes as text, text as a tree of values, and the problems of both."""

from __future__ import annotations

import json
import pickle
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.errors import GraphError, Problem
from graphloop.topology.compose import DEPTH_MAX, VALUES_MAX, bytes_of, compose
from graphloop.topology.diagnostics import PROBLEMS_MAX, Diagnostics, ParseError, TopologyError
from graphloop.topology.tree import (
    Fields,
    Items,
    Mark,
    Plain,
    Scalar,
    is_text,
    plain_data,
    plain_word,
)

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.floats(-1e300, 1e300)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
NO_YAML = (
    ("# 5% off\n%YAML 1.1\n---\na: 1", "2:1", "a directive"),
    ("  # %\r%FOO\n---\na: 1", "2:1", "a directive"),
    ("# 5%\n%YAML " + "9" * 50_000 + ".1\n---\na: 1", "2:1", "a directive"),
    ('a: 1\nname: "\\UFFFFFFFF"', "2:", "no character"),
    ('a: 1\nname: "\\U00110000"', "2:", "no character"),
    # Line breaks in YAML 1.1, and text in 1.2.
    ("a: 1\nb: 'x\x85y'", "2:6", "U+0085"),
    ("a: 1\nb: xx\u2028", "2:6", "U+2028"),
    ("a: 1\n# zz\u2029", "2:5", "U+2029"),
)
NO_JSON = (
    ('{"a": 1,}', "1:", "this is no JSON"),
    ('{"a": 1 "b": 2}', "1:9", "this is no JSON"),
    ('{"a" 1}', "1:6", "this is no JSON"),
    ("{a: 1}", "1:2", "this is no JSON"),
    ("{'a': 1}", "1:2", "this is no JSON"),
    ("[1,]", "1:", "this is no JSON"),
    ("[1\n 2]", "2:2", "this is no JSON"),
    ("[NaN]", "1:2", "this is no JSON"),
    ("[-Infinity]", "1:2", "this is no JSON"),
    ("[True]", "1:2", "this is no JSON"),
    ("[01]", "1:3", "this is no JSON"),
    ("[.5]", "1:2", "this is no JSON"),
    ("[+5]", "1:2", "this is no JSON"),
    ('{"a": "x\ty"}', "1:9", "control character"),
    ('{"a": "x\ny"}', "1:9", "control character"),
    ('{"a": "\\x41"}', "1:8", "escape"),
    ('{"a": "x', "1:7", "Unterminated string"),
    ("graphloop: 1", "1:1", "this is no JSON"),
    ('{"a": 1} // x', "1:10", "this is no JSON"),
    ('{"a": 1} {}', "1:10", "this is no JSON"),
    ("[", "1:2", "this is no JSON"),
    ("", "1:1", "this is no JSON"),
    ("\x0c[]", "1:1", "this is no JSON"),
    ('{"a": 1, "a": 2}', "1:10", "stands here twice, first on line 1"),
    ('{"a": "\\ud83d"}', "1:7", "half of a surrogate pair"),
    ("[1e999]", "1:2", "a finite number"),
    ("[" + "9" * 5_000 + "]", "1:2", "at most 18 digits"),
    ("[" * 900_000, f"1:{DEPTH_MAX + 1}", "at most 32 levels"),
    ('{"a":' * 100_000, "1:157", "at most 32 levels"),
    ("[" + "1," * (VALUES_MAX + 1) + "1]", "1:100000", "at most 50,000 values"),
)
REFUSED = [*[(*row, False) for row in NO_YAML], *[(*row, True) for row in NO_JSON]]


@pytest.mark.parametrize(
    ("text", "place", "said", "json"), REFUSED, ids=[row[0][:16] for row in REFUSED]
)
def test_a_text_that_means_nothing_is_refused_where_it_stands(
    text: str, place: str, said: str, json: bool
) -> None:
    """Nothing is taken for something else: JSON is no YAML, and YAML of two versions is neither."""
    diagnostics = Diagnostics("a")
    with suppress(ParseError):
        compose(text, diagnostics, must_be_json=json)

    (problem,) = diagnostics.problems
    assert problem.place.startswith(f"a:{place}")
    assert said in str(problem)
    assert problem.fix


@given(values, st.sampled_from([None, 2, "\t"]), st.booleans())
def test_written_json_is_read_as_it_was(
    data: object, indent: int | str | None, ascii_only: bool
) -> None:
    """With any indentation, any characters, any lengths of keys."""
    text = json.dumps(data, indent=indent, ensure_ascii=ascii_only)
    diagnostics = Diagnostics("a")

    assert data == plain_data(compose(text, diagnostics, must_be_json=True))
    assert [] == diagnostics.problems


def test_every_value_has_its_line_and_column() -> None:
    """Without them a message cannot say where; in both notations."""
    yaml = compose("a: 1\nb:\n  - x\n", Diagnostics("a"))
    tree = compose('{\n\t"a"\n:\r\n [true, "\x7f\uffff"]}', Diagnostics("a"), must_be_json=True)

    assert isinstance(yaml, Fields)
    first, second = yaml.entries
    assert (Mark(1, 1), Mark(1, 4)) == (first.mark, first.value.mark)
    assert Items((Scalar("x", Mark(3, 5), "x"),), Mark(3, 3)) == second.value
    assert isinstance(tree, Fields)
    (entry,) = tree.entries
    assert (Mark(1, 1), Mark(2, 2), "a") == (tree.mark, entry.mark, entry.key)
    items = (Scalar(True, Mark(4, 3), "true"), Scalar("\x7f\uffff", Mark(4, 9), "\x7f\uffff"))
    assert Items(items, Mark(4, 2)) == entry.value


def test_a_refused_word_may_stand_in_quotes() -> None:
    """A merge key means something elsewhere only without them."""
    tree = compose('"<<": "\\N\\L\\P"', Diagnostics("a"))

    assert {"<<": "\x85\u2028\u2029"} == plain_data(tree)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("true", True), ("FALSE", False), ("~", None), ("", None), ("0x1F", 31), ("0o17", 15),
        ("-3", -3), ("1e3", 1000.0), (".5", 0.5), ("yes", "yes"), ("No", "No"), ("on", "on"),
        ("1_000", "1_000"), ("0.30000000000000004", 0.30000000000000004),
        ("-2.2250738585072014e-308", -2.2250738585072014e-308), ("1.0e+22", 1e22),
        ("9" * 18, 10**18 - 1), ("12:30:00", "12:30:00"),
        ("2020-01-01", "2020-01-01"), ("0b1", "0b1"),
    ],
)  # fmt: skip
def test_words_mean_what_yaml_1_2_says(word: str, value: Plain) -> None:
    """`no` is the domain of Norway, and no boolean."""
    found = plain_word(word)

    assert (type(value), value) == (type(found), found)
    assert isinstance(value, str) == is_text(word)


@pytest.mark.parametrize(
    "word", ["010", "-00", ".inf", "-.INF", ".nan", "9" * 5000, "9" * 19, "0." + "1" * 40, "1e999"]
)
def test_numbers_of_two_meanings_and_infinite_ones_are_refused(word: str) -> None:
    """Versions of YAML read 010 as 8 and as 10."""
    with pytest.raises(ValueError, match=r"quote|zeros"):
        plain_word(word)

    assert not is_text(word)


def test_a_folder_is_not_a_missing_file(tmp_path: Path) -> None:
    """A folder is not a missing file."""
    diagnostics = Diagnostics("a")
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(ParseError):
            bytes_of(path, diagnostics)

    assert ["is a folder, not a file.", "there is no such file."] == [
        problem.found for problem in diagnostics.problems
    ]


def test_problems_are_told_in_the_order_of_the_file() -> None:
    """A reader goes through the file once; `graphloop check` reports the error like any other."""
    diagnostics = Diagnostics("a.yaml")
    diagnostics.note(Mark(10, 1), "late.", "x.")
    diagnostics.note(Mark(9, 2), "early.", "y.")

    with pytest.raises(
        TopologyError, match=r"2 problem\(s\):\n  1. a.yaml:9:2: early. Fix: y."
    ) as refused:
        diagnostics.refuse()

    back = pickle.loads(pickle.dumps(refused.value))  # noqa: S301 - of our own making
    assert isinstance(back, GraphError)
    assert (str(refused.value), refused.value.problems) == (str(back), back.problems)


def test_a_report_has_a_bounded_number_of_problems() -> None:
    """A file of a megabyte can be wrong a hundred thousand times."""
    diagnostics = Diagnostics("a")
    for line in range(PROBLEMS_MAX + 5):
        diagnostics.note(Mark(line + 1, 1), "x.", "y.")

    assert PROBLEMS_MAX == len(diagnostics.problems)
    assert not diagnostics.nearest("nme", ["name"])


def test_a_closed_place_takes_no_further_problem() -> None:
    """A value in place of a number that cannot be read is no mistake of the file."""
    diagnostics = Diagnostics("a")
    diagnostics.note_last(Mark(1, 1), "x.", "y.")
    diagnostics.note(Mark(1, 1), "follows from it.", "y.")

    assert [Problem("a:1:1", "x.", "y.")] == diagnostics.problems


def test_no_problem_drives_a_terminal_or_fills_it() -> None:
    """Names are the file's, and the file may be anybody's."""
    diagnostics = Diagnostics("a\x1b[2J.yaml")
    diagnostics.note(Mark(1, 1), f"there is no node '\x1b[2J{'k' * 100_000}\u202e'.", "add `\n`.")

    text = str(diagnostics.problems[0])
    assert text.isprintable()
    assert len(text) < 600
    assert "there is no node '\\x1b[2Jkkk" in text
    assert "kkk\\u202e'. Fix: add `\\n`." in text
