"""Graph, with its doors: drawn, checked and run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict

from graphloop import (
    END,
    Agent,
    AgentTool,
    EndReason,
    Graph,
    RunResult,
    StepResult,
    Tool,
    allow,
    ask,
    budget,
    check,
    deny,
    node,
)
from graphloop.agent.options import RunOptions
from graphloop.agent.runs import Runs
from graphloop.driver.ports import Callback
from graphloop.effects import Effect
from graphloop.errors import ConfigError, GraphError
from graphloop.events import Answer, Changes, Event, Started, StopRequested
from graphloop.graph import Edges
from graphloop.loop import Standard, standard_edges
from graphloop.node_protocol import Kind, Leave, Node, Reaction
from graphloop.nodes import Append, Execute, ModelCall, PrepareStep
from graphloop.nodes.child import Child
from graphloop.nodes.gate import Gate
from graphloop.outcomes import Answered, AnsweredCalls, Calls, Outcome, Ready, Settled
from graphloop.own_nodes import sub_graph
from graphloop.policy.policy import Policy
from graphloop.providers.script import Entry
from graphloop.rules import at_most
from graphloop.run import Run, evolve
from graphloop.stores.base import Store
from graphloop.stores.codec import Codec
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from graphloop.stores.opening import open_store
from graphloop.stores.sqlite import SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.values import SystemMessage, UserMessage
from tests.agents import ticking
from tests.strategies import call, reply, wrong

S = TypeVar("S")


def once(callback: str = "") -> Graph[None]:
    """Return a graph that asks once."""
    prepare: Node[None, Outcome] = PrepareStep(callback=callback)
    model: Node[None, Outcome] = ModelCall()
    append: Node[None, Outcome] = Append()
    edges: Edges[None] = {
        prepare: {Ready: model, ...: END},
        model: {Answered: append, ...: END},
        append: {...: END},
    }
    return Graph("ask-once", prepare, edges)


def standard(nodes: Standard | None = None) -> Graph[None]:
    """Return the standard loop as a graph of one's own."""
    nodes = nodes or Standard()
    return Graph("mine", nodes.prepare, standard_edges(nodes))


def test_a_topology_of_one_s_own_runs() -> None:
    """With a model and a question."""
    result = asyncio.run(once().run(None, model=ScriptedModel(["hi"]), prompt="go"))

    assert ("hi", EndReason.COMPLETED) == (result.text, result.end_reason)


def test_nodes_invoke_the_user_s_functions_by_name() -> None:
    """The graph names them, the run brings them."""

    async def prepare(run: Run[None]) -> Answer:
        return Changes(messages=())

    model = ScriptedModel(["hi"])
    callbacks: dict[str, Callback[None]] = {"mine": prepare}

    asyncio.run(once("mine").run(None, model=model, prompt="go", callbacks=callbacks))

    assert 0 == len(model.requests[0].messages)


def test_options_of_the_loop_are_no_options_of_a_graph() -> None:
    """They are said in its nodes."""
    with pytest.raises(ConfigError, match="graph 'ask-once' has no option 'max_steps'"):
        once().stream(None, model=ScriptedModel([]), prompt="go", **wrong({"max_steps": 3}))


def test_a_graph_draws_and_checks_itself(tmp_path: Path) -> None:
    """From the very table that runs."""
    graph = once()

    assert "prepare_step" in graph.mermaid()
    assert "model_call" in graph.dot()
    assert graph.mermaid() == graph.save(tmp_path / "loop.mmd").read_text(encoding="utf-8")
    assert graph.check() == graph.check()


@dataclass(frozen=True)
class Essay:
    """A state of the user's."""

    topic: str
    drafts: int = 0


class Begun(Outcome):
    """The only way on."""


@dataclass(frozen=True)
class Begin:
    """A node of the user's that counts in the state."""

    name: str = "begin"
    kind: Kind = "pure"
    outcomes = frozenset({Begun})

    def enter(self, run: Run[Essay], /) -> Reaction[Essay, Begun]:
        """Count, and go on."""
        drafts = run.state.drafts + 1
        return Leave(evolve(run, state=replace(run.state, drafts=drafts)), Begun())

    def on(
        self, run: Run[Essay], event: Event, answered: Effect | None, /
    ) -> Reaction[Essay, Begun]:
        """Never asked."""
        raise NotImplementedError


