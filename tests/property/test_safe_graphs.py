"""What the checker lets pass is safe: thousands of runs of generated graphs, and no monitor fires.

The graphs are made of every kind of node (`tests/varied_graphs.py`), the worlds are those of the
fuzzer, and what is counted is counted here, from the journal alone. Half of the graphs are safe by
the way they are put together; of the others one or two lines lead anywhere, and those that the
checker finds nothing wrong with are held to the same.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphloop.contract import contract_of
from graphloop.effects import CallModel, CallTool, Effect, StartRun
from graphloop.errors import GraphError
from graphloop.events import ModelReplied
from graphloop.graph import END, NodeGraph, names_of
from graphloop.nodes import Child
from graphloop.own_nodes.compose import fallback, parallel
from graphloop.proofs.bounds import bound
from graphloop.proofs.call_bounds import Bound
from graphloop.proofs.checking import check
from graphloop.proofs.proof_graph import ProofGraph
from graphloop.proofs.report import Report
from graphloop.proofs.temporal import decided
from graphloop.proofs.visits import VisitBounds
from graphloop.rules import Rules, always_followed_by, at_most, at_most_once, never, only_after
from graphloop.rules.names import resolve_words
from graphloop.testing.adversary import SPENT
from graphloop.testing.choices import Choices
from graphloop.testing.fuzzing import Fuzzer
from graphloop.testing.trial import Trial
from tests.contract_monitor import broken_promises, visits_of
from tests.sizes import sized
from tests.topology_data import graph_of, standard
from tests.varied_graphs import AGENT_CALLS, Varied, seeded, varied

WORLDS = 4
"""In how many worlds each graph runs."""

KINDS = {
    *("Append", "Approve", "Child", "Compact", "Critique", "Execute", "Extend", "Fallback"),
    *("Function", "Gate", "Limit", "MapOver", "ModelCall", "Parallel", "PrepareStep", "Retrying"),
    *("Router", "Screen", "Screened", "StopCheck", "SubGraph", "Verify"),
}

KEY: Final = re.compile(r"c-?\d+\.\d+")

seeds = st.integers(0, 2**32)


def lacking(report: Report) -> list[str]:
    """Return what is found, and what is not proven; rules of one's own are not given here.

    Whether a gate that asks a function is as strict as another nobody can tell, nor what an agent
    does that is only named: here those answer, and no more.
    """
    open_ = ("which cannot be compared", "the graph of the agent")
    unknown = [
        str(one)
        for one in report.unknown
        if one.code != "GL12" and not any(words in one.reason for words in open_)
    ]
    return [*[str(one) for one in report.findings if one.severity == "error"], *unknown]


def rules_for(graph: NodeGraph[None], rng: random.Random) -> Iterator[Rules]:
    """Yield rules about nodes of a graph; most of them do not hold."""
    names = [f"node:{name}" for name in graph.nodes]
    for _ in range(6):
        one, other = rng.choice(names), rng.choice([*names, "node:END"])
        yield (
            rng.choice(
                (
                    never(other, before=one),
                    at_most_once(one),
                    at_most(one, 6),
                    only_after(other, one),
                    always_followed_by(one, other),
                    at_most_once(other, per=one),
                )
            )
            if one != other
            else at_most(one, 3)
        )


def proven_rules(graph: NodeGraph[None], rng: random.Random) -> Rules:
    """Return those rules that are proven of a graph; a whole check would seek witnesses, too."""
    kept, ground, names = Rules(()), ProofGraph(graph), names_of(graph)
    most = VisitBounds(ground)
    for rules in rules_for(graph, rng):
        known = decided(ground, resolve_words(rules, names), most)
        if all(one.status == "proven" for one in known):
            kept &= rules
    return kept


def assert_safe(made: Varied, rng: random.Random, seed: int) -> None:
    """Assert that no monitor fires in any of some worlds."""
    known = bound(made.graph, agents=made.agents)
    names = names_of(made.graph, [one.name for one in made.subject.setup.tools])
    rules = resolve_words(proven_rules(made.graph, rng), names)
    fuzzer = Fuzzer(replace(made.subject, rules=rules))
    for world in range(seed, seed + WORLDS):
        trial, wrong = fuzzer.tried(Choices.seeded(world))
        assert () == wrong, world
        assert [] == list(beyond(made, known, trial)), world
        assert [] == list(broken_promises(visits_of(made.graph, trial.events, None))), world


def beyond(made: Varied, known: Bound, trial: Trial[None]) -> Iterator[str]:
    """Yield what a run has come to, by its journal, and must not by what is proven."""
    chapters = trial.trace.steps
    effects = [effect for chapter in chapters for effect in chapter.effects]
    visits = Counter([made.graph.start])
    visits.update(one.target for chapter in chapters for one in chapter.transitions)
    for name, times in visits.items():
        most = known.visits.get(name)
        if most is not None and times > most:
            yield f"{name!r} is visited {times} times, proven are {most}"
    asked = sum(models_asked(made, one) for one in effects)
    assert known.model_calls is not None
    if asked > known.model_calls:
        yield f"{asked} models are asked, proven are {known.model_calls}"
    yield from beyond_numbers(made, trial, sum(isinstance(one, CallTool) for one in effects))


def models_asked(made: Varied, effect: Effect) -> int:
    """Return how many models an effect asks at most; an agent that a tool is, is a tool."""
    match effect:
        case CallModel():
            return 1
        case StartRun(agent=agent, key=key) if not KEY.fullmatch(key):
            return AGENT_CALLS if agent in made.agents else inner_calls(made.graph, agent)
        case _:
            return 0


def inner_calls(graph: NodeGraph[None], name: str) -> int:
    """Return how many models the graph of that name asks, which stands in this one as a node."""
    promised = [one for node in graph.nodes.values() if (one := contract_of(node)) is not None]
    inner = next(child.graph for one in promised for child in one.children if child.name == name)
    assert inner is not None
    return bound(inner).model_calls or 0


def beyond_numbers(made: Varied, trial: Trial[None], tools: int) -> Iterator[str]:
    """Yield what a run has spent beyond its bound, given the largest of its replies."""
    usages = [one.reply.usage for one in trial.events if isinstance(one, ModelReplied)]
    known = bound(
        made.graph,
        agents=made.agents,
        budget=made.subject.setup.budget,
        context_window=max([SPENT.usage.input_tokens, *(one.input_tokens for one in usages)]),
        max_tokens=max([SPENT.usage.output_tokens, *(one.output_tokens for one in usages)]),
    )
    if known.tool_calls is not None and tools > known.tool_calls:
        yield f"{tools} tools run, proven are {known.tool_calls}"
    tokens = sum(one.total_tokens for one in usages)
    if known.tokens is not None and tokens > known.tokens:
        yield f"{tokens} tokens are used, proven are {known.tokens}"


@settings(max_examples=sized(20), deadline=None)
@given(seeds)
@example(841)  # Its branches are abandoned, and then a function joins them.
@example(995_531_019)  # Stopped after a step, and led on to somebody who rejects.
def test_no_monitor_fires_in_a_graph_that_is_put_together_safely(seed: int) -> None:
    """Whatever kinds of nodes it is made of: it is proven, and it keeps what is proven."""
    rng = seeded(seed)
    made = varied(rng)

    assert [] == lacking(check(made.graph))
    assert_safe(made, rng, seed)


@settings(max_examples=sized(15), deadline=None)
@given(seeds)
@example(1_077_956)  # Stopped, led on, and then a child failed.
@example(3_203_206_805)  # A plan that cannot be read opens no turn for a model.
@example(4_210_381_974)  # Stopped after a step, led on, and then there was no room.
def test_no_monitor_fires_in_any_graph_that_the_checker_lets_pass(seed: int) -> None:
    """Lines that lead anywhere find what a grammar of safe graphs keeps from it."""
    rng = seeded(seed)
    try:
        made = varied(rng, wild=True)
    except GraphError:
        return  # It could not be built, so nobody can run it.
    if lacking(check(made.graph)):
        return
    assert_safe(made, rng, seed)


def test_the_graphs_are_made_of_every_kind_of_node() -> None:
    """What is never generated is never tested."""
    graphs = [varied(seeded(seed)).graph for seed in range(60)]

    assert KINDS == {type(node).__name__ for graph in graphs for node in graph.nodes.values()}
    assert any(sum(n.kind == "gate" for n in one.nodes.values()) > 1 for one in graphs)
    assert any(getattr(n, "rules", ()) for one in graphs for n in one.nodes.values())


def test_a_turn_that_was_handed_in_is_none_that_a_stop_check_counts() -> None:
    """It goes on once before any turn is opened; that a node is visited once is not proven."""
    topology = standard(max_steps=1)

    report = check(graph_of(topology), at_most_once("node:prepare"))

    assert "GL12" not in report.proven


def test_an_agent_that_stands_in_for_several_of_itself_is_counted() -> None:
    """What is asked for by two ways of speaking of an agent is asked twice."""
    pair = fallback(parallel("a", name="several"), Child("a", "one"), name="pair")
    agent = Bound("a", 2, 0, 0, 0.0, {}, (), {})

    assert 4 == bound(NodeGraph("g", pair, {pair: {...: END}}), agents={"a": agent}).model_calls
