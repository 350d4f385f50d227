"""Maps, branches and routes over the user's state: typed, proven, journaled and resumed."""

from __future__ import annotations

import asyncio
import json
import operator
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from graphloop import END, Agent, EndReason, Graph, check, node
from graphloop.errors import ConfigError, GraphError, RunFailed
from graphloop.events import ItemsListed
from graphloop.nodes import Append, Branch, MapOver, Parallel
from graphloop.outcomes import Answered, Final, Outcome
from graphloop.own_nodes import map_over, parallel, retry, route_outcome, router, sub_graph
from graphloop.own_nodes.carrying_node import CarryingNode
from graphloop.proofs import Report
from graphloop.states import reduce
from graphloop.testing import ScriptedModel
from graphloop.topology import dump, load
from tests.strategies import call, reply
from tests.warm_python import warm_python


@dataclass
class Note:
    """The answer to a question."""

    text: str
    score: int


@dataclass(frozen=True)
class Article:
    """The state of the graphs."""

    questions: tuple[str, ...] = ("a?", "b?", "c?")
    notes: list[Note] = field(default_factory=list[Note])
    log: Annotated[list[str], reduce(operator.add)] = field(default_factory=list[str])
    style: str = ""
    facts: str = ""
    kind: Literal["long", "short"] = "long"


@dataclass(frozen=True)
class Planned(Outcome):
    """The plan is made."""


@dataclass(frozen=True)
class Seen(Outcome):
    """The node was visited."""


@node(reads=(), writes=("kind",))
def plan(state: Article) -> tuple[Planned, Article]:
    """Make the graphs carry the state."""
    return Planned(), replace(state, kind="short")


def noted(*scores: int) -> Agent[None, Note]:
    """Return a researcher with these answers."""
    answers = [
        reply(call("final_answer", arguments=json.dumps({"text": f"n{at}", "score": score})))
        for at, score in enumerate(scores)
    ]
    return Agent(ScriptedModel(answers, label="r"), output_type=Note, name="researcher")


def says(name: str, text: str) -> Agent:
    """Return an agent that says this."""
    return Agent(ScriptedModel([text] * 3, label=name), name=name)


def graph_of(*nodes: Any) -> Graph[Article]:
    """Return a graph that plans, and passes these nodes one after another."""
    rows: dict[Any, dict[Any, Any]] = {plan: {Planned: nodes[0], ...: END}}
    for one, after in zip(nodes, (*nodes[1:], END), strict=True):
        rows[one] = {Answered: after, ...: END} if Answered in one.outcomes else {...: END}
    return Graph("news", plan, rows)


def unknowns(report: Report) -> set[str]:
    """Return the properties that are not decided, apart from rules that nobody gave."""
    return {one.code for one in report.unknown} - {"GL12"}


def test_an_agent_with_its_own_model_maps_over_a_field_and_is_proven() -> None:
    researcher = noted(1, 2, 3)
    graph = graph_of(
        map_over(researcher, 8, items="questions", into="notes", prompt="Find out.", concurrency=1)
    )

    result = asyncio.run(graph.run(Article()))

    assert [Note("n0", 1), Note("n1", 2), Note("n2", 3)] == result.state.notes
    assert EndReason.COMPLETED is result.end_reason
    assert isinstance(researcher.model, ScriptedModel)
    asked = [str(getattr(one.messages[-1], "content", "")) for one in researcher.model.requests]
    assert ["Find out.\n\na?", "Find out.\n\nb?", "Find out.\n\nc?"] == asked
    report = check(graph)
    assert report.ok
    assert set() == unknowns(report), report


async def test_results_stand_in_the_order_of_the_items_whichever_comes_first() -> None:
    done = {item: asyncio.Event() for item in Article().questions}
    before = {"a?": "b?", "b?": "c?"}
    order: list[str] = []

    async def judge(text: str) -> bool:
        if text in before:
            await done[before[text]].wait()
        order.append(text)
        done[text].set()
        return True

    script = [{"to": item, "text": f"about {item}"} for item in Article().questions]
    agent = Agent(ScriptedModel(script), screen=judge, name="worker")
    result = await graph_of(map_over(agent, 8, items="questions", into="log")).run(Article())
    log = result.state.log

    assert ["c?", "b?", "a?"] == order
    assert ["about a?", "about b?", "about c?"] == log


