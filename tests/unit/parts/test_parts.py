"""Stream parts: names and order (the whole is in tests/property/test_contract_streams.py)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphloop.conversation.compaction import Compaction
from graphloop.conversation.tokens import estimate
from graphloop.events import AnswerChecked, BranchesJoined, CallCheck, Changes, Resumed
from graphloop.graph import END, Edges, NodeGraph
from graphloop.loop import Standard, standard_edges
from graphloop.node_protocol import Node
from graphloop.nodes import (
    AnswerCheck,
    Append,
    Child,
    Compact,
    Critique,
    Gate,
    PrepareStep,
    StopCheck,
    Verify,
)
from graphloop.nodes.model_call import ModelCall
from graphloop.nodes.retrying import Retrying
from graphloop.outcomes import Accepted, Answered, Final, Outcome, Rejected
from graphloop.own_nodes.compose import parallel
from graphloop.parts.kinds import (
    BudgetExceeded,
    CompactionPart,
    Cost,
    MessageInjected,
    Part,
    RunStart,
    StepFinish,
    StepStart,
    ToolApprovalRequest,
    ToolCallPart,
    ToolResultPart,
    ToolState,
    VerifyPart,
    finish_of,
)
from graphloop.parts.parts import PartView
from graphloop.policy.approvals import Approval
from graphloop.providers import Delta, TextDelta
from graphloop.replay import replay_steps
from graphloop.run import EndReason
from graphloop.spending import Budget
from graphloop.step import Step, step
from graphloop.testing.sim import Simulation
from graphloop.values import FinishReason, Message, ToolResult, Usage, UserMessage, evolve
from tests.strategies import QUESTION, SETUP, Adversary, adversaries, call, loop, reply, spec, wrong
from tests.strategies import said as heard
from tests.unit.parts.walks import (
    Next,
    answered,
    checked,
    child,
    decided,
    failed,
    kinds,
    parts,
    queued,
    returned,
    said,
    steered,
    told,
    walk,
)


def parts_of(simulation: Simulation[None], graph: NodeGraph[None] | None = None) -> list[Part]:
    """Return the parts of a simulated run."""
    table = graph or loop()
    view = PartView(table)
    return [part for taken in replay_steps(table, simulation.events) for part in view.see(taken)]


def test_the_parts_of_a_turn_come_in_the_order_of_the_contract() -> None:
    """Finish and cost before the calls, results as they come, then the next turn."""
    simulation = Adversary((reply("done"), reply(call()))).run(loop())

    order = (
        "run-start step-start step-finish cost tool-call tool-state tool-result "
        "tool-state step-start"
    )
    assert order == " ".join(kinds(parts_of(simulation))[:9])


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


@pytest.mark.parametrize(
    ("after", "expected"), [(3, ["not_run", "not_run"]), (5, ["ok", "unknown"])]
)
def test_an_aborted_batch_is_answered_in_the_stream_too(after: int, expected: list[str]) -> None:
    """Nobody is left waiting for a result, whether a call had begun or not."""
    adversary = Adversary((reply(call(), call()),))

    parts = parts_of(adversary.run(loop(), abort_after=after))

    results = [one.result.status for one in parts if isinstance(one, ToolResultPart)]
    assert expected == sorted(results)


def critics() -> NodeGraph[None]:
    """Return a loop with a judge behind it."""
    nodes, judge = Standard(stop=StopCheck(max_steps=3)), Critique("good?")
    edges: Edges[None] = dict(standard_edges(nodes))
    append = next(node for node in edges if isinstance(node, Append))
    edges = {**edges, append: {**edges[append], Final: judge}}
    edges = {**edges, judge: {Accepted: END, Rejected: append, ...: END}}
    return NodeGraph("critics", nodes.prepare, edges)


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
    view, shown = PartView(graph), list[bool]()

    for taken in replay_steps(graph, simulation.events):
        view.see(taken)
        shown.append(bool(view.show(TextDelta("aloud"))))

    assert [True, False] * 3 + [False] == shown


READ, WRITE = call("read", "a"), call("write", "b")
OK = CallCheck()
ATTENDED = evolve(SETUP, attended=True)


def test_calls_that_were_handed_in_are_settled_before_the_first_turn() -> None:
    """A conversation that was left in the middle goes on where it was, and says so."""
    given = ToolResult("c7.0", "a", "read", "known")
    messages = (UserMessage("go"), heard(READ, WRITE), given)

    shown = parts(
        loop(), walk(loop(), checked(OK), returned("new"), said("done"), messages=messages)
    )

    order = "run-start tool-state tool-result tool-state step-start step-finish cost"
    assert order == " ".join(kinds(shown))
    (settled,) = [one for one in shown if isinstance(one, ToolResultPart)]
    assert ("c-1.1", "new", "resume") == (settled.result.key, settled.result.content, settled.phase)


WINDOW = Compaction(1_000, keep_recent_turns=1, layers=("prune_tool_results",))
LONG = "x" * 4_000


def test_a_conversation_that_is_made_shorter_first_is_told_within_its_turn() -> None:
    """The sizes are those of the whole conversation, this step's own messages included."""
    nodes = Standard(PrepareStep(compaction=WINDOW), Compact(compaction=WINDOW))
    graph = loop(nodes)
    before = (*QUESTION, heard(WRITE), ToolResult("", "b", "write", "x" * 3_000))
    steps = walk(graph, said(READ, tokens=900), checked(OK), returned("y" * 1_000), messages=before)

    shown = told(graph, steps)[-1]

    assert ["tool-result", "tool-state", "step-start", "compaction"] == kinds(shown)
    compaction = shown[-1]
    assert isinstance(compaction, CompactionPart)
    run = steps[-1].run
    whole = (*before, *run.record.added)
    assert 1 == compaction.step_index
    assert (estimate(whole), len(whole)) == (compaction.tokens_before, compaction.messages_before)
    assert (estimate(run.messages), len(run.messages)) == (
        compaction.tokens_after,
        compaction.messages_after,
    )
    assert compaction.tokens_after < compaction.tokens_before


