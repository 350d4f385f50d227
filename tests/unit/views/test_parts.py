"""Stream parts: names and order (the whole is in tests/property/test_contract_streams.py)."""

from __future__ import annotations

from typing import get_args

from graphloop.drivers.ports import Approval
from graphloop.drivers.sim import Simulation
from graphloop.events import CallCheck
from graphloop.graph import END, Edges, Graph
from graphloop.loop import standard_edges
from graphloop.nodes import Append, Critique, Execute, PrepareStep, StopCheck
from graphloop.outcomes import Accepted, Final, Rejected
from graphloop.replay import replay, replay_steps
from graphloop.tool_outcome import ToolOutcome
from graphloop.values import FinishReason
from graphloop.views.parts import Cost, Part, PartView, ToolApprovalRequest, ToolResultPart
from tests.strategies import Adversary, call, loop, reply


def parts_of(simulation: Simulation[None], graph: Graph[None] | None = None) -> list[Part]:
    """Return the parts of a simulated run."""
    table = graph or loop()
    view = PartView(table)
    return [part for taken in replay_steps(table, simulation.events) for part in view.see(taken)]


def kinds(parts: list[Part]) -> list[str]:
    """Return the parts' names."""
    return [part.type for part in parts]


def test_the_parts_of_a_turn_come_in_the_order_of_the_contract() -> None:
    """Finish and cost before the calls, results as they come, then the next turn."""
    simulation = Adversary((reply("done"), reply(call()))).run(loop())

    assert [
        "run-start",
        "step-start",
        "step-finish",
        "cost",
        "tool-call",
        "tool-state",
        "tool-result",
        "tool-state",
        "step-start",
    ] == kinds(parts_of(simulation))[:9]


def test_a_refused_call_never_gets_to_executing() -> None:
    """A denial is marked as one; an unknown tool is an error."""
    adversary = Adversary(
        (reply("done"), reply(call(), call("nowhere"))),
        checks=(CallCheck(needs_approval=True),),
        decisions=(Approval(False),),
    )

    parts = parts_of(adversary.run(loop()))

    states = [(one.state, one.denied) for one in parts if one.type == "tool-state"]
    assert [("awaiting-approval", False), ("error", True), ("error", False)] == states
    (asked,) = [one for one in parts if isinstance(one, ToolApprovalRequest)]
    assert "c0.0" == asked.key


def test_results_are_told_as_each_tool_ends() -> None:
    """Not after the whole batch; the history keeps the request's order all the same."""
    adversary = Adversary((reply("done"), reply(*(call() for _ in range(8)))))
    graph = loop(concurrency=8)
    orders = {
        tuple(
            one.result.key
            for one in parts_of(adversary.run(graph, seed=seed), graph)
            if isinstance(one, ToolResultPart)
        )[:8]
        for seed in range(5)
    }

    assert len(orders) > 1
    assert {frozenset(f"c0.{at}" for at in range(8))} == {frozenset(order) for order in orders}


def test_a_turn_that_is_asked_again_is_said_to_be_void() -> None:
    """What it streamed so far must be thrown away, and its calls were never announced."""
    cut = reply(call(arguments="{"), finish=FinishReason.LENGTH)

    parts = parts_of(Adversary((reply("done"), cut)).run(loop()))

    assert ["run-start", "step-start", "step-retry", "cost", "step-finish", "cost"] == kinds(parts)


def test_costs_add_up() -> None:
    """Each model call, and the run so far."""
    simulation = Adversary((reply("done"), reply(call()))).run(loop())

    costs = [one for one in parts_of(simulation) if isinstance(one, Cost)]

    assert [0, 1] == [one.step_index for one in costs][:2]
    assert [0.0, 0.0] == [one.cost_usd for one in costs][:2]


def test_an_aborted_batch_is_answered_in_the_stream_too() -> None:
    """Nobody is left waiting for a result."""
    adversary = Adversary((reply(call(), call()),))

    parts = parts_of(adversary.run(loop(), abort_after=3))

    results = [one.result.status for one in parts if isinstance(one, ToolResultPart)]
    assert ["not_run", "not_run"] == results


def critics() -> Graph[None]:
    """Return a loop with a judge behind it."""
    prepare, stop, judge = PrepareStep(), StopCheck(max_steps=3), Critique("good?")
    edges: Edges[None] = dict(standard_edges(prepare, Execute(), stop))
    append = next(node for node in edges if isinstance(node, Append))
    edges = {**edges, append: {**edges[append], Final: judge}}
    edges = {**edges, judge: {Accepted: END, Rejected: append, ...: END}}
    return Graph("critics", prepare, edges)


def test_a_critic_is_heard_by_nobody() -> None:
    """Its model call is no turn of the run, though it is paid for."""
    graph = critics()
    simulation = Adversary((reply("draft"),)).run(graph)

    parts = parts_of(simulation, graph)

    assert 6 == simulation.run.spent.model_calls
    assert 3 == kinds(parts).count("step-finish") == kinds(parts).count("step-start")


def test_deltas_are_shown_only_while_the_run_s_own_model_talks() -> None:
    """A judge that thinks aloud would be taken for the answer."""
    graph = critics()
    simulation = Adversary((reply("draft"),)).run(graph)
    view = PartView(graph)

    shown = [view.shows_deltas(taken.run) for taken in replay_steps(graph, simulation.events)]

    assert [True, False] * 3 + [False] == shown


def test_a_view_taken_up_in_the_middle_tells_the_rest() -> None:
    """From wherever a run is resumed, the parts go on where they stopped."""
    adversary = Adversary(
        (reply("done"), reply(call(), call()), reply(call("write"))),
        (ToolOutcome("a", "ok"), ToolOutcome("b", "error")),
        (CallCheck(), CallCheck(needs_approval=True)),
    )
    events = adversary.run(loop()).events
    whole = PartView(loop())
    told = [list(whole.see(taken)) for taken in replay_steps(loop(), events)]

    for cut in range(1, len(events)):
        view = PartView(loop(), replay(loop(), events[:cut]))
        rest = list(replay_steps(loop(), events))[cut:]
        assert told[cut:] == [list(view.see(taken)) for taken in rest]


def test_every_part_has_a_name_of_its_own() -> None:
    """Consumers tell parts apart by it."""
    names = [kind.type for kind in get_args(Part)]

    assert len(names) == len(set(names))
