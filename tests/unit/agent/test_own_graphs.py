"""Graphs of the user: drawn, checked, and run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from graphloop import (
    END,
    Agent,
    AgentTool,
    EndReason,
    Graph,
    allow,
    check,
    node,
)
from graphloop.agent.bindings import carried_by, models_named
from graphloop.contract import Contract
from graphloop.conversation.compaction import Compaction
from graphloop.driver.ports import Callback
from graphloop.effects import Effect, Invoke
from graphloop.errors import ConfigError, GraphError
from graphloop.events import BranchesJoined, CallbackAnswer, EffectFailed, Event, StopRequested
from graphloop.graph import Edges
from graphloop.loop import Standard, standard_edges
from graphloop.node_protocol import Kind, Leave, Node, Reaction, Wait, unwrapped
from graphloop.nodes import (
    AnswerCheck,
    Append,
    Compact,
    Critique,
    Execute,
    ModelCall,
    PrepareStep,
    Retrying,
    StopCheck,
    Verify,
)
from graphloop.nodes.child import Child
from graphloop.nodes.function import Function
from graphloop.nodes.gate import Gate
from graphloop.outcomes import Answered, Calls, Failed, Outcome, Ready, Settled
from graphloop.own_nodes import Asking, ask_person, fallback, map_over, parallel, retry, sub_graph
from graphloop.policy.policy import Rule
from graphloop.run import Run
from graphloop.testing import ScriptedModel
from graphloop.topology.loaded import dump, load
from tests.endless_graphs import POLLS, QUEUE, poller, silent
from tests.own_nodes import Billing, Ticket, route
from tests.strategies import wrong
from tests.unit.agent.doubles import read


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


def test_a_graph_of_the_user_runs() -> None:
    for graph, gate in ((once(), None), (standard(), allow("read"))):
        model = ScriptedModel(["hi"])
        result = asyncio.run(graph.run(None, model=model, prompt="go", tools=[read], gate=gate))

        assert ("hi", EndReason.COMPLETED) == (result.text, result.end_reason)


def test_a_graph_draws_and_checks_itself(tmp_path: Path) -> None:
    graph = once()

    assert "prepare_step" in graph.mermaid()
    assert "model_call" in graph.dot()
    assert graph.mermaid() == graph.save(tmp_path / "loop.mmd").read_text(encoding="utf-8")
    assert str(check(graph)) == str(graph.check())
    assert tmp_path / "loop.dot" == graph.save(str(tmp_path / "loop.dot"))
    with pytest.raises(ConfigError, match="gif"):
        graph.save(tmp_path / "loop.gif")


def standard(nodes: Standard | None = None) -> Graph[None]:
    """Return the standard loop as a graph."""
    nodes = nodes or Standard()
    return Graph("mine", nodes.prepare, standard_edges(nodes))


def requests_a_stop(_: Run[None]) -> CallbackAnswer:
    """Answer something else than what is asked."""
    return StopRequested(("x",))


def hand_on() -> Graph[None]:
    """Return a graph that lets the agent "helper" answer."""
    child: Node[None, Outcome] = Child("helper")
    append: Node[None, Outcome] = Append()
    return Graph("hand-on", child, {child: {Answered: append, ...: END}, append: {...: END}})


@node
def asking(_: None) -> Asking[Answered]:
    """Ask a person; the annotation allows models, too."""
    yield from ask_person("Good?")
    return Answered()


@pytest.mark.parametrize(
    ("graph", "options", "found"),
    [
        (once(), {"max_steps": 3}, "graph 'ask-once' has no option 'max_steps'"),
        (once(), {"max_token": 1}, "max_token"),
        (once(), {"max_tokens": 0}, "max_tokens"),
        (once(), {"tools": [5]}, "tools"),
        (once(), {"api_key": "k"}, "api_key"),
        (once(), {"model": None}, "graph 'ask-once' asks a model: say which"),
        (once(), {"prompt": None}, "neither"),
        (once(), {"gate": allow("read")}, "`gate` has no effect: graph 'ask-once'"),
        (once("mine"), {}, "'mine'"),
        (standard(), {"gate": allow("raed")}, "'raed'. Did you mean 'read'"),
        (standard(), {"step_timeout_s": 0}, "step_timeout_s"),
        (standard(Standard(PrepareStep(active_tools=("raed",)))), {}, "names 'raed'"),
        (Graph("asking", asking, {asking: {...: END}}), {"model": None}, "'asking' asks none"),
        (
            wrong(Graph("desk", route, {route: {...: END}})),
            {"callbacks": {"route": requests_a_stop}},
            "a function that the node of that name brings along",
        ),
        (hand_on(), {}, "runs the agent 'helper'; the run has none"),
        (
            hand_on(),
            {
                "agents": {"helper": Agent(ScriptedModel([])).as_tool(description="helps")},
                "temperature": 0.5,
                "instructions": "Be kind.",
            },
            "instructions, temperature would have no effect: no node of graph 'hand-on'",
        ),
        (
            once("mine"),
            {"callbacks": {"mine": requests_a_stop}},
            "expected Changes, found StopRequested",
        ),
    ],
)
async def test_a_run_that_cannot_work_asks_nothing(
    graph: Graph[None], options: dict[str, object], found: str
) -> None:
    model = ScriptedModel(["hi"])
    given = {"model": model, "prompt": "go", "tools": [read], **options}

    with pytest.raises(Exception, match=found):
        await graph.run(None, **wrong(given))

    assert [] == model.requests


def test_agents_of_a_run_are_what_its_child_nodes_name() -> None:
    helper = Agent(ScriptedModel(["help"], label="h"), name="other").as_tool(description="helps")
    model = ScriptedModel([])

    result = asyncio.run(hand_on().run(None, model=model, prompt="go", agents={"helper": helper}))

    assert ("help", EndReason.COMPLETED) == (result.text, result.end_reason)
    with pytest.raises(ConfigError, match="runs the agent 'helper'; the run has none"):
        asyncio.run(hand_on().run(None, model=model, prompt="go"))


REFUSED = r"graph 'poller' may run for ever, so it does not run: nothing bounds the cycle poll -> "


def test_no_door_leads_around_a_missing_bound() -> None:
    graph = poller()

    for enter in (
        lambda: asyncio.run(graph.run(None)),
        lambda: asyncio.run(graph.resume("r", store="runs.db")),
        lambda: graph.resume_stream("r", store="runs.db"),
        lambda: graph.as_tool(None, description="polls"),
        lambda: sub_graph(graph),
        graph.run_bound,
    ):
        with pytest.raises(ConfigError, match=REFUSED):
            enter()


def test_a_graph_whose_bound_is_unknown_does_not_run() -> None:
    with pytest.raises(ConfigError, match="give 'silent' a `contract`"):
        silent().stream(None)
    assert "completed" == asyncio.run(silent(again=False).run(None)).end_reason


def test_with_a_reason_an_unbounded_graph_runs() -> None:
    for graph in (poller({("poll", "GL4"): POLLS}), poller().unbounded(POLLS)):
        QUEUE[:] = [True, False, False]

        assert "completed" == asyncio.run(graph.run(None)).end_reason
        assert [] == QUEUE


@pytest.mark.parametrize("reason", ["", "  "])
def test_nothing_is_set_aside_for_no_reason(reason: str) -> None:
    with pytest.raises(ConfigError, match=r"'poll', 'GL4'.*expected a reason in words"):
        poller({("poll", "GL4"): reason})
    with pytest.raises(ConfigError, match=r"'poll', 'GL4'.*expected a reason in words"):
        poller().unbounded(reason)


def test_a_graph_can_be_made_to_run_without_a_bound() -> None:
    graph = poller()
    free = graph.unbounded(POLLS)

    assert {("poll", "GL4"): POLLS} == free.ignore
    assert (1, 0) == (len(graph.endless), len(free.endless))
    assert {} == graph.ignore
    with pytest.raises(ConfigError, match="graph 'poller' is bounded: it needs no reason"):
        free.unbounded(POLLS)


@pytest.mark.parametrize("agent", ["w/deep", " w", "a\x1b[2J"])
def test_an_agent_s_name_fits_before_the_names_of_nodes(agent: str) -> None:
    child, append = Child(agent, name="child"), Append()

    with pytest.raises(ConfigError, match="which is not an agent's name"):
        Graph("outer", child, {child: {...: append}, append: {...: END}})


def asks(label: str = "", fallbacks: tuple[str, ...] = (), judge: str = "") -> Graph[None]:
    """Return a graph whose nodes name models."""
    prepare: Node[None, Outcome] = PrepareStep()
    model: Node[None, Outcome] = ModelCall(model=label, fallbacks=fallbacks)
    append: Node[None, Outcome] = Append()
    critique: Node[None, Outcome] = Critique("Good?", model=judge)
    edges: Edges[None] = {
        prepare: {Ready: model, ...: END},
        model: {Answered: append, ...: END},
        append: {...: critique},
        critique: {...: END},
    }
    return Graph("asks", prepare, edges)


def test_a_model_that_a_node_names_is_opened(tmp_path: Path) -> None:
    script = tmp_path / "judge.yaml"
    script.write_text('- calls: [{name: verdict, arguments: {accepted: true, feedback: ""}}]\n')
    graph = asks(judge=f"script:{script}")

    result = asyncio.run(graph.run(None, model=ScriptedModel(["hi"]), prompt="go"))

    assert ("hi", "completed") == (result.text, result.end_reason)
    assert 2 == result.run.spent.model_calls


def test_a_topology_of_data_opens_no_file(tmp_path: Path) -> None:
    secret = tmp_path / "passwd"
    secret.write_text("root:x:0:0\n")
    text = dump(asks(judge=f"script:{secret}"))
    own = f"script:{tmp_path / 'own.yaml'}"

    with pytest.raises(ConfigError, match="Fix: give the run that model") as told:
        load(text).stream(None, model=ScriptedModel(["hi"]), prompt="go")
    assert "root:x" not in str(told.value)
    labelled = ScriptedModel(["hi"], label=own)
    load(dump(asks(judge=own))).stream(None, model=labelled, prompt="go")


@dataclass(frozen=True)
class Invoking:
    """A node of a user's own that says what it invokes."""

    function: str
    name: str = "own"
    kind: Kind = "check"
    outcomes: frozenset[type[Outcome]] = frozenset({Answered, Failed})

    @property
    def contract(self) -> Contract:
        """It invokes one function."""
        return Contract(functions=(self.function,))

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Invoke it."""
        return Wait(run, (Invoke(run.next_effect, self.function),))

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Leave."""
        return Leave(run, Failed() if isinstance(event, EffectFailed) else Answered())