def shortening() -> NodeGraph[None]:
    """Return a loop whose compaction is a function of the user's."""
    return loop(Standard(compact=Compact(compaction=WINDOW, callback="shorten")))


@pytest.mark.parametrize(
    "full", [said("half", finish=FinishReason.CONTEXT_WINDOW), failed("ContextOverflow")]
)
def test_a_turn_that_found_no_room_is_asked_again_under_the_same_number(full: Next) -> None:
    """What it has streamed is void; turns count without gaps."""
    shortened = answered(Changes(messages=(UserMessage("go"),)))
    steps = walk(
        shortening(), full, shortened, said("done"), messages=(UserMessage(LONG), *QUESTION)
    )

    shown = [one for one in parts(shortening(), steps) if not isinstance(one, Cost)]

    assert ["run-start", "step-start", "step-retry", "compaction", "step-finish"] == kinds(shown)
    assert [0] * 4 == [wrong(one).step_index for one in shown[1:]]
    assert FinishReason.CONTEXT_WINDOW is wrong(shown[2]).reason
    assert (2, 1) == (wrong(shown[3]).messages_before, wrong(shown[3]).messages_after)


def test_messages_from_the_queues_are_told_where_the_model_reads_them() -> None:
    """A message that was sent is not yet one that was read."""
    steps = walk(
        loop(),
        queued("also this"),
        queued("and then", follow_up=True),
        said("one"),
        said("two"),
        said("three"),
    )

    shown = parts(loop(), steps)

    order = (
        "run-start step-start step-finish cost step-start message-injected "
        "step-finish cost step-start message-injected step-finish cost"
    )
    assert order == " ".join(kinds(shown))
    injected = [one for one in shown if isinstance(one, MessageInjected)]
    assert [("also this", "steering"), ("and then", "follow_up")] == [
        (wrong(one.message).content, one.origin) for one in injected
    ]


def test_what_a_caller_says_is_told_once_it_stands_behind_the_turn() -> None:
    """A turn that a caller has looked at is told once, results before the words."""
    note = UserMessage("be brief")
    steps = walk(
        loop(), said(READ), steered(note), checked(OK), returned(), steered(), setup=ATTENDED
    )

    shown = parts(loop(), steps)

    order = (
        "run-start step-start step-finish cost tool-call tool-state tool-result "
        "tool-state message-injected step-start"
    )
    assert order == " ".join(kinds(shown))
    assert MessageInjected(note, "caller") == shown[-2]