def test_no_item_gives_an_empty_list_and_asks_nobody() -> None:
    researcher = noted()
    graph = graph_of(map_over(researcher, 8, items="questions", into="notes"))

    result = asyncio.run(graph.run(Article(())))

    assert ([], EndReason.COMPLETED) == (result.state.notes, result.end_reason)


def test_more_items_than_allowed_end_the_run_before_anything_starts() -> None:
    graph = graph_of(map_over(noted(), 2, items="questions", into="notes"))

    with pytest.raises(RunFailed, match="expected at most 2 items, found 3"):
        asyncio.run(graph.run(Article()))


def test_a_failed_item_fails_the_node_unless_it_collects() -> None:
    def failing() -> Agent:
        model = ScriptedModel(["one", {"error": "ServerError"}, "three"], label="f")
        return Agent(model, name="worker")

    strict = graph_of(map_over(failing(), 8, items="questions", into="log", concurrency=1))
    with pytest.raises(RunFailed):
        asyncio.run(strict.run(Article()))

    lenient = map_over(failing(), 8, items="questions", into="log", concurrency=1, join="collect")
    assert ["one", "three"] == asyncio.run(graph_of(lenient).run(Article())).state.log


def test_a_selector_and_a_prompt_function_read_the_typed_state() -> None:
    def last(state: Article) -> tuple[str, ...]:
        return state.questions[-1:]

    researcher = noted(7)
    work = map_over(
        researcher,
        8,
        items=last,
        prompt=lambda item: f"Answer {item}",
        into="notes",
        reads=["questions"],
    )
    graph = graph_of(work)

    assert [Note("n0", 7)] == asyncio.run(graph.run(Article())).state.notes
    assert set() == unknowns(check(graph))
    assert isinstance(researcher.model, ScriptedModel)
    (request,) = researcher.model.requests
    assert "Answer c?" in str(request.messages[-1])


def test_branches_write_their_typed_results_into_fields_of_their_own() -> None:
    work = parallel(
        says("critic", "dry"),
        says("checker", "true"),
        prompt=lambda state: f"Review {state.questions}",
        reads=["questions"],
        into={"critic": "style", "checker": "facts"},
    )
    graph = graph_of(work)

    state = asyncio.run(graph.run(Article())).state

    assert ("dry", "true") == (state.style, state.facts)
    report = check(graph)
    assert report.ok
    assert set() == unknowns(report)


def test_an_agent_as_a_node_writes_its_typed_answer_into_a_field() -> None:
    draft = sub_graph(says("writer", "x"), prompt=lambda state: "Go.", into="style", reads=())
    score = sub_graph(noted(4), prompt=lambda state: "Go.", into="notes", reads=())
    log = sub_graph(says("logger", "y"), prompt=lambda state: "Go.", into="log", reads=())
    graph = graph_of(draft, log)

    state = asyncio.run(graph.run(Article(log=["old"]))).state

    assert ("x", ["old", "y"]) == (state.style, state.log)
    assert set() == unknowns(check(graph))
    with pytest.raises(ConfigError, match="`into` 'notes': expected a result of type"):
        asyncio.run(graph_of(score).run(Article()))


PROMPTED: list[Callable[[Agent], Any]] = [
    lambda agent: sub_graph(agent, prompt="Go.", into="style"),
    lambda agent: parallel(agent, prompt="Go.", into={"w": "style"}),
    lambda agent: map_over(agent, 1, items="questions", prompt="Go.", into="log"),
]


@pytest.mark.parametrize("make", PROMPTED)
def test_each_node_that_runs_an_agent_takes_a_text_as_its_prompt(
    make: Callable[[Agent], Any],
) -> None:
    agent = says("w", "dry")

    state = asyncio.run(graph_of(make(agent)).run(Article(("it",)))).state

    assert "dry" in (state.style, *state.log)
    assert isinstance(agent.model, ScriptedModel)
    assert "Go." in str(agent.model.requests[0].messages[-1])


def test_a_node_with_a_text_as_its_prompt_reads_no_state() -> None:
    writer = sub_graph(says("writer", "x"), prompt="Go.", into="style")

    assert set() == unknowns(check(graph_of(writer)))


