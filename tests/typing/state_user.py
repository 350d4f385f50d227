"""What a type checker knows about maps over the state, and about screens."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, assert_type

from graphloop import END, Agent, Edges, Graph
from graphloop.nodes import Branch, MapOver, ModelCall, Parallel, Router
from graphloop.outcomes import Answered, Blocked, Passed
from graphloop.own_nodes import map_over, parallel, router, screen, screened, sub_graph
from graphloop.own_nodes.carrying_node import CarryingNode
from graphloop.screens import ScreenInfo
from graphloop.states import reduce
from graphloop.testing import ScriptedModel
from graphloop.topology import Topology, load, with_agents


@dataclass(frozen=True)
class Note:
    """The answer to a question."""

    text: str


@dataclass(frozen=True)
class Article:
    """A state of the user's."""

    questions: tuple[str, ...] = ()
    notes: list[Note] = field(default_factory=list[Note])
    log: Annotated[list[str], reduce(operator.add)] = field(default_factory=list[str])
    kind: Literal["long", "short"] = "long"


MODEL = ScriptedModel([])
RESEARCHER = Agent(MODEL, output_type=Note, name="researcher")
CRITIC = Agent(MODEL, name="critic")


def maps() -> None:
    """Name an agent for a node of the library; give one for a node that carries it."""

    def chosen(state: Article) -> Sequence[str]:
        return state.questions

    assert_type(map_over("researcher", 8), MapOver)
    assert_type(map_over("researcher", 8, items="questions", into="notes"), MapOver)
    work = map_over(RESEARCHER, 8, items="questions", into="notes")
    assert_type(work, CarryingNode)
    assert_type(map_over(RESEARCHER, 8, items=chosen, into="notes"), CarryingNode)
    map_over(RESEARCHER, 8, items=1, into="notes")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]

    assert_type(Graph("a", work, {work: {...: END}}, state_type=Article), Graph[Article])
    rows: Edges[Article] = {work: {Answered: END, ...: END}}
    graph: Graph[Article] = Graph("news", work, rows, state_type=Article)
    graph.stream(Article())
    graph.stream(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def files() -> None:
    """Load a topology from a file, with the type of its state or without."""
    graph = load("news.yaml", state_type=Article)
    assert_type(graph, Topology[Article])
    assert_type(graph.run_sync(Article()).state, Article)
    assert_type(with_agents(graph, {"critic": CRITIC}), Topology[Article])
    assert_type(graph.unbounded("a person ends it"), Topology[Article])
    graph.run_sync("bees")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rows: Graph[Note] = load("news.yaml", state_type=Article)  # type: ignore[arg-type]  # pyright: ignore[reportAssignmentType, reportArgumentType]
    untyped: Graph[Article] = load("news.yaml")
    untyped.check()
    load("news.yaml", state_type="Article")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    rows.check()


def branches() -> None:
    """Write results of branches into fields."""
    assert_type(parallel("a", Branch("b", into="log")), Parallel)
    assert_type(parallel(RESEARCHER, CRITIC, into={"critic": "log"}), CarryingNode)
    draft = sub_graph(RESEARCHER, into="notes")
    assert_type(Graph("a", draft, {draft: {...: END}}, state_type=Article), Graph[Article])
    assert_type(router({"long": "pages"}, by="kind"), Router)


def screens() -> None:
    """Judge what the user says by functions and agents."""

    def plain(text: str) -> bool:
        return bool(text)

    async def told(text: str, info: ScreenInfo) -> bool | str:
        return bool(info.messages) or "No."

    def by_outcome(text: str) -> Passed | Blocked:
        return Passed() if text else Blocked()

    def wrong(text: int) -> bool:
        return bool(text)

    judge = Agent(MODEL, output_type=bool, name="judge")
    Agent(MODEL, screen=plain)
    Agent(MODEL, screen=[plain, told, by_outcome, judge], screen_in_parallel=True)
    Agent(MODEL, screen=wrong)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(screen(plain, judge), CarryingNode)
    assert_type(screened(ModelCall(), told), CarryingNode)