def test_a_result_that_the_caller_overrides_is_told_again() -> None:
    """The last one of a key is what the model reads."""
    other = ToolResult("c0.0", "a", "read", "better")
    steps = walk(
        loop(),
        said(READ),
        steered(),
        checked(OK),
        returned(),
        steered(results=(other,)),
        setup=ATTENDED,
    )

    shown = parts(loop(), steps)

    results = [one.result for one in shown if isinstance(one, ToolResultPart)]
    assert ["fine", "better"] == [one.content for one in results]
    assert steps[-1].run.record.steps[-1].tool_results == (results[-1],)


def test_the_calls_of_a_turn_that_the_caller_replaces_are_dropped() -> None:
    """They were announced and never run: whoever shows them must stop waiting."""
    instead = (UserMessage("something else"),)
    steps = walk(loop(), said(READ, WRITE), steered(messages=instead), setup=ATTENDED)

    shown = told(loop(), steps)[-1]

    assert MessageInjected(instead[0], "caller") == shown[0]
    assert [("c0.0", "dropped"), ("c0.1", "dropped")] == [
        (one.key, one.state) for one in shown if isinstance(one, ToolState)
    ]
    assert StepStart(1) == shown[-1]


def test_calls_that_the_caller_puts_in_place_of_others_are_announced() -> None:
    """The same key, another call: what runs is what was told last."""
    other = call("write", "z")
    instead = (*QUESTION, heard(READ, other))
    steps = walk(
        loop(), said(READ, READ), steered(messages=instead), checked(OK, OK), setup=ATTENDED
    )

    shown = told(loop(), steps)

    assert [("c0.1", "write")] == [
        (one.key, one.tool_name) for one in shown[2] if isinstance(one, ToolCallPart)
    ]
    assert [("c0.0", "read"), ("c0.1", "write")] == [
        (wrong(one).key, wrong(one).tool_name) for one in shown[3]
    ]


def test_a_call_that_is_held_is_asked_about_after_its_siblings_have_run() -> None:
    """And it is told once that it waits, and once that it runs."""
    graph = loop(Standard(gate=Gate(hold=False)))
    steps = walk(
        graph,
        said(READ, WRITE),
        checked(CallCheck(needs_approval=True), OK),
        returned("b"),
        decided(approved=True),
        returned("a"),
    )

    shown = parts(graph, steps)

    assert [
        ("c0.1", "executing"),
        ("c0.1", "complete"),
        ("c0.0", "awaiting-approval"),
        ("c0.0", "executing"),
        ("c0.0", "complete"),
    ] == [(one.key, one.state) for one in shown if isinstance(one, ToolState)]
    assert StepStart(1) == shown[-1]


def test_a_question_tells_until_when_and_whether_it_is_asked_once_more() -> None:
    """A call that was approved and may have run is another question than a first one."""
    setup = evolve(SETUP, approval_ttl_s=60.0)
    asks = CallCheck(needs_approval=True)
    steps = walk(
        loop(),
        said(READ),
        checked(asks),
        decided(approved=True),
        returned("?", "unknown"),
        decided(approved=False),
        setup=setup,
    )

    shown = parts(loop(), steps)

    questions = [one for one in shown if isinstance(one, ToolApprovalRequest)]
    assert [(61.0, False), (61.0, True)] == [(one.expires_at, one.unknown) for one in questions]
    states = [one for one in shown if isinstance(one, ToolState)]
    assert ("error", False, True) == (states[-1].state, states[-1].denied, states[-1].unknown)


def test_every_judgement_of_the_answer_is_told() -> None:
    """Who reads along must know why there is another turn."""
    graph = loop(Standard(verify=Verify((AnswerCheck("tone", 1),))))
    rude = answered(AnswerChecked(accepted=False, feedback="too rude"))
    steps = walk(
        graph, said("no"), rude, said("no, thanks"), answered(AnswerChecked(accepted=True))
    )

    shown = [one for one in parts(graph, steps) if isinstance(one, VerifyPart)]

    assert [VerifyPart("tone", 1, False, "too rude"), VerifyPart("tone", 2, True, "")] == shown


def test_every_limit_of_the_budget_that_ended_the_run_is_told_last() -> None:
    """Each with what was set and how far the run came."""
    setup = evolve(SETUP, budget=Budget(tokens=10, usd=0.5, seconds=99.0))
    steps = walk(loop(), said(READ), checked(OK), returned(), setup=setup)

    shown = parts(loop(), steps)

    assert [
        BudgetExceeded("budget.tokens", 10, 15),
        BudgetExceeded("budget.usd", 0.5, 0.5),
    ] == shown[-2:]