def test_two_branches_into_one_field_need_a_reducer() -> None:
    """Without one, the later result would replace the other: GL7 says so."""

    def graph(name: str) -> Graph[Article]:
        branches = [says(one, one) for one in ("critic", "checker")]
        return graph_of(
            parallel(*branches, prompt="Go.", into={"critic": name, "checker": name}, reads=())
        )

    assert check(graph("log")).ok
    assert ["critic", "checker"] == asyncio.run(graph("log").run(Article())).state.log
    (finding,) = [one for one in check(graph("style")).findings if one.code == "GL7"]
    assert "'critic', 'checker' may write 'style'" in finding.message
    assert "reduce(…)" in finding.fix


def test_all_branches_into_one_list() -> None:
    work = parallel(says("critic", "dry"), says("checker", "true"), prompt="Go.", into="log")

    assert ["dry", "true"] == asyncio.run(graph_of(work).run(Article())).state.log


def test_the_text_of_all_results_is_the_reply_for_those_who_append_it() -> None:
    work, append = map_over(noted(1, 2, 3), 8, items="questions", into="notes"), Append()
    rows: dict[Any, dict[Any, Any]] = {
        plan: {Planned: work, ...: END},
        work: {Answered: append, ...: END},
        append: {Final: END, ...: END},
    }

    result = asyncio.run(Graph("news", plan, rows).run(Article()))

    assert result.text.startswith("## a?\n\n")
    assert 3 == len(result.state.notes)


@pytest.mark.parametrize(("kind", "left"), [("short", "short"), ("none", "unrouted")])
def test_a_router_goes_by_a_field_and_asks_no_model(kind: Any, left: str) -> None:
    desk = router({"long": "pages", "short": "lines"}, by="kind")
    seen: list[str] = []

    def ending(name: str) -> Any:
        def body(state: Article) -> Seen:
            seen.append(name)
            return Seen()

        body.__name__ = name
        return node(body)

    ends = {name: ending(name) for name in ("long", "short", "unrouted")}
    rows: dict[Any, dict[Any, Any]] = {
        desk: {
            **{route_outcome(name): ends[name] for name in ("long", "short")},
            **{one: ends["unrouted"] for one in desk.outcomes if one.__name__ == "Unrouted"},
            ...: END,
        },
        **{one: {...: END} for one in ends.values()},
    }
    graph: Graph[Article] = Graph("desk", desk, rows, state_type=Article)

    asyncio.run(graph.run(Article(kind=kind)))

    assert [left] == seen
    assert 0 == graph.run_bound().model_calls


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: map_over("w", 3, items="question", into="notes"), "Did you mean 'questions'?"),
        (lambda: map_over("w", 3, items="questions", into="note"), "Did you mean 'notes'?"),
        (lambda: parallel("w", into="lag"), "Did you mean 'log'?"),
        (lambda: router({"long": "x"}, by="kinds"), "Did you mean 'kind'?"),
        (lambda: sub_graph(says("w", "x"), into="stile"), "Did you mean 'style'?"),
    ],
)
def test_a_field_that_the_state_lacks_is_refused_with_the_nearest(
    make: Callable[[], Any], found: str
) -> None:
    with pytest.raises(GraphError) as error:
        graph_of(make())

    assert found in str(error.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: map_over("w", 3, items="questions", into="style"),
        lambda: parallel("w", into="style"),
    ],
)
def test_a_field_that_holds_no_list_is_refused_before_any_agent_has_worked(
    make: Callable[[], Any],
) -> None:
    with pytest.raises(ConfigError, match=r"`into`: expected a field that.*'style'"):
        graph_of(make())


def other() -> Agent[None, int]:
    """Return an agent that answers with a number."""
    return Agent(ScriptedModel([]), output_type=int, name="w")


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: map_over(other(), 3, items="questions", into="notes"), "of type Note, found"),
        (lambda: map_over(says("w", "x"), 3, items="questions", into="notes"), "with a text"),
        (lambda: parallel(other(), into="notes"), "agent 'w', which answers with int"),
        (lambda: parallel(other(), into={"w": "notes"}), "agent 'w', which answers with int"),
        (lambda: sub_graph(other(), into="kind"), None),
        (lambda: sub_graph(other(), into="notes"), "agent 'w', which answers with int"),
        (lambda: retry(sub_graph(other(), into="notes"), 2), "agent 'w'"),
        (lambda: map_over("w", 3, items="style", into="log"), "found 'style' of type str"),
    ],
)
def test_an_answer_of_another_type_is_refused_before_any_agent_is_paid(
    make: Callable[[], Any], found: str | None
) -> None:
    """What may fit, such as a word for a `Literal`, is let through."""
    if found is None:
        graph_of(make())
        return

    with pytest.raises(GraphError, match="Fix:") as error:
        graph_of(make())

    assert found in str(error.value)