def essays() -> Graph[Essay]:
    """Return a graph with a state."""
    begin, prepare, model, append = Begin(), PrepareStep(), ModelCall(), Append()
    return Graph(
        "essay",
        begin,
        {
            begin: {Begun: prepare},
            prepare: {Ready: model, ...: END},
            model: {Answered: append, ...: END},
            append: {...: END},
        },
        state_type=Essay,
    )


def test_a_state_goes_through_a_run_and_into_its_journal(tmp_path: Path) -> None:
    """The type is what the journal is read with, in another process."""
    store = str(tmp_path)

    result = asyncio.run(
        essays().run(Essay("graphs"), model=ScriptedModel(["hi"]), prompt="go", store=store)
    )

    assert (Essay("graphs", 1), Essay) == (result.state, essays().state_type)
    journal = JsonlStore(store, codec=Codec(Essay))
    started = asyncio.run(journal.load(result.run_id))[0]
    assert isinstance(started, Started)
    assert Essay("graphs") == started.state


def test_every_option_of_a_run_takes_effect_in_a_graph() -> None:
    """A topology of one's own is not a second-class agent."""
    model, told = ScriptedModel([reply(call()), "done"]), list[object]()
    clock = ticking()

    def listen(step: StepResult) -> None:
        told.append(step.index)

    def approve(pending: object) -> bool:
        told.append("asked")
        return True

    def read(arguments: dict[str, object]) -> str:
        return f"read {arguments}"

    gated = Tool(
        name="read",
        parameters={"type": "object"},
        execute=read,
        needs_approval=True,
    )
    options: RunOptions = {
        "tools": [gated],
        "instructions": "be brief",
        "max_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop_sequences": ["END"],
        "seed": 7,
        "provider_options": {"top_k": 3},
        "gate": allow("read") | deny("*"),
        "approve_tool_call": approve,
        "approval_ttl_s": 60,
        "approval_secret": b"secret",
        "budget": budget(tool_calls=9),
        "rules": at_most("tool:read", 9),
        "max_agent_depth": 3,
        "step_timeout_s": 60,
        "on_bad_history": "refuse",
        "agents": {},
        "on_step_finish": listen,
        "store": None,
        "api_key": None,
        "base_url": None,
        "timeouts": None,
        "retries": None,
        "price": lambda _: 0.5,
        "prices": {},
        "clock": clock,
    }
    assert set(RunOptions.__annotations__) == set(options)

    graph = standard()
    result = asyncio.run(graph.run(None, model=model, messages=[UserMessage("go")], **options))

    assert ["asked", 0, 1] == told
    assert (1.0, EndReason.COMPLETED) == (result.cost_usd, result.end_reason)
    assert (SystemMessage("be brief"), UserMessage("go")) == tuple(model.requests[0].messages)
    settings = model.requests[0].settings
    assert (9, 0.5, 0.9, ("END",), 7, '{"top_k": 3}') == (
        settings.max_tokens,
        settings.temperature,
        settings.top_p,
        settings.stop_sequences,
        settings.seed,
        settings.options,
    )
    assert result.run.at == clock.now
    setup = result.run.setup
    assert (budget(tool_calls=9), 3, 60, True) == (
        setup.budget,
        setup.depth_max,
        setup.approval_ttl_s,
        setup.signed,
    )
    assert ((*allow("read").rules, *deny("*").rules),) == setup.rules


def test_a_graph_s_stream_asks_nothing_until_it_is_looked_at() -> None:
    """It is the stream that agents have."""
    model = ScriptedModel(["hi there"])

    async def scenario() -> list[str]:
        stream = once().stream(None, model=model, prompt="go")
        assert [] == model.requests
        return [text async for text in stream.text_stream]

    assert ["hi ", "there"] == asyncio.run(scenario())