def test_the_answer_of_an_agent_in_the_model_s_place_is_a_turn() -> None:
    """Its text is the run's, though no model of the run's has spoken."""
    node, append = Child("writer"), Append()
    edges: Edges[None] = {node: {Answered: append, ...: END}, append: {...: END}}
    graph: NodeGraph[None] = NodeGraph("g", node, edges)

    shown = parts(graph, walk(graph, child("a poem")))

    assert ["run-start", "step-start", "text-delta", "step-finish", "cost"] == kinds(shown)
    assert TextDelta("a poem") == shown[2]
    assert Usage(7, 3) == wrong(shown[3]).usage


@pytest.mark.parametrize("callback", ["", "mine"])
def test_agents_side_by_side_give_one_answer(callback: str) -> None:
    """Each costs what it costs; what is shown is what the run keeps."""
    node, append = parallel("a", "b", callback=callback), Append()
    edges: Edges[None] = {node: {Answered: append, ...: END}, append: {...: END}}
    graph: NodeGraph[None] = NodeGraph("g", node, edges)
    last = [answered(BranchesJoined("one and two"))] if callback else []

    steps = walk(graph, child("one"), child("two"), *last)
    shown = parts(graph, steps)

    assert ["run-start", "step-start", "cost"] == kinds(shown)[:3]
    ends = (
        ["cost", "text-delta", "step-finish"] if callback else ["text-delta", "step-finish", "cost"]
    )
    assert ends == kinds(shown)[3:]
    (text,) = [one.text for one in shown if isinstance(one, TextDelta)]
    assert steps[-1].run.record.steps[-1].text == text


AGENTS = evolve(SETUP, tools=(*SETUP.tools, spec("helper", "agent")))
HELPED = walk(loop(), said(call("helper")), checked(OK), setup=AGENTS)


def test_a_call_of_an_agent_runs_like_any_other() -> None:
    """Its state is the call's; what happens in it is told beside."""
    run = HELPED[-1].run
    steps = [*HELPED, step(loop(), run, child("42")(run))]

    states = [one for one in parts(loop(), steps) if isinstance(one, ToolState)]

    assert [ToolState("c0.0", "helper", "executing"), ToolState("c0.0", "helper", "complete")] == (
        states
    )


@dataclass(frozen=True)
class Below:
    """What is seen in a child."""

    key: str
    agent: str
    graph: NodeGraph[None]
    seen: Step[None] | Delta | Below


def test_what_a_child_shows_is_in_one_wrapper_at_any_depth() -> None:
    """A finish of a child, unwrapped, would end the stream of its parent."""
    view = PartView(loop())
    steps = walk(loop(), said(READ), checked(CallCheck(needs_approval=True)), run_id="r/c0.0/c3.1")

    shown = [
        part
        for taken in steps
        for part in view.see_child("c0.0", "one", loop(), Below("c3.1", "two", loop(), taken))
    ]

    assert {("c0.0", "c3.1")} == {one.path for one in shown}
    assert {("one", "two")} == {one.agents for one in shown}
    inner = parts(loop(), steps)
    asked_for = inner[-1]
    assert isinstance(asked_for, ToolApprovalRequest)
    assert [*inner[:-1], evolve(asked_for, agents=("one", "two"))] == [one.part for one in shown]


def test_a_child_that_ends_shows_its_finish_and_may_come_back_anew() -> None:
    """Exactly one, in its wrapper, whatever it ended by."""
    view = PartView(loop())
    steps = walk(loop(), said("42"))

    for _ in range(2):
        shown = [
            one.part for taken in steps for one in view.see_child("c0.0", "one", loop(), taken)
        ]
        assert [*parts(loop(), steps), finish_of(steps[-1].run)] == shown


def test_a_child_that_is_taken_up_again_goes_on_in_the_middle() -> None:
    """Its turns count on, and what was told before is not told twice."""
    steps = walk(loop(), said(READ), checked(OK), lambda _: Resumed(2.0), returned(), said("42"))
    view = PartView(loop())

    shown = [one.part for taken in steps[3:] for one in view.see_child("k", "one", loop(), taken)]

    rest = [part for some in told(loop(), steps)[4:] for part in some]
    assert [RunStart("r"), *rest, finish_of(steps[-1].run)] == shown


