"""Bytes as text, and text as a tree of values."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.topology.compose import DEPTH_MAX, SIZE_MAX, VALUES_MAX, bytes_of, compose, text_at
from graphloop.topology.diagnostics import Diagnostics, ParseError
from graphloop.topology.tree import (
    Fields,
    Items,
    Mark,
    Plain,
    Scalar,
    described,
    is_text,
    plain_data,
    plain_word,
)


def test_every_value_has_its_line_and_column() -> None:
    """Without them a message cannot say where."""
    tree = compose("a: 1\nb:\n  - x\n", Diagnostics("a"))

    assert isinstance(tree, Fields)
    first, second = tree.entries
    assert (Mark(1, 1), Mark(1, 4)) == (first.mark, first.value.mark)
    assert Items((Scalar("x", Mark(3, 5), "x"),), Mark(3, 3)) == second.value


def test_json_is_read_with_tabs_and_pairs_of_escapes() -> None:
    """What json.dumps writes is a topology, too."""
    tree = compose('{\n\t"a":\t"\\ud83d\\ude00"\n}', Diagnostics("a"), must_be_json=True)

    assert isinstance(tree, Fields)
    assert isinstance(tree.entries[0].value, Scalar)
    assert "\U0001f600" == tree.entries[0].value.value


def test_half_a_pair_is_refused_where_it_stands() -> None:
    """It is no character, and could not be written again."""
    diagnostics = Diagnostics("a")
    compose('{"a": "\\ud83d"}', diagnostics, must_be_json=True)

    assert ["a:1:7"] == [one.place for one in diagnostics.problems]


def test_a_quoted_merge_key_is_a_word() -> None:
    """Only without quotes does it mean something elsewhere."""
    tree = compose('"<<": 1', Diagnostics("a"))

    assert isinstance(tree, Fields)
    assert ["<<"] == [one.key for one in tree.entries]
    assert "a mapping" == described(tree)


def test_a_tab_between_two_values_of_json_is_no_text() -> None:
    """And one within a text is refused, rather than changed."""
    diagnostics = Diagnostics("a")
    with pytest.raises(ParseError):
        compose('{"a": "x\ty"}', diagnostics, must_be_json=True)

    assert ["a:1:9"] == [one.place for one in diagnostics.problems]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("# 5% off\n%YAML 1.1\n---\na: 1", "2:1"),
        ("  # %\r%FOO\n---\na: 1", "2:1"),
        ("# 5%\n%YAML " + "9" * 50_000 + ".1\n---\na: 1", "2:1"),
    ],
)
def test_a_directive_is_refused_after_whatever_comment(text: str, place: str) -> None:
    """A comment may hold any sign."""
    diagnostics = Diagnostics("a")
    with pytest.raises(ParseError):
        compose(text, diagnostics)

    assert [f"a:{place}"] == [one.place for one in diagnostics.problems]


@pytest.mark.parametrize("escape", ["\\UFFFFFFFF", "\\U00110000"])
def test_an_escape_of_no_character_is_refused_where_it_stands(escape: str) -> None:
    """It is no error of Python's."""
    diagnostics = Diagnostics("a")
    with pytest.raises(ParseError):
        compose(f'a: 1\nname: "{escape}"', diagnostics)

    (problem,) = diagnostics.problems
    assert problem.place.startswith("a:2:")
    assert "no character" in problem.found


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize("text", ["a: 1\nb: 'x{}y'", "a: 1\nb: xx{}", "a: 1\n# zz{}"])
def test_what_two_versions_of_yaml_read_differently_is_refused(text: str, sign: str) -> None:
    """These are line breaks in 1.1, and text in 1.2."""
    diagnostics = Diagnostics("a")
    with pytest.raises(ParseError):
        compose(text.format(sign), diagnostics)

    (problem,) = diagnostics.problems
    assert "a:2:6" == problem.place or "a:2:5" == problem.place
    assert f"U+{ord(sign):04X}" in problem.found
    assert compose('a: "\\N\\L\\P"', Diagnostics("a"))


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.floats(-1e300, 1e300)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
REFUSED = (
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


@given(values, st.sampled_from([None, 2, "\t"]), st.booleans())
def test_what_json_writes_is_read_as_it_was(
    data: object, indent: int | str | None, ascii_only: bool
) -> None:
    """With any indentation, any characters, any lengths of keys."""
    text = json.dumps(data, indent=indent, ensure_ascii=ascii_only)
    diagnostics = Diagnostics("a")

    assert data == plain_data(compose(text, diagnostics, must_be_json=True))
    assert [] == diagnostics.problems


def test_every_value_of_json_has_its_line_and_column() -> None:
    """Without them a message cannot say where."""
    tree = compose('{\n\t"a"\n:\r\n [true, "\x7f\uffff"]}', Diagnostics("a"), must_be_json=True)

    assert isinstance(tree, Fields)
    (entry,) = tree.entries
    assert (Mark(1, 1), Mark(2, 2), "a") == (tree.mark, entry.mark, entry.key)
    items = (Scalar(True, Mark(4, 3), "true"), Scalar("\x7f\uffff", Mark(4, 9), "\x7f\uffff"))
    assert Items(items, Mark(4, 2)) == entry.value


@pytest.mark.parametrize(("text", "place", "said"), REFUSED, ids=[one[0][:16] for one in REFUSED])
def test_what_is_no_json_is_refused_where_it_stands(text: str, place: str, said: str) -> None:
    """Nothing is taken for something else, as YAML would."""
    diagnostics = Diagnostics("a")
    with suppress(ParseError):
        compose(text, diagnostics, must_be_json=True)

    (problem,) = diagnostics.problems
    assert problem.place.startswith(f"a:{place}")
    assert said in str(problem)
    assert problem.fix


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
def test_numbers_that_mean_two_things_or_bound_nothing_are_refused(word: str) -> None:
    """Versions of YAML read 010 as 8 and as 10."""
    with pytest.raises(ValueError, match=r"quote|zeros"):
        plain_word(word)

    assert not is_text(word)


def test_values_are_described_as_what_they_are() -> None:
    """`1.0` and `'1'` look alike in a message that only prints them."""
    for value, written, said in (
        ("1", "1", "the text '1'"),
        (1.0, "1.0", "the number 1.0"),
        (True, "TRUE", "the boolean TRUE"),
        (None, "", "nothing"),
        (None, "~", "null (~)"),
    ):
        assert said == described(Scalar(value, Mark(1, 1), written))
    assert "an empty list" == described(Items((), Mark(1, 1)))
    assert "an empty mapping" == described(Fields((), Mark(1, 1)))


def test_a_byte_order_mark_is_left_out() -> None:
    """Some editors write one; it is no part of the text."""
    assert "a: 1" == text_at(b"\xef\xbb\xbfa: 1", Diagnostics("a"))


def test_no_more_is_read_than_may_stand_there(tmp_path: Path) -> None:
    """A file of ten megabytes costs the memory of one."""
    (tmp_path / "a").write_bytes(b"x" * 10 * SIZE_MAX)

    assert SIZE_MAX + 1 == len(bytes_of(tmp_path / "a", Diagnostics("a")))


def test_what_is_no_file_is_told_apart(tmp_path: Path) -> None:
    """A folder is not a missing file."""
    diagnostics = Diagnostics("a")
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(ParseError):
            bytes_of(path, diagnostics)

    assert ["is a folder, not a file.", "there is no such file."] == [
        one.found for one in diagnostics.problems
    ]
