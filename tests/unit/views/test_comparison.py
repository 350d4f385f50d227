"""The picture of a comparison shows the later table and the removed rows."""

from __future__ import annotations

from hypothesis import given, settings

from graphloop.graph import NodeGraph
from graphloop.proofs.comparison import compare
from graphloop.views.comparison import changes_picture
from graphloop.views.dot import dot_of
from graphloop.views.levels import picture
from graphloop.views.pictures import Picture
from tests.changed_loop import bypassed, changed, gateless
from tests.graphs import any_graphs


def compared(before: NodeGraph[None], after: NodeGraph[None]) -> Picture:
    return changes_picture(before, after, compare(before, after))


@given(any_graphs(), any_graphs())
@settings(max_examples=15, deadline=None)
def test_each_row_is_drawn_as_kept_added_or_removed(
    before: NodeGraph[None], after: NodeGraph[None]
) -> None:
    """An added outcome is also marked beside a kept outcome with the same target."""
    drawn = compared(before, after)
    names = {shape.id: shape.words[0] for shape in drawn.shapes}
    old = {(edge.source, edge.outcome, edge.target) for edge in before.edges}
    new = {(edge.source, edge.outcome, edge.target) for edge in after.edges}
    tones = {
        (names[stroke.source], word.outcome, names[stroke.target]): stroke.tone
        for stroke in drawn.strokes
        for word in stroke.words
    }

    assert tones.keys() == old | new
    assert {row for row, tone in tones.items() if tone == "removed"} == old - new
    assert {row for row, tone in tones.items() if tone == "added"} == new - old


def test_an_unchanged_graph_differs_in_its_title_only() -> None:
    drawn = compared(changed(), changed())
    plain, same = dot_of(picture(changed())).splitlines(), dot_of(drawn).splitlines()

    assert [line for line in plain if "label=agent" not in line][6:] == same[6:]
    assert drawn.title == "agent (changes: not weaker)"


def test_removed_shapes_come_last() -> None:
    drawn = compared(changed(), changed(gateless))
    ids = [shape.id for shape in drawn.shapes]

    assert [shape.id for shape in picture(changed(gateless)).shapes[:-1]] == ids[:-2]
    assert drawn.shapes[-2].words == ("gate", "(gone)")
    assert drawn.shapes[-2].tone == "removed"


def test_the_steps_of_the_first_loss_are_numbered() -> None:
    drawn = compared(changed(), changed(bypassed))
    words = {str(word) for stroke in drawn.strokes for word in stroke.words}

    assert words >= {"ready [1]", "calls (was gate) [2]", "calls (gone)"}
    assert drawn.title == "agent (changes: weaker)"