def test_a_graph_closes_a_model_that_it_opened_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller gave a string, and has nothing to close it with."""
    closed: list[str] = []

    async def note(model: ScriptedModel) -> None:
        closed.append(model.label)

    monkeypatch.setattr(ScriptedModel, "aclose", note)
    (tmp_path / "script.yaml").write_text("- hi\n", encoding="utf-8")
    name = f"script:{tmp_path / 'script.yaml'}"

    assert "hi" == asyncio.run(once().run(None, model=name, prompt="go")).text
    assert [name] == closed
    asyncio.run(once().run(None, model=ScriptedModel(["hi"]), prompt="go"))
    assert [name] == closed


@pytest.mark.parametrize("made", ["node", "tool", "agent"])
@pytest.mark.parametrize("named", [False, True])
def test_the_models_of_agents_stay_open_for_other_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: str, named: bool
) -> None:
    """Another run of the same event loop may be asking them."""
    closed: list[str] = []

    async def note(model: ScriptedModel) -> None:
        closed.append(model.label)

    monkeypatch.setattr(ScriptedModel, "aclose", note)
    (tmp_path / "script.yaml").write_text("- hi\n", encoding="utf-8")
    name = f"script:{tmp_path / 'script.yaml'}"
    own = name if named else ScriptedModel(["hi"], restart=True)
    tools: list[AgentTool] = []
    if made == "node":
        below: Node[None, Outcome] = sub_graph(once(), name="kid", model=own)
    elif made == "agent":
        below = sub_graph(Agent(own, name="kid"))
    else:
        below = Child("kid")
        tools = [once().as_tool(None, model=own, description="Help.", name="kid")]
    graph: Graph[None] = Graph("outer", below, {below: {...: END}})

    for model in (ScriptedModel([], label="outer"), None):
        asyncio.run(graph.run(None, model=model, prompt="go", tools=tools))

    assert [] == closed


def test_a_graph_that_asks_a_model_is_given_one() -> None:
    """Only its agents have models of their own."""
    with pytest.raises(ConfigError, match="graph 'ask-once' asks a model: say which"):
        once().stream(None, prompt="go")


def test_a_function_that_nobody_brought_is_named() -> None:
    """The graph says "mine", the run brings nothing."""
    model = ScriptedModel(["hi"])

    with pytest.raises(ConfigError, match="'mine'"):
        asyncio.run(once("mine").run(None, model=model, prompt="go"))

    assert [] == model.requests


def test_a_function_that_answers_something_else_ends_the_run() -> None:
    """A node asked for changes and heard that a condition held."""

    async def prepare(run: Run[None]) -> Answer:
        return StopRequested(("x",))

    callbacks: dict[str, Callback[None]] = {"mine": prepare}
    model = ScriptedModel(["hi"])

    with pytest.raises(Exception, match="answers with Changes; found StopRequested"):
        asyncio.run(once("mine").run(None, model=model, prompt="go", callbacks=callbacks))

    assert [] == model.requests


def test_a_wrong_question_or_option_is_refused_before_anything_is_asked() -> None:
    """As by an agent."""
    model = ScriptedModel(["hi"])

    for options in ({"max_token": 1}, {"max_tokens": 0}, {"tools": [5]}, {"api_key": "k"}):
        with pytest.raises(ConfigError):
            once().stream(None, model=model, prompt="go", **wrong(options))
    with pytest.raises(ConfigError, match="neither"):
        asyncio.run(once().run(None, model=model))

    assert [] == model.requests


def test_a_table_that_does_not_fit_its_nodes_is_refused() -> None:
    """All findings at once, each with a fix."""
    prepare = PrepareStep()

    with pytest.raises(GraphError) as raised:
        Graph("broken", prepare, {prepare: {Answered: END}})

    assert 1 + len(prepare.outcomes) == len(raised.value.problems)
    assert all(problem.fix for problem in raised.value.problems)


def test_a_graph_s_own_check_is_the_check() -> None:
    """Two doors, one proof."""
    graph = once()

    assert str(check(graph)) == str(graph.check())


def test_a_picture_of_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    """And the path comes back where it is known."""
    with pytest.raises(ConfigError, match="gif"):
        once().save(tmp_path / "loop.gif")
    assert tmp_path / "loop.dot" == once().save(str(tmp_path / "loop.dot"))


def read() -> str:
    """Read."""
    return "text"


@pytest.mark.parametrize(
    ("gate", "status"),
    [(allow("read"), "ok"), (deny("*"), "denied"), (allow("nothing*"), "denied")],
)
def test_a_gate_of_a_run_holds_beside_the_rules_of_the_graph(gate: Policy, status: str) -> None:
    """Who runs a topology that somebody else wrote can make it stricter, never laxer."""
    model = ScriptedModel([reply(call()), "done"])

    result = asyncio.run(standard().run(None, model=model, prompt="go", tools=[read], gate=gate))

    assert [status] == [one.status for one in result.steps[0].tool_results]


def test_the_graph_s_own_rules_cannot_be_widened_by_those_of_a_run() -> None:
    """The strictest word counts."""
    strict = standard(Standard(gate=Gate(rules=deny("read").rules)))
    model = ScriptedModel([reply(call()), "done"])

    result = asyncio.run(
        strict.run(None, model=model, prompt="go", tools=[read], gate=allow("read"))
    )

    assert ["denied"] == [one.status for one in result.steps[0].tool_results]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"gate": allow("raed"), "tools": [read]}, "'raed'. Did you mean 'read'"),
        ({"step_timeout_s": 0}, "step_timeout_s"),
        ({"max_steps": 3}, "has no option 'max_steps'"),
    ],
)
def test_an_option_of_a_run_that_cannot_work_is_refused(
    options: dict[str, object], found: str
) -> None:
    """At once, as an agent's."""
    model = ScriptedModel(["hi"])

    with pytest.raises(ConfigError, match=found):
        standard().stream(None, model=model, prompt="go", **wrong(options))

    assert [] == model.requests


