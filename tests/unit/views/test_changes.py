"""Two graphs in one picture: nothing of either is lost."""

from __future__ import annotations

from hypothesis import given, settings

from graphloop.graph import NodeGraph
from graphloop.proofs.comparison import compare
from graphloop.views.comparison import changes_picture
from graphloop.views.dot import dot_of
from graphloop.views.pictures import Picture, picture
from tests.changed_loop import bypassed, changed, gateless
from tests.graphs import any_graphs


def drawn(before: NodeGraph[None], after: NodeGraph[None]) -> Picture:
    return changes_picture(before, after, compare(before, after))


def ways(one: Picture, *, gone: bool) -> set[tuple[str, str, str]]:
    """Return the lines of a picture that are gone, or those that are there."""
    names = {shape.id: shape.words[0] for shape in one.shapes}
    return {
        (names[stroke.source], word.outcome, names[stroke.target])
        for stroke in one.strokes
        if (stroke.tone == "removed") is gone
        for word in stroke.words
    }


@given(any_graphs(), any_graphs())
@settings(max_examples=15, deadline=None)
def test_what_is_drawn_as_there_is_the_later_table_and_the_rest_is_what_is_gone(
    before: NodeGraph[None], after: NodeGraph[None]
) -> None:
    """A reviewer approves the picture."""
    one = drawn(before, after)
    old = {(edge.source, edge.outcome, edge.target) for edge in before.edges}
    new = {(edge.source, edge.outcome, edge.target) for edge in after.edges}

    assert new == ways(one, gone=False)
    assert old - new == ways(one, gone=True)


@given(any_graphs(), any_graphs())
@settings(max_examples=15, deadline=None)
def test_only_what_is_new_is_drawn_as_new(before: NodeGraph[None], after: NodeGraph[None]) -> None:
    """Also where a new outcome goes along with one that was there before."""
    one = drawn(before, after)
    names = {shape.id: shape.words[0] for shape in one.shapes}
    old = {(edge.source, edge.outcome, edge.target) for edge in before.edges}
    for stroke in one.strokes:
        for word in stroke.words:
            way = (names[stroke.source], word.outcome, names[stroke.target])
            assert (stroke.tone == "added") is (way not in old)


def test_a_graph_beside_itself_is_drawn_as_it_is() -> None:
    """But for its title."""
    plain, same = (
        dot_of(picture(changed())).splitlines(),
        dot_of(drawn(changed(), changed())).splitlines(),
    )

    assert [line for line in plain if "label=agent" not in line][6:] == same[6:]
    assert "agent (changes: not weaker)" in drawn(changed(), changed()).title


def test_what_is_gone_stands_last_and_what_stayed_keeps_its_place() -> None:
    """So two pictures of one graph can be laid side by side."""
    one = drawn(changed(), changed(gateless))
    ids = [shape.id for shape in one.shapes]

    assert [shape.id for shape in picture(changed(gateless)).shapes[:-1]] == ids[:-2]
    assert ("gate", "(gone)") == one.shapes[-2].words
    assert "removed" == one.shapes[-2].tone


def test_the_way_that_got_weaker_is_numbered() -> None:
    """The verdict, in the picture."""
    one = drawn(changed(), changed(bypassed))
    words = {str(word) for stroke in one.strokes for word in stroke.words}

    assert {"ready [1]", "calls (was gate) [2]", "calls (gone)"} <= words
    assert "agent (changes: weaker)" == one.title
