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
