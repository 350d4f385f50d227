"""Levels: one graph from far, from near and in detail, in every format."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Final

import pytest

from graphloop.errors import ConfigError
from graphloop.graph import END, Edge, Edges, Graph
from graphloop.node_protocol import Kind
from graphloop.overlays.levels import LEVELS, Level, draw, level_of, level_picture
from graphloop.views.dot import dot_of
from graphloop.views.family import Family
from graphloop.views.marks import Marks
from graphloop.views.mermaid import mermaid, mermaid_of
from graphloop.views.render import render
from graphloop.views.theme import DARK
from tests.graphs import agent, build
from tests.unit.views.test_picture import parent

INNER = build({"x": ["y"], "y": ["x", "END"]}, {"x": "gate", "y": "model"}, name="inner")
KINDS: Final[tuple[Kind, ...]] = (
    *("pure", "model", "gate", "execute", "append", "check", "stop", "prepare", "human"),
)


def test_at_the_level_of_nodes_a_picture_is_what_it_always_was() -> None:
    """The other levels are beside it."""
    assert mermaid(agent()) == mermaid_of(level_picture(agent()))


@pytest.mark.parametrize("level", LEVELS)
def test_children_are_drawn_at_the_level_of_their_parent(level: Level) -> None:
    """What is laid over them lies there, and only there."""
    marks = Marks(children={("a", "kid"): Marks(title="2 runs", nodes={"x": "lit here"})})
    drawn = level_picture(Family(parent(INNER)), level, marks, expand=True)
    (inner,) = drawn.inner

    assert "kid (inner, 2 runs)" == inner.picture.title
    assert drawn.shapes[0].id == inner.owner
    assert "lit here" in " ".join(
        (*inner.picture.shapes[0].words, *inner.picture.shapes[0].details)
    )
    assert bool(level == "detail") is bool(level_picture(Family(parent(INNER)), level).inner)


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf", "mmd", "dot", "txt"])
@pytest.mark.parametrize("level", LEVELS)
def test_every_level_is_drawn_in_every_format(level: Level, suffix: str, tmp_path: Path) -> None:
    """In either theme."""
    draw(agent(), tmp_path / f"a.{suffix}", level=level, theme=DARK)

    assert (tmp_path / f"a.{suffix}").stat().st_size > 100


def test_a_state_machine_has_one_level(tmp_path: Path) -> None:
    """Leaving nodes out of what somebody executes would be a lie."""
    draw(agent(), tmp_path / "a.scxml")

    assert (tmp_path / "a.scxml").exists()
    with pytest.raises(ConfigError, match="found 'phase'"):
        draw(agent(), tmp_path / "a.xstate.json", level="phase")
    with pytest.raises(ConfigError, match="with agents"):
        draw(agent(), tmp_path / "a.scxml", expand=True)


def test_a_level_that_there_is_not_is_refused() -> None:
    """With the nearest that there is."""
    assert "phase" == level_of("phase")
    with pytest.raises(ConfigError, match="Did you mean 'phase'"):
        level_of("phases")


def rows_of(graph: Graph[None]) -> Edges[None]:
    """Return a table as it was given."""
    return {
        graph.nodes[name]: {
            outcome: END if target == "END" else graph.nodes[target]
            for outcome, target in row.items()
        }
        for name, row in graph.table.items()
    }


class Counted(Graph[None]):
    """A graph that counts how often its table is read as lines."""

    reads = 0

    @property
    def edges(self) -> tuple[Edge, ...]:
        self.reads += 1
        return super().edges


@pytest.mark.parametrize("level", LEVELS)
def test_a_table_is_not_read_anew_for_each_of_its_nodes(level: Level) -> None:
    """A picture of a thousand nodes would take a quarter of a minute."""
    reads: set[int] = set()
    for count in (20, 200):
        names = [f"n{number}" for number in range(count)]
        graph = build({one: [after] for one, after in zip(names, [*names[1:], "END"], strict=True)})
        counted = Counted("g", graph.nodes["n0"], rows_of(graph))
        level_picture(counted, level)
        reads.add(counted.reads)

    assert len(reads) == 1


def test_a_large_graph_is_narrower_from_far() -> None:
    """It is what those are sent to whose graph cannot be drawn from near in time."""
    graph = people_in_a_crowd(150)
    far, near = (dot_of(level_picture(graph, one)) for one in ("phase", "node"))

    assert far.count("->") < near.count("->") // 10
    assert width(far) < width(near)


def people_in_a_crowd(nodes: int) -> Graph[None]:
    """Return one loop of nodes of all kinds, each with two lines more to anywhere."""
    rng = random.Random(1)  # noqa: S311 - a graph like any other, and always the same.
    names = [f"node_{number}" for number in range(nodes)]
    rows = {
        one: [after, *rng.sample(names, 2)]
        for one, after in zip(names, [*names[1:], "END"], strict=True)
    }
    return build(rows, {one: rng.choice(KINDS) for one in names})


def width(dot_text: str) -> float:
    """Return how wide a picture is drawn."""
    found = re.search(rb'<svg width="([0-9.]+)pt"', render(dot_text, "svg"))
    assert found is not None
    return float(found[1])