NAMELESS: list[tuple[Node[None, Outcome], str]] = [
    (Child("helpre"), "node 'helpre' of graph 'alone' runs the agent 'helpre'.* Did you mean"),
    (parallel("helper", "zz"), "node 'parallel' of graph 'alone' runs the agent 'zz'"),
    (map_over("zz", max_items=3), "node 'map_over' of graph 'alone' runs the agent 'zz'"),
    (retry(fallback(Child("helper"), Child("zz")), 2), "runs the agent 'zz'"),
    (parallel("helper", callback="mien"), "invokes the function 'mien'.* Did you mean 'mine'"),
    (retry(map_over("helper", max_items=3, callback="f"), 2), "invokes the function 'f'"),
    (Verify((AnswerCheck("good", 1),)), "invokes the function 'good'"),
    (PrepareStep(callback="f"), "invokes the function 'f'"),
    (StopCheck(callback="f"), "invokes the function 'f'"),
    (Compact(callback="f"), "invokes the function 'f'"),
    (Function("f", frozenset({Ready})), "invokes the function 'f'"),
    (Invoking("mien"), "node 'own' of graph 'alone' invokes the function 'mien'.* mean 'mine'"),
    (Retrying(Invoking("f"), 2), "invokes the function 'f'"),
]


def helper(*answers: str) -> AgentTool:
    """Return an agent that gives these answers."""
    agent = Agent(ScriptedModel(list(answers)), name="helper")
    return agent.as_tool(name="helper", description="helps")