def test_a_gate_for_a_graph_that_checks_no_calls_is_refused() -> None:
    """It would look like a safeguard, and be none."""
    with pytest.raises(ConfigError, match="`gate` has no effect: graph 'ask-once'"):
        once().stream(None, model=ScriptedModel([]), prompt="go", tools=[read], gate=allow("read"))


def hand_on() -> Graph[None]:
    """Return a graph that lets the agent "helper" answer."""
    child: Node[None, Outcome] = Child("helper")
    append: Node[None, Outcome] = Append()
    return Graph("hand-on", child, {child: {Answered: append, ...: END}, append: {...: END}})


def test_agents_of_a_run_are_what_its_child_nodes_name() -> None:
    """By the names of the mapping, whatever the agents are called themselves."""
    helper = Agent(ScriptedModel(["help"], label="h"), name="other").as_tool(description="helps")
    model = ScriptedModel([])

    result = asyncio.run(hand_on().run(None, model=model, prompt="go", agents={"helper": helper}))

    assert ("help", EndReason.COMPLETED) == (result.text, result.end_reason)
    with pytest.raises(ConfigError, match="runs the agent 'helper'; the run has none"):
        asyncio.run(hand_on().run(None, model=model, prompt="go"))


def test_the_rules_of_a_run_reach_the_agents_below_it() -> None:
    """A gate at the top that says nothing below would protect nobody (GL9)."""
    agent = Agent(ScriptedModel([reply(call()), "done"], label="h"), tools=[read])
    helper = agent.as_tool(description="helps")
    store = MemoryStore()

    asyncio.run(
        hand_on().run(
            None,
            model=ScriptedModel([]),
            prompt="go",
            agents={"helper": helper},
            gate=deny("read"),
            store=store,
            run_id="r",
        )
    )

    (child,) = [one for one in asyncio.run(store.runs()) if one != "r"]
    below = asyncio.run(agent.with_options(store=store).runs.replay(child))
    assert ["denied"] == [one.status for one in below.record.steps[0].tool_results]


