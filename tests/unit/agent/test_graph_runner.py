"""A graph of one's own runs if it is bounded, and every model that it names can be asked."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from graphloop import END, Agent, Graph, RunResult, node
from graphloop.agent.sub_agents import AgentTool
from graphloop.contract import Contract
from graphloop.driver.ports import Callback
from graphloop.effects import Effect, Invoke
from graphloop.errors import ConfigError, RunFailed
from graphloop.events import BranchesJoined, EffectFailed, Event
from graphloop.graph import Edges
from graphloop.node_protocol import Kind, Leave, Node, Reaction, Wait
from graphloop.nodes import (
    AnswerCheck,
    Append,
    Child,
    Compact,
    Critique,
    Execute,
    Gate,
    ModelCall,
    PrepareStep,
    Retrying,
    StopCheck,
    Verify,
)
from graphloop.nodes.function import Function
from graphloop.outcomes import Answered, Calls, Failed, Outcome, Ready, Settled
from graphloop.own_nodes import Asking, ask_person, fallback, map_over, parallel, retry, sub_graph
from graphloop.policy.policy import Rule
from graphloop.run import Run
from graphloop.testing import ScriptedModel
from graphloop.topology.loaded import dump, load
from graphloop.topology.registration import Registry
from tests.endless_graphs import POLLS, QUEUE, poll, poller, silent
from tests.strategies import call, reply

REFUSED = r"graph 'poller' may run for ever, so it does not run: nothing bounds the cycle poll -> "


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


def test_a_graph_that_nothing_bounds_does_not_run() -> None:
    """The error names the cycle, what is missing, and both ways out."""
    with pytest.raises(ConfigError, match=REFUSED) as caught:
        poller().stream(None)

    told = str(caught.value)
    assert "Limit" in told
    assert 'ignore={(\'poll\', "GL4"): "why"}' in told
    assert "--unbounded REASON" in told


def test_no_door_leads_around_it() -> None:
    """To run, to resume, to be a tool or a node: each would run it."""
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


def test_a_graph_that_nobody_can_tell_does_not_run_either() -> None:
    """A node without a contract on a cycle: unknown is never proven."""
    with pytest.raises(ConfigError, match="give 'silent' a `contract`"):
        silent().stream(None)
    assert "completed" == asyncio.run(silent(again=False).run(None)).end_reason


def test_with_a_reason_it_runs() -> None:
    """As its author has said."""
    for graph in (poller({("poll", "GL4"): POLLS}), poller().unbounded(POLLS)):
        QUEUE[:] = [True, False, False]

        assert "completed" == asyncio.run(graph.run(None)).end_reason
        assert [] == QUEUE


def test_a_file_gives_its_reason_in_ignore(tmp_path: Path) -> None:
    """And that of an agent within it, under the agent's name."""
    registry = Registry()
    registry.node(poll)
    inner = "graphloop: 1\nname: poller\nstart: poll\nnodes: {poll: {use: poll}}\n"
    inner += "edges: {poll: {empty: poll, else: END}}\n"
    outer = "graphloop: 1\nname: desk\nstart: poller\nagents: {poller: {include: poller.yaml}}\n"
    outer += "nodes: {poller: {use: child, agent: poller}}\nedges: {poller: {else: END}}\n"
    (tmp_path / "poller.yaml").write_text(inner)
    desk = tmp_path / "desk.yaml"
    desk.write_text(outer)
    bare = load(desk, registry=registry)
    desk.write_text(outer + f"ignore: [{{node: poller/poll, code: GL4, reason: {POLLS}}}]\n")
    told = load(desk, registry=registry)
    desk.write_text(outer)
    (tmp_path / "poller.yaml").write_text(
        f"{inner}ignore: [{{node: poll, code: GL4, reason: {POLLS}}}]\n"
    )
    told_within = load(desk, registry=registry)

    with pytest.raises(ConfigError, match=REFUSED):
        asyncio.run(bare.run(None))
    for graph in (told, told_within, bare.unbounded(POLLS)):
        QUEUE[:] = [True, False]
        # The agent looks into its queue, and says nothing.
        with pytest.raises(RunFailed, match="gave no answer"):
            asyncio.run(graph.run(None, prompt="go"))
        assert [] == QUEUE
    assert [True, True, False] == [one.check().ok for one in (told, told_within, bare)]
    with pytest.raises(ConfigError, match="needs no reason to run"):
        told.unbounded(POLLS)


def test_a_model_that_a_node_names_is_opened(tmp_path: Path) -> None:
    """As the model of the run is, by its name."""
    script = tmp_path / "judge.yaml"
    script.write_text('- calls: [{name: verdict, arguments: {accepted: true, feedback: ""}}]\n')
    graph = asks(judge=f"script:{script}")

    result = asyncio.run(graph.run(None, model=ScriptedModel(["hi"]), prompt="go"))

    assert ("hi", "completed") == (result.text, result.end_reason)
    assert 2 == result.run.spent.model_calls


def test_a_topology_of_data_opens_no_file(tmp_path: Path) -> None:
    """Who writes a file of data must not have any path of this machine read."""
    secret = tmp_path / "passwd"
    secret.write_text("root:x:0:0\n")
    text = dump(asks(judge=f"script:{secret}"))
    own = f"script:{tmp_path / 'own.yaml'}"

    with pytest.raises(ConfigError, match="Fix: give the run that model") as told:
        load(text).stream(None, model=ScriptedModel(["hi"]), prompt="go")
    assert "root:x" not in str(told.value)
    labelled = ScriptedModel(["hi"], label=own)
    load(dump(asks(judge=own))).stream(None, model=labelled, prompt="go")