def test_a_named_agent_of_another_type_is_refused_before_the_run() -> None:
    model = ScriptedModel(["x"] * 3)
    graph = graph_of(map_over("w", 3, items="questions", into="notes"))

    with pytest.raises(GraphError, match="agent 'w', which answers with a text"):
        graph.run_sync(Article(), agents={"w": Agent(model, name="w")})

    assert [] == model.requests


def test_an_agent_whose_answer_a_tool_or_a_graph_gives_may_have_any_type() -> None:
    """A sub-agent that takes over, or the last node of a graph, decides the form of the answer."""
    writer = sub_graph(noted(1), name="n")
    inner: Graph[None] = Graph("w", writer, {writer: {...: END}})
    expert = noted(1).as_tool(description="knows", takes_over=True)
    handing = Agent(ScriptedModel([]), tools=[expert], name="w")

    graph_of(map_over(handing, 3, items="questions", into="notes"))
    graph_of(map_over(inner, 3, items="questions", into="notes"))


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: map_over("w", 3, items="questions"), "give `into` the field"),
        (lambda: map_over("w", 3, items="questions", into="notes", callback="f"), "both take"),
        (lambda: map_over(says("w", "x"), 3, items=lambda state: []), "`into` is missing"),
        (lambda: parallel("a", into={"b": "log"}), "expected names of branches (a), found 'b'"),
        (lambda: parallel(says("a", "x"), says("a", "y")), "two named 'a'"),
        (lambda: router({"long": "x"}, "Which?", by="kind"), "give one of them"),
        (lambda: sub_graph(says("w", "x"), into="a", writes=["b"]), "give `into` alone"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(make: Callable[[], Any], found: str) -> None:
    with pytest.raises(ConfigError) as error:
        make()

    assert found in str(error.value)


def test_a_file_maps_over_the_state_and_is_written_as_it_was_read(tmp_path: Path) -> None:
    text = """
graphloop: 1
name: news
start: research
agents: {researcher: {given: true}, critic: {given: true}}
nodes:
  research:
    {use: map_over, agent: researcher, max_items: 8, items: questions, into: notes, concurrency: 1}
  review: {use: parallel, branches: [{agent: critic, into: style, prompt: Go.}]}
  desk: {use: router, by: kind, routes: {long: pages, short: lines}}
edges:
  research: {answered: review, else: END}
  review: {answered: desk, else: END}
  desk: {else: END}
"""
    (tmp_path / "news.yaml").write_text(text)
    graph = load(tmp_path / "news.yaml")
    (tmp_path / "again.yaml").write_text(dump(graph))

    assert graph == load(tmp_path / "again.yaml")
    assert MapOver("researcher", 8, "questions", concurrency=1, into="notes", name="research") in {
        getattr(one, "kernel", one) for one in graph.nodes.values()
    }
    agents = {"researcher": noted(1, 2, 3), "critic": says("critic", "dry")}
    result = asyncio.run(graph.run(Article(), agents=agents))
    state: Any = result.state
    assert ([Note("n0", 1), Note("n1", 2), Note("n2", 3)], "dry") == (state.notes, state.style)


def test_strings_still_make_the_nodes_of_the_library() -> None:
    assert MapOver("w", 3) == map_over("w", 3)
    assert Parallel(("a", "b")) == parallel("a", "b")  # type: ignore[arg-type]  # Names are allowed.
    assert isinstance(map_over(says("w", "x"), 3), CarryingNode)


PROGRAM = """
import asyncio, os, sys
from dataclasses import dataclass, field
from graphloop import END, Agent, Graph
from graphloop.own_nodes import map_over
from graphloop.providers import ScriptedModel

@dataclass(frozen=True)
class State:
    questions: tuple[str, ...] = tuple("abcdefgh")
    notes: list[str] = field(default_factory=list)

def judge(text: str) -> bool:
    with open(sys.argv[2], "a") as file:
        file.write(text)
    if os.path.getsize(sys.argv[2]) == int(sys.argv[3]):
        os._exit(9)
    return True

model = ScriptedModel([{"to": letter, "text": str(ord(letter))} for letter in "abcdefgh"])
worker = Agent(model, screen=judge, name="worker")
work = map_over(worker, 8, items="questions", into="notes", concurrency=2)
graph = Graph("letters", work, {work: {...: END}}, state_type=State)

async def main() -> None:
    store = sys.argv[1]
    if sys.argv[4] == "start":
        result = await graph.run(State(), store=store, run_id="r")
    else:
        result = await graph.resume("r", store=store)
    print(result.state.notes)

asyncio.run(main())
"""


def test_a_killed_map_goes_on_with_the_items_that_have_no_result(tmp_path: Path) -> None:
    """The process dies within an item; the next process asks for no finished item again."""
    program, store, heard = (tmp_path / name for name in ("p.py", "runs.db", "heard"))
    program.write_text(PROGRAM)

    def ran(die_at: int, word: str) -> subprocess.CompletedProcess[str]:
        arguments = [str(program), str(store), str(heard), str(die_at), word]
        return subprocess.run(
            [*warm_python(), *arguments], capture_output=True, text=True, check=False
        )

    deaths = [ran(3, "start"), ran(6, "resume"), ran(9, "resume")]
    last = ran(0, "resume")

    assert [9, 9, 9] == [one.returncode for one in deaths], deaths
    assert str([str(ord(letter)) for letter in "abcdefgh"]) == last.stdout.strip(), last.stderr
    # Only an item in which a process died is asked about again: two may be under way at once.
    asked = heard.read_text()
    assert set("abcdefgh") == {*asked}
    assert len(asked) <= 8 + 2 * len(deaths)


def test_results_that_a_later_map_replaces_are_written_in_vain() -> None:
    """GL6 knows the fields of both maps, and that a reducer reads the old value."""

    def twice(into: str) -> list[str]:
        kind = noted() if into == "notes" else says("worker", "x")
        maps = [
            map_over(kind, 8, items="questions", into=into, name=name) for name in ("one", "two")
        ]
        return [f"{one.place}: {one.message}" for one in check(graph_of(*maps)).findings]

    (found,) = twice("notes")
    assert "'one'" in found
    assert "'notes' of the state is always overwritten" in found
    assert [] == twice("log")


def test_a_graph_runs_without_an_event_loop(tmp_path: Path) -> None:
    graph = graph_of(map_over(noted(1, 2, 3), 8, items="questions", into="notes", concurrency=1))
    store = str(tmp_path / "runs.db")

    result = graph.run_sync(Article(), store=store, run_id="r")

    assert 3 == len(result.state.notes)
    assert result.state == graph.resume_sync("r", store=store).state

    async def inside() -> None:
        graph.run_sync(Article())

    with pytest.raises(ConfigError, match=r"await Graph\.run"):
        asyncio.run(inside())


def test_a_branch_and_its_node_cannot_both_say_where_a_result_goes() -> None:
    with pytest.raises(ConfigError, match="expected one place for the results"):
        parallel(Branch("a", into="style"), into="log")


def test_as_many_prompts_as_branches_are_listed() -> None:
    work = Parallel((Branch("a"), Branch("b")), prompts="ask")
    graph: Graph[None] = Graph("g", work, {work: {...: END}})

    def ask(run: object) -> ItemsListed:
        return ItemsListed(("one",))

    agents = {"a": says("a", "x"), "b": says("b", "y")}
    with pytest.raises(RunFailed, match="expected 2 prompts, found 1"):
        graph.run_sync(None, callbacks={"ask": ask}, agents=agents)


def test_a_map_can_stand_under_another_name() -> None:
    work = map_over(says("w", "x"), 8, items="questions", into="log")

    renamed = work.renamed("again")

    assert ("again", "map_over") == (renamed.name, work.name)
    assert ["x", "x", "x"] == graph_of(renamed).run_sync(Article()).state.log