def test_a_budget_and_signed_approvals_hold_in_a_graph() -> None:
    """The bound ends the run, and the token is one of the secret."""
    model = ScriptedModel([reply(call())] * 3)
    graph = standard()

    bounded = asyncio.run(
        graph.run(None, model=model, prompt="go", tools=[read], budget=budget(tool_calls=1))
    )
    parked = asyncio.run(
        graph.run(
            None,
            model=model,
            prompt="go",
            tools=[read],
            gate=ask("read"),
            approval_secret=b"secret",
            approval_ttl_s=5,
            clock=lambda: 100.0,
        )
    )

    assert (EndReason.BUDGET, ("budget.tool_calls",)) == (bounded.end_reason, bounded.stopped_by)
    (pending,) = parked.pending
    assert (105.0, True) == (pending.expires_at, bool(pending.token))


class Report(BaseModel):
    """A state of another type than an essay's, which takes none of its fields."""

    model_config = ConfigDict(extra="forbid")

    title: str = "untitled"
    pages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Count(Begin):
    """The same node, once more: what it counts in is a state of its type."""

    name: str = "count"


@dataclass(frozen=True)
class Page:
    """A node of the user's that adds a page to a report."""

    name: str = "page"
    kind: Kind = "pure"
    outcomes = frozenset({Begun})

    def enter(self, run: Run[Report], /) -> Reaction[Report, Begun]:
        """Add, and go on."""
        state = Report(title=run.state.title, pages=(*run.state.pages, "page"))
        return Leave(evolve(run, state=state), Begun())

    def on(
        self, run: Run[Report], event: Event, answered: Effect | None, /
    ) -> Reaction[Report, Begun]:
        """Never happens."""
        raise AssertionError


def stateful(name: str, first: Node[S, Outcome], last: Node[S, Outcome], kind: type[S]) -> Graph[S]:
    """Return a loop in which nodes of the user's stand before and after what waits."""
    prepare: Node[Any, Outcome] = PrepareStep()
    model: Node[Any, Outcome] = ModelCall()
    gate: Node[Any, Outcome] = Gate()
    execute: Node[Any, Outcome] = Execute()
    append: Node[Any, Outcome] = Append()
    edges: Edges[Any] = {
        first: {Begun: prepare},
        prepare: {Ready: model, ...: END},
        model: {Calls: gate, ...: append},
        gate: {Settled: execute, ...: append},
        execute: {...: append},
        append: {AnsweredCalls: last, ...: END},
        last: {Begun: prepare},
    }
    # Nothing bounds it but its script; the nodes of the user's promise nothing.
    reasons = {("model_call", "GL4"): "the script ends it"}
    return Graph(name, first, edges, state_type=kind, ignore=reasons)


ASKED = reply(call("child", "k", '{"prompt": "look"}'))


@pytest.mark.parametrize("file", ["runs.db", "journals"])
@pytest.mark.parametrize("given", [False, True])
def test_a_child_s_state_is_its_own_whatever_its_parent_s_is(
    tmp_path: Path, file: str, given: bool
) -> None:
    """One store holds the journals of all of them; each is read as its own graph's.

    Three deep: an agent without a state, a graph with one, and another with another, parked in the
    innermost and taken up by a store object that has seen none of it.
    """
    essay = stateful("essay", Begin(), Count(), Essay)
    report = stateful("report", Page(), Page(name="last"), Report)

    def model(*script: Entry) -> ScriptedModel:
        return ScriptedModel(script, label="same")

    def tree(store: Store | str, *scripts: tuple[Entry, ...]) -> Agent:
        inner = essay.as_tool(
            Essay("graphs"),
            model=model(*scripts[2]),
            description="d",
            name="child",
            tools=[Tool(name="client", parameters={"type": "object"})],
        )
        middle = report.as_tool(
            Report(), model=model(*scripts[1]), description="d", name="child", tools=[inner]
        )
        return Agent(model(*scripts[0]), tools=[middle], store=store, max_agent_depth=3)

    def opened() -> Store | str:
        return open_store(tmp_path / file) if given else str(tmp_path / file)

    async def scenario() -> None:
        first = tree(opened(), (ASKED,), (ASKED,), (reply(call("client", "c")),))
        parked = await first.generate("go", run_id="r")
        key = "c0.0/c0.0/c0.0"
        assert [key] == [one.key for one in parked.pending]
        await closed(first, parked)
        second = tree(opened(), ("done",), ("reported",), ("written",))
        result = await second.resume("r", tool_results={key: "theirs"})
        states = [result.children[one].state for one in ("r/c0.0", "r/c0.0/c0.0")]
        assert ["done", Report(pages=("page", "page")), Essay("graphs", 2)] == [
            result.text,
            *states,
        ]
        await closed(second, result)

    async def closed(agent: Agent, result: RunResult[None]) -> None:
        await agent.aclose()
        if isinstance(result.store, SqliteStore):
            await result.store.aclose()

    asyncio.run(scenario())