@pytest.mark.parametrize("graph", [asks("judge"), asks(fallbacks=("judge",)), asks(judge="judge")])
def test_a_model_that_nobody_can_open_is_told_before_the_run(graph: Graph[None]) -> None:
    """By the node that names it; not in the middle of a run."""
    with pytest.raises(ConfigError, match=r"node '\w+' asks the model 'judge', and model: expect"):
        graph.stream(None, model=ScriptedModel(["hi"]), prompt="go")


def test_a_model_that_the_run_brings_is_not_opened_again() -> None:
    """Its label names it, whether or not anything could open it by that."""
    verdict = reply(call("verdict", "v", '{"accepted": true, "feedback": ""}'))
    model = ScriptedModel(["hi", verdict], label="judge")

    result = asyncio.run(asks("judge", judge="judge").run(None, model=model, prompt="go"))

    assert "hi" == result.text


def helper(*answers: str) -> AgentTool:
    """Return an agent that gives these answers."""
    agent = Agent(ScriptedModel(list(answers)), name="helper")
    return agent.as_tool(name="helper", description="helps")


def alone(node: Node[None, Outcome]) -> Graph[None]:
    """Return a graph of one node, whose answer is the run's."""
    append: Node[None, Outcome] = Append()
    return Graph("alone", node, {node: {Answered: append, ...: END}, append: {...: END}})


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


@pytest.mark.parametrize(("node", "told"), NAMELESS)
def test_what_a_node_names_is_looked_up_before_the_run(
    node: Node[None, Outcome], told: str
) -> None:
    """In the middle of it, money has been spent, and a half answer could pass for one."""
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


def asks_people(_: None) -> Asking[Answered]:
    """Ask a person, and no model."""
    yield from ask_person("Good?")
    return Answered()


def question(result: RunResult[None]) -> object:
    """Return what a person is asked."""
    return json.loads(result.pending[0].arguments)["question"]


def test_a_generator_that_asks_no_model_says_so() -> None:
    """Its annotation, `Asking`, says that it may ask anything."""
    silent, free = node(model_calls=0)(asks_people), node(asks_people)

    result = asyncio.run(alone(silent).run(None))

    assert ("parked", "Good?") == (result.end_reason, question(result))
    with pytest.raises(
        ConfigError, match=r"asks a model: .*'asks_people' asks none: @node\(model_calls=0\)"
    ):
        alone(free).stream(None)


def test_all_that_is_missing_is_told_at_once() -> None:
    """Who mends one name would otherwise learn of the next by another start."""
    first, second = parallel("a", "b", callback="f"), Critique("Good?", model="judge")
    graph: Graph[None] = Graph("all", first, {first: {...: second}, second: {...: END}})

    with pytest.raises(ConfigError) as caught:
        graph.stream(None, prompt="go")

    told = str(caught.value)
    words = ("asks a model: say which", "the model 'judge'", "agent 'a'", "agent 'b'", "ion 'f'")
    assert [] == [one for one in words if one not in told]


def test_what_is_given_is_found_wherever_it_comes_from() -> None:
    """Agents among the tools, too; and functions may be plain ones."""
    vote = alone(parallel("helper", "helper", callback="count"))

    def count(run: Run[None]) -> BranchesJoined:
        return BranchesJoined(str(len(run.turn.branches)))

    for agents, tools in (({"helper": helper("a", "b")}, ()), ({}, (helper("a", "b"),))):
        result = asyncio.run(
            vote.run(None, prompt="go", agents=agents, tools=tools, callbacks={"count": count})
        )
        assert "2" == result.text


def gated(*rules: Rule) -> Graph[None]:
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
    return Graph("gated", prepare, edges)


def refund(amount: int) -> str:
    """Pay back."""
    return f"{amount} paid back"


def test_a_gate_s_rules_name_tools_of_the_run() -> None:
    """Of whatever origin the graph is: about another name they would protect nothing."""
    graph = gated(Rule("ask", ("refnud",)), Rule("allow", ("*",)))
    said = r"node 'gate' of graph 'gated': a rule names .* \(refund\): 'refnud'\. Did you mean 'ref"

    with pytest.raises(ConfigError, match=said):
        asyncio.run(graph.run(None, model=ScriptedModel(["hi"]), prompt="x", tools=[refund]))
    with pytest.raises(ConfigError, match=said):
        graph.as_tool(None, model=ScriptedModel([]), description="x", tools=[refund])
    with pytest.raises(ConfigError, match=said):
        sub_graph(graph, model=ScriptedModel([]), options={"tools": [refund]})


def test_a_gate_s_rules_may_name_what_agents_below_may_call() -> None:
    """And by patterns what does not exist yet; where nothing can be called, anything."""
    helper = Agent(ScriptedModel([]), tools=[refund], name="helper").as_tool(description="helps")
    graph = gated(Rule("ask", ("refund", "later_*")), Rule("allow", ("helper",)))

    for tools in ((), (helper,)):
        model = ScriptedModel(["hi"])
        result = asyncio.run(graph.run(None, model=model, prompt="x", tools=tools))
        assert "hi" == result.text