def test_deltas_of_a_child_are_shown_only_while_its_own_model_talks() -> None:
    """A summary or a judge of a child's is nobody's answer either."""
    graph, view, delta = critics(), PartView(loop()), TextDelta("hm")
    heard_before = list(view.see_child("k", "one", graph, delta))
    shown: list[int] = []
    for taken in walk(graph, said("draft"), said("I wonder")):
        list(view.see_child("k", "one", graph, taken))
        shown.append(len(list(view.see_child("k", "one", graph, delta))))

    assert not heard_before
    assert [1, 0, 1] == shown


def test_a_finish_tells_the_cost_only_if_all_of_it_is_known() -> None:
    """A sum that leaves calls out looks like a price."""
    run = walk(loop(), said("done"))[-1].run
    unpriced = evolve(run, spent=evolve(run.spent, unpriced_calls=1))

    assert 0.5 == finish_of(run).cost_usd
    assert finish_of(unpriced).cost_usd is None
    assert EndReason.PARKED is finish_of(walk(loop())[-1].run).end_reason


NOBODY: tuple[Message, ...] = (UserMessage("go"), heard(call("nowhere")))
OTHERS = loop(Standard(model=ModelCall(fallbacks=("other",))))
TRIED: Node[None, Outcome] = Retrying(Child("writer"), 1)


@pytest.mark.parametrize(
    ("graph", "says", "messages", "order"),
    [
        (loop(), [], NOBODY, "run-start tool-result tool-state step-start"),
        (
            OTHERS,
            [failed("Unavailable", retryable=True), said("done")],
            QUESTION,
            "run-start step-start step-finish cost",
        ),
        (loop(), [failed("ContextOverflow", content_seen=True)], QUESTION, "run-start step-start"),
        (
            shortening(),
            [said("half", finish=FinishReason.CONTEXT_WINDOW), answered(Changes())],
            QUESTION,
            "run-start step-start step-retry cost",
        ),
        (
            NodeGraph("g", TRIED, {TRIED: {...: END}}),
            [child("no", "error")],
            QUESTION,
            "run-start step-start step-start",
        ),
    ],
    ids=["handed in", "unseen attempt", "overflow", "as long as before", "tried again"],
)
def test_nothing_is_told_that_did_not_come_to_be(
    graph: NodeGraph[None], says: list[Next], messages: tuple[Message, ...], order: str
) -> None:
    """Whoever shows deltas must know when to take them back, and only then."""
    shown = parts(graph, walk(graph, *says, messages=messages))

    assert order == " ".join(kinds(shown))


@settings(max_examples=30)
@given(adversaries, st.integers(0, 3), st.none() | st.integers(1, 12))
def test_turns_count_without_gaps_and_every_call_gets_a_result(
    adversary: Adversary, seed: int, abort_after: int | None
) -> None:
    """Whatever the world does: the order of the contract, on every way out."""
    simulation = adversary.run(loop(), seed=seed, abort_after=abort_after)

    shown = parts_of(simulation)

    starts = [one.step_index for one in shown if isinstance(one, StepStart)]
    finishes = [one.step_index for one in shown if isinstance(one, StepFinish)]
    assert list(range(len(starts))) == starts
    assert starts[: len(finishes)] == finishes
    called = [one.key for one in shown if isinstance(one, ToolCallPart)]
    results = [one.result.key for one in shown if isinstance(one, ToolResultPart)]
    assert len(set(called)) == len(called)
    assert len(set(results)) == len(results)
    assert set(results) <= set(called)
    if simulation.run.ended:
        assert set(results) == set(called)


@settings(max_examples=30)
@given(adversaries, st.integers(0, 3), st.data())
def test_a_view_may_be_taken_up_anywhere(
    adversary: Adversary, seed: int, data: st.DataObject
) -> None:
    """What a stream tells must not depend on where a process died."""
    steps = list(replay_steps(loop(), adversary.run(loop(), seed=seed).events))
    cut = data.draw(st.integers(1, len(steps)))
    whole = PartView(loop())
    every = [list(whole.see(taken)) for taken in steps]

    later = PartView(loop(), steps[cut - 1].run)

    assert every[cut:] == [list(later.see(taken)) for taken in steps[cut:]]


def test_calls_that_have_run_are_not_dropped_with_their_turn() -> None:
    """They were told to be complete, and they are: only the model does not read of them."""
    instead = (UserMessage("something else"),)
    steps = walk(
        loop(),
        said(READ),
        steered(),
        checked(OK),
        returned(),
        steered(messages=instead),
        setup=ATTENDED,
    )

    assert ["message-injected", "step-start"] == kinds(told(loop(), steps)[-1])
