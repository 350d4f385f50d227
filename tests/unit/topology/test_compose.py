"""Text as a tree of values."""

from __future__ import annotations

import pytest

from graphloop.topology.compose import compose
from graphloop.topology.problems import Complaints, Mark, Misread
from graphloop.topology.tree import Fields, Items, Scalar, described


def test_every_value_has_its_line_and_column() -> None:
    """Without them a message cannot say where."""
    tree = compose("a: 1\nb:\n  - x\n", Complaints("a"))

    assert isinstance(tree, Fields)
    first, second = tree.entries
    assert (Mark(1, 1), Mark(1, 4)) == (first.mark, first.value.mark)
    assert Items((Scalar("x", Mark(3, 5), "x"),), Mark(3, 3)) == second.value


def test_json_is_read_with_tabs_and_pairs_of_escapes() -> None:
    """What json.dumps writes is a topology, too."""
    tree = compose('{\n\t"a":\t"\\ud83d\\ude00"\n}', Complaints("a"), json=True)

    assert isinstance(tree, Fields)
    assert isinstance(tree.entries[0].value, Scalar)
    assert "\U0001f600" == tree.entries[0].value.value


def test_half_a_pair_is_refused_where_it_stands() -> None:
    """It is no character, and could not be written again."""
    complaints = Complaints("a")
    compose('{"a": "\\ud83d"}', complaints, json=True)

    assert ["a:1:7"] == [one.place for one in complaints.problems]


def test_a_quoted_merge_key_is_a_word() -> None:
    """Only without quotes does it mean something elsewhere."""
    tree = compose('"<<": 1', Complaints("a"))

    assert isinstance(tree, Fields)
    assert ["<<"] == [one.key for one in tree.entries]
    assert "a mapping" == described(tree)


def test_a_tab_between_two_values_of_json_is_no_text() -> None:
    """And one within a text is refused, rather than changed."""
    complaints = Complaints("a")
    with pytest.raises(Misread):
        compose('{"a": "x\ty"}', complaints, json=True)

    assert ["a:1:9"] == [one.place for one in complaints.problems]


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
    complaints = Complaints("a")
    with pytest.raises(Misread):
        compose(text, complaints)

    assert [f"a:{place}"] == [one.place for one in complaints.problems]


@pytest.mark.parametrize("escape", ["\\UFFFFFFFF", "\\U00110000"])
def test_an_escape_of_no_character_is_refused_where_it_stands(escape: str) -> None:
    """It is no error of Python's."""
    complaints = Complaints("a")
    with pytest.raises(Misread):
        compose(f'a: 1\nname: "{escape}"', complaints)

    (problem,) = complaints.problems
    assert problem.place.startswith("a:2:")
    assert "no character" in problem.found


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize("text", ["a: 1\nb: 'x{}y'", "a: 1\nb: xx{}", "a: 1\n# zz{}"])
def test_what_two_versions_of_yaml_read_differently_is_refused(text: str, sign: str) -> None:
    """These are line breaks in 1.1, and text in 1.2."""
    complaints = Complaints("a")
    with pytest.raises(Misread):
        compose(text.format(sign), complaints)

    (problem,) = complaints.problems
    assert "a:2:6" == problem.place or "a:2:5" == problem.place
    assert f"U+{ord(sign):04X}" in problem.found
    assert compose('a: "\\N\\L\\P"', Complaints("a"))
