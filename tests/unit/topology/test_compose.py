"""Text as a tree of values."""

from __future__ import annotations

from graphloop.topology.compose import Fields, Items, Scalar, compose, described
from graphloop.topology.problems import Complaints, Mark


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