@pytest.mark.parametrize("file", ["runs.db", "journals"])
def test_a_parent_s_type_does_not_read_a_child_s_state(tmp_path: Path, file: str) -> None:
    """Not even one that takes whatever there is, and would lose it."""
    store = str(tmp_path / file)
    essay = stateful("essay", Begin(), Count(), Essay)
    report = stateful("report", Page(), Page(name="last"), Report)
    client = Tool(name="client", parameters={"type": "object"})

    def child(*script: Entry) -> AgentTool:
        model = ScriptedModel(script, label="child's")
        return report.as_tool(
            Report(title="own"), model=model, description="d", name="child", tools=[client]
        )

    async def scenario() -> None:
        asking = child(reply(call("client", "c")))
        await essay.run(
            Essay("x"),
            model=ScriptedModel([ASKED]),
            prompt="go",
            tools=[asking],
            store=store,
            run_id="r",
        )
        result = await essay.resume(
            "r",
            model=ScriptedModel(["done"]),
            tools=[child("reported")],
            store=store,
            tool_results={"c0.0/c0.0": "theirs"},
        )
        below = result.children["r/c0.0"].state
        assert (Essay("x", 2), Report(title="own", pages=("page", "page"))) == (result.state, below)
        if isinstance(result.store, SqliteStore):
            await result.store.aclose()

    asyncio.run(scenario())


def test_a_graph_s_state_is_its_own_whatever_its_store_was_told(tmp_path: Path) -> None:
    """A store that was opened without the type of the state reads plain JSON."""
    essay = stateful("essay", Begin(), Count(), Essay)
    client = Tool(name="client", parameters={"type": "object"})

    async def scenario() -> list[object]:
        asking, store = ScriptedModel([reply(call("client", "c"))]), JsonlStore(tmp_path)
        await essay.run(
            Essay("x"), model=asking, prompt="go", tools=[client], store=store, run_id="r"
        )
        later = JsonlStore(tmp_path)
        replayed = await Runs(later, essay).replay("r")
        result = await essay.resume(
            "r",
            model=ScriptedModel(["done"]),
            tools=[client],
            store=later,
            tool_results={"c0.0": "theirs"},
        )
        return [replayed.state, result.state]

    assert [Essay("x", 1), Essay("x", 2)] == asyncio.run(scenario())


@dataclass(frozen=True)
class Note:
    """A state."""

    text: str = ""


@node
def jot(note: Note) -> tuple[Answered, Note]:
    """Return a state that is a note only at first sight."""
    return Answered(), replace(note, text=wrong(5))


def test_a_state_that_nobody_could_read_back_is_never_kept(tmp_path: Path) -> None:
    """Not one that a run begins with, and none that a function returns; in memory nobody reads."""
    store = str(tmp_path / "runs.db")
    graph = Graph("jots", jot, {jot: {...: END}})

    with pytest.raises(ConfigError, match="graph 'jots' begins with a state that no journal"):
        asyncio.run(graph.run(Note(wrong(5)), store=store))
    with pytest.raises(ConfigError, match="graph 'jots' begins with a state of type Note; found s"):
        asyncio.run(graph.run(wrong("x")))
    with pytest.raises(
        ConfigError, match=r"'jot' returns a state that no journal.*`text`: Input sh"
    ):
        asyncio.run(graph.run(Note(), store=store, run_id="r"))

    assert Note() == asyncio.run(Runs(store, graph).replay("r")).state
    assert Note(wrong(5)) == asyncio.run(graph.run(Note())).state
