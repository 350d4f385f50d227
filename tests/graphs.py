"""Graphs for tests: any topology, any names, and nodes that do nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, get_args

from hypothesis import strategies as st

from graphloop.effects import Effect
from graphloop.events import Event
from graphloop.graph import END, Edges, NodeGraph
from graphloop.loop import Standard, standard_edges
from graphloop.node_protocol import Kind, Leave, Reaction, flaw_of
from graphloop.outcomes import Aborted, Answered, AnsweredCalls, Calls, Failed, Go, Outcome
from graphloop.run import Run

__all__ = ["KINDS", "Place", "agent", "any_graphs", "build", "good_graphs"]

S = TypeVar("S")

KINDS: tuple[Kind, ...] = get_args(Kind)

# Outcomes get their names from classes, which may be made with any name at all.
ODD_NAMES = ("a-->b", 'x"|y', "line\nbreak", "<br/>", "#35;", "&amp;", "\\n", "end", " ", "ä😀")
OUTCOMES: tuple[type[Outcome], ...] = (
    Calls,
    Answered,
    AnsweredCalls,
    Failed,
    Aborted,
    Go,
    *(type(name, (Outcome,), {}) for name in ODD_NAMES),
)


@dataclass(frozen=True)
class Place:
    """A node of any kind that leaves at once, by the first of its outcomes."""

    name: str
    outcomes: frozenset[type[Outcome]]
    kind: Kind = "pure"

    def enter(self, run: Run[S], /) -> Reaction[S, Outcome]:
        return Leave(run, min(self.outcomes, key=lambda outcome: outcome.__name__)())

    def on(
        self,
        run: Run[S],
        event: Event,
        answered: Effect | None,
        /,
    ) -> Reaction[S, Outcome]:
        return self.enter(run)


def build(
    table: Mapping[str, Sequence[str]], kinds: Mapping[str, Kind] | None = None, name: str = "g"
) -> NodeGraph[None]:
    """Return the graph whose n-th outcome of each node leads to the n-th name in its row."""
    places = {
        one: Place(one, frozenset(OUTCOMES[: len(targets)]), (kinds or {}).get(one, "pure"))
        for one, targets in table.items()
    }
    edges: Edges[None] = {
        places[one]: {
            outcome: END if target == "END" else places[target]
            for outcome, target in zip(OUTCOMES, targets, strict=False)
        }
        for one, targets in table.items()
    }
    return NodeGraph(name, next(iter(places.values())), edges)


NAMES = st.text(min_size=1, max_size=8).filter(lambda name: name != "END" and flaw_of(name) is None)


@st.composite
def any_graphs(draw: st.DrawFn, names: st.SearchStrategy[str] = NAMES) -> NodeGraph[None]:
    """Draw any graph that can be built: with traps, islands and self-loops."""
    chosen = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    targets = st.sampled_from([*chosen, "END"])
    rows = st.lists(targets, min_size=1, max_size=len(OUTCOMES))
    table = {one: draw(rows) for one in chosen}
    kinds: dict[str, Kind] = {one: draw(st.sampled_from(KINDS)) for one in chosen}
    return build(table, kinds, draw(names))


@st.composite
def good_graphs(draw: st.DrawFn) -> NodeGraph[None]:
    """Draw a graph with a way from the start through every node to END, and any lines besides."""
    chosen = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    targets = st.sampled_from([*chosen, "END"])
    return build(
        {
            one: [after, *draw(st.lists(targets, max_size=3))]
            for one, after in zip(chosen, [*chosen[1:], "END"], strict=True)
        }
    )


def agent() -> NodeGraph[None]:
    """Return the standard loop."""
    nodes = Standard()
    return NodeGraph("agent", nodes.prepare, standard_edges(nodes))