@pytest.mark.parametrize(("node", "told"), NAMELESS)
def test_what_a_node_names_is_looked_up_before_the_run(
    node: Node[None, Outcome], told: str
) -> None:
    agents = {"helper": helper("hi")}
    callbacks: dict[str, Callback[None]] = {"mine": lambda _: BranchesJoined("x")}
    graph = Graph("alone", node, {node: {...: END}})

    for enter in (
        lambda: graph.stream(None, prompt="go", agents=agents, callbacks=callbacks),
        lambda: graph.resume_stream("r", agents=agents, callbacks=callbacks),
        lambda: graph.as_tool(None, description="x", agents=agents, callbacks=callbacks),
        lambda: graph.run_bound(agents=agents, callbacks=callbacks),
    ):
        with pytest.raises(ConfigError, match=told):
            enter()


def alone(node: Node[None, Outcome]) -> Graph[None]:
    """Return a graph with one node, which gives the answer."""
    append: Node[None, Outcome] = Append()
    return Graph("alone", node, {node: {Answered: append, ...: END}, append: {...: END}})


def test_an_error_names_everything_that_is_missing() -> None:
    first, second = parallel("a", "b", callback="f"), Critique("Good?", model="judge")
    graph: Graph[None] = Graph("all", first, {first: {...: second}, second: {...: END}})

    with pytest.raises(ConfigError) as caught:
        graph.stream(None, prompt="go")

    told = str(caught.value)
    words = ("asks a model: say which", "the model 'judge'", "agent 'a'", "agent 'b'", "ion 'f'")
    assert [] == [one for one in words if one not in told]


def test_what_is_given_is_found_wherever_it_comes_from() -> None:
    vote = alone(parallel("helper", "helper", callback="count"))

    def count(run: Run[None]) -> BranchesJoined:
        return BranchesJoined(str(len(run.turn.branches)))

    for agents, tools in (({"helper": helper("a", "b")}, ()), ({}, (helper("a", "b"),))):
        result = asyncio.run(
            vote.run(None, prompt="go", agents=agents, tools=tools, callbacks={"count": count})
        )
        assert "2" == result.text


def gating(*rules: Rule) -> Graph[None]:
    """Return a loop with a gate of these rules."""
    prepare, model, append = PrepareStep(), ModelCall(), Append()
    gate, execute = Gate(rules=rules), Execute()
    edges: Edges[None] = {
        prepare: {Ready: model, ...: END},
        model: {Calls: gate, ...: append},
        gate: {Settled: execute, ...: append},
        execute: {...: append},
        append: {...: END},
    }
    return Graph("gating", prepare, edges)


def refund(amount: int) -> str:
    """Pay back."""
    return f"{amount} paid back"


def test_a_gate_s_rules_name_tools_of_the_run() -> None:
    graph = gating(Rule("ask", ("refnud",)), Rule("allow", ("*",)))
    said = (
        r"node 'gate' of graph 'gating': a rule names .* \(refund\): 'refnud'\. Did you mean 'ref"
    )

    with pytest.raises(ConfigError, match=said):
        asyncio.run(graph.run(None, model=ScriptedModel(["hi"]), prompt="x", tools=[refund]))
    with pytest.raises(ConfigError, match=said):
        graph.as_tool(None, model=ScriptedModel([]), description="x", tools=[refund])
    with pytest.raises(ConfigError, match=said):
        sub_graph(graph, model=ScriptedModel([]), options={"tools": [refund]})


def test_two_things_of_one_name_are_refused() -> None:
    @node(name="route")
    def twin(ticket: Ticket) -> Billing:
        return Billing()

    assert {"route"} == set(carried_by([*unwrapped([Retrying(route, 2)])]).callbacks)
    with pytest.raises(ConfigError, match=r"two different functions .* as 'route'"):
        carried_by([route, twin])
    agents = [sub_graph(Agent(ScriptedModel([]), name=one), name="kid") for one in "ab"]
    with pytest.raises(ConfigError, match=r"two different agents .* as 'kid'"):
        carried_by(agents)


def test_a_graph_that_brings_two_things_of_one_name_is_refused() -> None:
    first, second = (sub_graph(Agent(ScriptedModel([]), name=one), name="kid") for one in "ab")
    retried: Retrying[None] = Retrying(first, 1, name="first")
    again: Retrying[None] = Retrying(second, 1, name="second")
    edges: Edges[None] = {retried: {...: again}, again: {...: END}}

    with pytest.raises(GraphError, match=r"two different agents .* as 'kid'"):
        Graph("desk", retried, edges)
    same: Retrying[None] = Retrying(first, 1, name="same")
    Graph("desk", retried, {retried: {...: same}, same: {...: END}})


def test_models_are_named_by_the_nodes_that_ask_them() -> None:
    critique: Node[None, Outcome] = Critique("Good?", model="judge")
    wrapped: Node[None, Outcome] = Retrying(critique, 2)
    nodes: list[Node[None, Outcome]] = [
        ModelCall(model="large", fallbacks=("small", "judge")),
        wrapped,
        Compact(compaction=Compaction(context_window=9_000, summary_model="cheap")),
        Compact(name="later"),
        ModelCall(name="own"),
        Append(),
    ]

    assert {
        "large": "model_call",
        "small": "model_call",
        "judge": "model_call",
        "cheap": "compact",
    } == models_named(unwrapped(nodes))
