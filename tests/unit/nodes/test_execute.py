"""execute: only what was let through, a few at a time, each answer in its own place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.effects import AskHuman, AwaitCaller, CallTool, Effect, StartRun
from graphloop.errors import ConfigError
from graphloop.events import (
    CallCheck,
    Cancelled,
    ChildEnded,
    Decided,
    EffectFailed,
    Event,
    Failure,
    Setup,
    Steered,
    ToolReturned,
)
from graphloop.loop import Standard
from graphloop.node_protocol import Leave, Reaction, Wait
from graphloop.nodes.execute import Execute, ExecuteOutcome
from graphloop.nodes.gate import Gate
from graphloop.outcomes import Aborted, ApprovalNeeded, Done
from graphloop.policy.policy import Rule
from graphloop.replay import replay_steps
from graphloop.run import EndReason, Run, evolve
from graphloop.spending import Budget, Spent
from graphloop.testing.sim import ChildAnswer
from graphloop.tools.outcome import ToolOutcome
from graphloop.turn import CallVerdict
from graphloop.values import (
    AssistantMessage,
    ToolResult,
    ToolSpec,
    ToolSpecs,
    Usage,
    UserMessage,
    call_key,
)
from tests.strategies import SETUP, Adversary, call, loop, replied, reply, spec

RUN = CallVerdict("run")
APPROVED = CallVerdict("run", asked=True)
FREE = Budget()
NOTHING = Spent()


def wishes(reaction: object) -> list[tuple[int, str]]:
    """Return the id and key of every tool that is asked for."""
    assert isinstance(reaction, Wait)
    effects = [one for one in reaction.effects if isinstance(one, CallTool)]
    assert len(effects) == len(reaction.effects)
    return [(one.id, one.key) for one in effects]


def waiting(reaction: Wait[None]) -> Run[None]:
    """Return the run as the kernel would keep it: with the wishes pending."""
    pending = dict(reaction.run.pending) | {one.id: one for one in reaction.effects}
    count = reaction.run.next_effect + len(reaction.effects)
    return evolve(reaction.run, pending=pending, next_effect=count)


def answered(
    node: Execute, run: Run[None], effect_id: int, text: str
) -> Reaction[None, ExecuteOutcome]:
    """Return the reaction to a tool's answer."""
    pending = dict(run.pending)
    effect = pending.pop(effect_id)
    event = ToolReturned(1.0, effect_id, text)
    return node.on(evolve(run, pending=pending), event, effect)


@pytest.mark.parametrize("concurrency", [0, -1, True, 1.5])
def test_a_cap_below_one_is_refused(concurrency: int) -> None:
    """Nothing could ever run."""
    with pytest.raises(ConfigError, match="max_tool_concurrency"):
        Execute(max_tool_concurrency=concurrency)


def test_each_refused_call_is_answered_by_its_verdict() -> None:
    """The model reads why, in the place of the result."""
    verdicts = (
        CallVerdict("deny", "no"),
        CallVerdict("invalid", "bad"),
        CallVerdict("unknown", "which?"),
        None,
    )
    run = replied(reply(*(call() for _ in verdicts)), *verdicts)

    reaction = Execute().enter(run)

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Done)
    results = [one for one in reaction.run.turn.results if one is not None]
    assert ["denied", "invalid", "unknown_tool", "denied"] == [one.status for one in results]
    assert ["c0.0", "c0.1", "c0.2", "c0.3"] == [one.key for one in results]


def test_without_a_gate_nothing_runs() -> None:
    """A topology that forgot its gate fails closed."""
    reaction = Execute().enter(replied(reply(call(), call())))

    assert isinstance(reaction, Leave)
    assert ["denied", "denied"] == [one.status for one in reaction.run.turn.results if one]


def test_no_more_calls_are_asked_for_than_there_is_room() -> None:
    """A place that becomes free is taken by the next call."""
    node = Execute(max_tool_concurrency=2)
    first = node.enter(replied(reply(*[call()] * 5), *[RUN] * 5))
    assert isinstance(first, Wait)
    assert [(1, "c0.0"), (2, "c0.1")] == wishes(first)

    second = answered(node, waiting(first), 2, "b")

    assert [(3, "c0.2")] == wishes(second)


def test_answers_take_the_place_of_their_call() -> None:
    """Whoever is fastest, the order is the request's."""
    node = Execute()
    first = node.enter(replied(reply(call(), call()), RUN, RUN))
    assert isinstance(first, Wait)
    second = answered(node, waiting(first), 2, "b")
    assert isinstance(second, Wait)

    third = answered(node, waiting(second), 1, "a")

    assert isinstance(third, Leave)
    assert ["a", "b"] == [one.text for one in third.run.turn.results if one]


def test_client_tools_hold_the_batch_until_they_are_answered() -> None:
    """A run that parks has done nothing it could regret."""
    node = Execute()
    first = node.enter(replied(reply(call(), call("client")), RUN, RUN))
    assert isinstance(first, Wait)
    assert [(1, "c0.1")] == wishes(first)

    second = answered(node, waiting(first), 1, "theirs")

    assert [(2, "c0.0")] == wishes(second)


def test_while_one_client_tool_waits_no_other_tool_runs() -> None:
    """Half of the answers from outside are not all of them."""
    node = Execute()
    first = node.enter(replied(reply(call(), call("client"), call("client")), RUN, RUN, RUN))
    assert isinstance(first, Wait)

    second = answered(node, waiting(first), 1, "theirs")

    assert [] == wishes(second)


def test_edited_arguments_are_what_runs() -> None:
    """The human approved these, not the model's."""
    verdict = CallVerdict("run", "", '{"x": 2}')

    reaction = Execute().enter(replied(reply(call(arguments='{"x": 1}')), verdict))

    assert isinstance(reaction, Wait)
    (effect,) = reaction.effects
    assert isinstance(effect, CallTool)
    assert '{"x": 2}' == effect.call.arguments


def test_an_abort_is_passed_on() -> None:
    """Nothing more is asked for."""
    reaction = Execute().on(replied(reply(call()), RUN), Cancelled(1.0), None)

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Aborted)


def batch(
    tools: Sequence[ToolSpec],
    *names: str,
    verdicts: Sequence[CallVerdict] = (),
    budget: Budget = FREE,
    spent: Spent = NOTHING,
    setup: Setup = SETUP,
) -> Run[None]:
    """Return a run whose turn calls these tools, each let through unless told otherwise."""
    run = replied(reply(*(call(name) for name in names)), *(verdicts or (RUN,) * len(names)))
    return evolve(
        run,
        turn=evolve(run.turn, tools=ToolSpecs(tools)),
        setup=evolve(setup, budget=budget),
        spent=spent,
    )


def told(
    node: Execute, reaction: Reaction[None, ExecuteOutcome], event: Event
) -> Reaction[None, ExecuteOutcome]:
    """Return the reaction to an event that answers one of the wishes."""
    assert isinstance(reaction, Wait)
    run = waiting(reaction)
    pending = dict(run.pending)
    answers: int = getattr(event, "effect", 0)
    effect = pending.pop(answers)
    return node.on(evolve(run, pending=pending), event, effect)


def wished(reaction: Reaction[None, ExecuteOutcome]) -> tuple[Effect, ...]:
    """Return the wishes."""
    assert isinstance(reaction, Wait)
    return reaction.effects


def keys(reaction: Reaction[None, ExecuteOutcome]) -> list[str]:
    """Return the keys of the calls that are asked for."""
    return [one.key for one in wished(reaction) if isinstance(one, CallTool | StartRun)]


def statuses(reaction: Reaction[None, ExecuteOutcome]) -> list[str | None]:
    """Return what became of the calls."""
    return [None if one is None else one.status for one in reaction.run.turn.results]


LOCKED = (
    spec("read", lock="disk"),
    spec("write", lock="disk"),
    spec("other"),
    spec("net", lock="n"),
)
AGENTS = (spec("ask", "agent"), spec("read"))


def test_calls_with_one_lock_run_one_after_the_other() -> None:
    """And nothing else waits for them."""
    node = Execute()

    first = node.enter(batch(LOCKED, "read", "write", "other", "read", "net"))
    second = told(node, first, ToolReturned(1.0, 1, "a"))
    third = told(node, second, ToolReturned(1.0, 4, "b"))

    assert ["c0.0", "c0.2", "c0.4"] == keys(first)
    assert ["c0.1"] == keys(second)
    assert ["c0.3"] == keys(third)


CLIENTS = (spec("client", "client"), spec("read"))


def test_client_tools_need_not_hold_the_batch() -> None:
    """They wait outside and take no room."""
    node = Execute(max_tool_concurrency=1, hold=False)

    first = node.enter(batch(CLIENTS, "read", "client", "read"))
    second = told(node, first, ToolReturned(1.0, 2, "a"))
    third = told(node, second, ToolReturned(1.0, 3, "b"))

    assert ["c0.1", "c0.0"] == keys(first)
    assert ["c0.2"] == keys(second)
    assert [] == keys(third)
    assert isinstance(told(node, third, ToolReturned(1.0, 1, "theirs")), Leave)


def test_what_the_budget_has_no_room_for_does_not_run() -> None:
    """In request order, and the model is told why."""
    node = Execute()

    first = node.enter(
        batch(AGENTS, "read", "read", "read", budget=Budget(tool_calls=5), spent=Spent(0, 3))
    )

    assert ["c0.0", "c0.1"] == keys(first)
    assert [None, None, "not_run"] == statuses(first)
    refused = first.run.turn.results[2]
    assert refused is not None
    assert "Not run: the run's budget of 5 tool calls has no room for it." == refused.text


def test_what_is_left_is_shared_beside_the_tools_of_the_batch() -> None:
    """Three tools may run, so seven of ten calls are for two agents."""
    node = Execute(max_tool_concurrency=2)
    run = batch(
        AGENTS, "ask", "read", "read", "ask", "read", budget=Budget(tokens=9, tool_calls=10)
    )

    first = node.enter(run)
    second = told(node, first, ChildEnded(1.0, 1, "42", spent=Spent(1, 1)))
    (effect,) = wished(first)[:1]

    assert isinstance(effect, StartRun)
    assert Budget(tokens=5, tool_calls=4) == effect.budget
    assert ["c0.2"] == keys(second)


def test_agents_beyond_the_budget_s_agent_calls_do_not_run() -> None:
    """In request order, whatever runs at once; those that do share what is left of them."""
    node = Execute(max_tool_concurrency=1)
    run = batch(AGENTS, *["ask"] * 4, budget=Budget(agent_calls=6), spent=Spent(agent_calls=3))

    first = node.enter(run)

    assert [None, None, None, "not_run"] == statuses(first)
    refused = first.run.turn.results[3]
    assert refused is not None
    assert "Not run: the run's budget of 6 agent calls has no room for it." == refused.text
    assert ("budget.agent_calls",) == first.run.turn.beyond_budget
    assert [0] == [one.budget.agent_calls for one in agents(first)]


def test_a_child_s_answer_is_its_call_s_result() -> None:
    """Well or badly."""
    node = Execute()
    first = node.enter(batch(AGENTS, "ask", "ask"))

    second = told(node, first, ChildEnded(1.0, 2, "no", "error"))
    third = told(node, second, ChildEnded(1.0, 1, "42"))

    assert isinstance(third, Leave)
    assert ["ok", "error"] == statuses(third)
    assert ["42", "no"] == [one.text for one in third.run.turn.results if one]


def test_a_child_that_could_not_be_started_is_an_error_result() -> None:
    """The model reads what went wrong."""
    node = Execute()
    failed = EffectFailed(1.0, 1, Failure("ConfigError", "no such agent"))

    reaction = told(node, node.enter(batch(AGENTS, "ask")), failed)

    assert isinstance(reaction, Leave)
    (result,) = reaction.run.turn.results
    assert result is not None
    assert ("ConfigError: no such agent", "error") == (result.text, result.status)


@pytest.mark.parametrize(("depth", "status"), [(1, None), (2, "error"), (3, "error")])
def test_agents_call_agents_only_so_deep(depth: int, status: str | None) -> None:
    """An agent that calls itself would otherwise never come back."""
    setup = evolve(SETUP, depth=depth, depth_max=2)

    reaction = Execute().enter(batch(AGENTS, "ask", "read", setup=setup))

    assert [status, None] == statuses(reaction)
    assert isinstance(reaction, Wait)


def test_an_approved_call_that_may_have_run_is_asked_about_again() -> None:
    """Whoever let it through knows best what to do now."""
    node = Execute()
    first = node.enter(batch(AGENTS, "read", verdicts=[APPROVED]))

    (question,) = wished(told(node, first, ToolReturned(1.0, 1, "who knows", "unknown")))

    assert AskHuman(2, "c0.0", call(), unknown=True) == question


def asked_again(*tools: ToolSpec, budget: Budget = FREE) -> Wait[None]:
    """Return the question about a call that may have run, beside others of these names."""
    node = Execute()
    run = batch(
        tools, *(one.name for one in tools), verdicts=[APPROVED] * len(tools), budget=budget
    )
    asking = told(node, node.enter(run), ToolReturned(1.0, 1, "who knows", "unknown"))
    assert isinstance(asking, Wait)
    return evolve(asking, run=evolve(asking.run, spent=Spent(0, 1)))


def test_nobody_is_asked_a_third_time() -> None:
    """A tool that never knows, and an approver that always says yes, would go on for ever."""
    asking = asked_again(spec("read"))
    again = told(Execute(), asking, Decided(2.0, wished(asking)[0].id, True))

    reaction = told(Execute(), again, ToolReturned(3.0, 3, "who knows", "unknown"))

    assert isinstance(reaction, Leave)
    assert ["unknown"] == statuses(reaction)


def test_a_second_question_expires_like_the_first() -> None:
    """And an approval that was given in time is good whenever the run goes on."""
    node, setup = Execute(), evolve(SETUP, approval_ttl_s=10.0)
    first = node.enter(batch(AGENTS, "read", verdicts=[APPROVED], setup=setup))
    asking = told(node, first, ToolReturned(1.0, 1, "who knows", "unknown"))
    (question,) = wished(asking)
    assert isinstance(question, AskHuman)
    expires_at = asking.run.at + 10.0
    assert question.expires_at == expires_at

    late = told(node, asking, Decided(expires_at, 2, True))
    in_time = told(node, asking, Decided(99.0, 2, True, given_at=expires_at - 1))

    assert ["unknown"] == statuses(late)
    assert [CallTool(3, "c0.0", call())] == list(wished(in_time))


@pytest.mark.parametrize(
    "event",
    [
        Decided(2.0, 2, False, "no"),
        Decided(2.0, 2, True, "", '{"x": 2}'),
        EffectFailed(2.0, 2, Failure("OSError", "line")),
    ],
    ids=["denied", "edited past the gate", "failed"],
)
def test_without_a_second_approval_it_stays_unknown(event: Event) -> None:
    """ "Not run" would be a lie: it may have happened."""
    reaction = told(Execute(), asked_again(spec("read")), event)

    assert isinstance(reaction, Leave)
    assert ["unknown"] == statuses(reaction)


def test_a_second_approval_waits_for_the_lock() -> None:
    """It was given up while nobody knew, and another call has taken it."""
    node = Execute()
    asking = asked_again(spec("read", lock="disk"), spec("write", lock="disk"))
    question = wished(asking)[0].id
    run = waiting(asking)
    write = CallTool(run.next_effect, "c0.1", call("write"))
    busy = evolve(
        run,
        pending={question: run.pending[question], write.id: write},
        next_effect=run.next_effect + 1,
        turn=evolve(run.turn, waiting=()),
    )
    approved = node.on(
        evolve(busy, pending={write.id: write}),
        Decided(2.0, question, approved=True),
        run.pending[question],
    )
    after = told(node, approved, ToolReturned(3.0, write.id, "b"))

    assert [] == keys(approved)
    assert ["c0.0"] == keys(after)


def test_nobody_is_asked_again_about_a_call_that_has_no_room() -> None:
    """It may have run, and that counts: an approval could not bring it back."""
    node = Execute()
    first = node.enter(batch(AGENTS, "read", verdicts=[APPROVED], budget=Budget(tool_calls=1)))
    spent = evolve(first, run=evolve(first.run, spent=Spent(0, 1)))

    reaction = told(node, spent, ToolReturned(1.0, 1, "who knows", "unknown"))

    assert isinstance(reaction, Leave)
    assert ["unknown"] == statuses(reaction)


HANDOFFS = (spec("boss", "agent", ends=True), spec("chief", "agent", ends=True), *AGENTS)


def agents(reaction: Reaction[None, ExecuteOutcome]) -> list[StartRun]:
    """Return the children that are started."""
    return [one for one in wished(reaction) if isinstance(one, StartRun)]


def test_an_agent_takes_over_when_all_else_is_answered() -> None:
    """However early it was called; what there is to read it reads."""
    node = Execute()
    run = batch(HANDOFFS, "boss", "read", "ask")

    first = node.enter(run)
    second = told(node, first, ToolReturned(1.0, 1, "a"))
    third = told(node, second, ChildEnded(2.0, 2, "b", "error"))
    last = told(node, third, ChildEnded(3.0, 3, "mine now"))

    assert ["c0.1", "c0.2"] == keys(first)
    assert [] == keys(second)
    (boss,) = agents(third)
    assert ("c0.0", "boss") == (boss.key, boss.agent)
    asking, *results = tuple(boss.messages)[len(run.messages) :]
    assert isinstance(asking, AssistantMessage)
    assert ["read", "ask"] == [one.name for one in asking.calls]
    assert list(third.run.turn.results[1:]) == results
    assert isinstance(last, Leave)
    assert isinstance(last.outcome, Done)
    assert ["ok", "ok", "error"] == statuses(last)


def test_only_the_first_agent_takes_over() -> None:
    """In request order; the other is told why it has not, and never runs."""
    node = Execute()
    run = batch(HANDOFFS, "chief", "boss", "chief")

    first = node.enter(run)

    assert ["c0.0"] == keys(first)
    assert [None, "error", "error"] == statuses(first)
    refused = first.run.turn.results[1]
    assert refused is not None
    assert "Not run: 'chief' takes the conversation over, and only one agent can." == refused.text
    assert run.messages == agents(first)[0].messages
    assert isinstance(told(node, first, ChildEnded(1.0, 1, "mine")), Leave)


def test_the_first_agent_that_is_let_through_takes_over() -> None:
    """One that was denied is out of the question; one that people decide about is waited for."""
    node = Execute()
    denied = [CallVerdict("deny", "no"), RUN]
    held = [CallVerdict("held"), RUN]

    first = node.enter(batch(HANDOFFS, "boss", "chief", verdicts=denied))
    waits = node.enter(batch(HANDOFFS, "boss", "chief", verdicts=held))

    assert ["c0.1"] == keys(first)
    assert isinstance(waits, Leave)
    assert isinstance(waits.outcome, ApprovalNeeded)


def test_an_agent_that_takes_over_gets_all_that_is_left() -> None:
    """Its share was set aside while others ran."""
    node = Execute()
    run = batch(HANDOFFS, "boss", "ask", budget=Budget(tool_calls=9))

    first = node.enter(run)
    run_after = evolve(first.run, spent=Spent(0, 2))
    second = told(node, evolve(first, run=run_after), ChildEnded(1.0, 1, "a"))

    assert [4] == [one.budget.tool_calls for one in agents(first)]
    assert [7] == [one.budget.tool_calls for one in agents(second)]


ATTENDED = evolve(SETUP, attended=True)


@pytest.mark.parametrize(
    ("names", "verdicts"), [(("read",), (RUN,)), (("read",), (CallVerdict("deny"),))]
)
def test_the_caller_of_an_attended_run_sees_the_results(
    names: Sequence[str], verdicts: Sequence[CallVerdict]
) -> None:
    """Before they are in the history."""
    node = Execute()
    reaction = node.enter(batch(AGENTS, *names, verdicts=verdicts, setup=ATTENDED))
    if verdicts == (RUN,):
        reaction = told(node, reaction, ToolReturned(1.0, 1, "a"))

    (effect,) = wished(reaction)

    assert AwaitCaller(effect.id, tools_ran=True) == effect


def test_the_caller_may_override_results() -> None:
    """What it says is what the model reads."""
    node = Execute()
    mine = ToolResult("c0.0", "", "read", "mine")
    run = batch(AGENTS, "read", setup=ATTENDED)
    handed = told(node, node.enter(run), ToolReturned(1.0, 1, "a"))
    more = UserMessage("more")

    reaction = told(node, handed, Steered(2.0, 2, append=(more,), results=(mine,)))

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Done)
    assert ((mine,), (more,)) == (reaction.run.turn.results, reaction.run.turn.notes)


def test_what_is_overridden_before_it_runs_never_runs() -> None:
    """It has its result."""
    mine = ToolResult("c0.0", "", "read", "mine")
    run = batch(AGENTS, "read", "read", verdicts=[CallVerdict("answered"), RUN])

    reaction = Execute().enter(evolve(run, turn=evolve(run.turn, results=(mine, None))))

    assert ["c0.1"] == keys(reaction)


def test_a_verdict_about_a_missing_result_runs_nothing() -> None:
    """It fails closed."""
    reaction = Execute().enter(batch(AGENTS, "read", verdicts=[CallVerdict("answered")]))

    assert ["denied"] == statuses(reaction)


def test_held_calls_lead_back_to_the_gate_once_the_others_have_run() -> None:
    """Nothing is missing but what people have to decide."""
    node = Execute()
    run = batch(AGENTS, "read", "read", verdicts=[RUN, CallVerdict("held")])

    reaction = told(node, node.enter(run), ToolReturned(1.0, 1, "a"))

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, ApprovalNeeded)
    assert ["ok", None] == statuses(reaction)


# The same promises for whole runs: whatever models, people and children do.

TEAM = (
    spec("read"),
    spec("write", lock="l"),
    spec("ask", "agent"),
    spec("client", "client"),
    spec("boss", "agent", ends=True),
)
GATE = Gate(rules=(Rule("allow", ("*",)),))
moves = st.lists(st.sampled_from([one.name for one in TEAM]), min_size=1, max_size=7)
limits = st.builds(
    Budget,
    st.none() | st.integers(1, 400),
    st.none() | st.floats(0.5, 4.0),
    st.none(),
    st.none() | st.integers(1, 9),
    st.none() | st.integers(1, 9),
)


def thrifty(budget: Budget, greed: int) -> Spent:
    """Return what a child spends that uses up to `greed` of ten parts of its budget."""
    tokens = (budget.tokens or 0) * greed // 10
    calls = 2 if budget.tool_calls is None else budget.tool_calls * greed // 10
    agents = 2 if budget.agent_calls is None else budget.agent_calls * greed // 10
    usd = (budget.usd or 0.0) * greed / 10
    return Spent(1, calls, Usage(tokens), usd, agent_calls=agents)


@given(
    batches=st.lists(moves, min_size=1, max_size=4),
    budget=limits,
    greed=st.integers(0, 10),
    concurrency=st.integers(1, 4),
    crashes=st.lists(st.integers(1, 40), max_size=3),
    hold=st.booleans(),
    seed=st.integers(0, 99),
)
def test_children_and_tools_together_never_exceed_the_budget(
    batches: list[list[str]],
    budget: Budget,
    greed: int,
    concurrency: int,
    crashes: list[int],
    hold: bool,
    seed: int,
) -> None:
    """What is spent, what children may still spend, and what runs: never more than there is."""
    replies = tuple(reply(*(call(name) for name in names)) for names in batches)

    class Team(Adversary):
        """A world whose children spend what they were given."""

        def child(self, effect: StartRun) -> ChildAnswer | None:
            """End."""
            return ("42", "ok", thrifty(effect.budget, greed))

    # Approved by people, so that what a crash leaves unknown is asked about, and runs again.
    team = Team(replies, checks=(CallCheck(needs_approval=True),))
    nodes = Standard(gate=GATE, execute=Execute(hold=hold))
    graph = loop(nodes, concurrency=concurrency)
    setup = Setup("model", TEAM, budget=budget)

    simulation = team.run(graph, setup=setup, seed=seed, crash_after=crashes)

    assert not simulation.repeated
    bosses: set[str] = set()
    for taken in replay_steps(graph, simulation.events):
        run = taken.run
        taking_over = [
            one for one in taken.effects if isinstance(one, StartRun) and one.agent == "boss"
        ]
        if taking_over:
            # Alone, after everything else of its turn, and it is the only one.
            (boss,) = run.pending.values()
            assert taking_over == [boss]
            turn = taking_over[0].key.partition(".")[0]
            assert turn not in bosses
            bosses.add(turn)
        pending = run.pending.values()
        shares = [one.budget for one in pending if isinstance(one, StartRun)]
        running = [one for one in pending if isinstance(one, CallTool)]
        assert concurrency >= len(shares) + sum(not one.client for one in running)
        locked = [one for one in running if one.call.name == "write"]
        assert len(locked) <= 1
        if budget.tool_calls is not None:
            shared = sum(one.tool_calls or 0 for one in shares)
            assert run.spent.tool_calls + shared + len(running) <= budget.tool_calls
        if budget.agent_calls is not None:
            below = sum(one.agent_calls or 0 for one in shares)
            assert run.spent.agent_calls + below + len(shares) <= budget.agent_calls
        if budget.tokens is not None and shares:
            before = min(run.spent.usage.total_tokens, budget.tokens)
            assert before + sum(one.tokens or 0 for one in shares) <= budget.tokens
        if budget.usd is not None and shares:
            shared_usd = sum(one.usd or 0.0 for one in shares)
            assert run.spent.cost_usd + shared_usd <= budget.usd * (1 + 1e-9)
        assert all(
            (part is None) == (most is None)
            for one in shares
            for part, most in [
                (one.tokens, budget.tokens),
                (one.tool_calls, budget.tool_calls),
                (one.agent_calls, budget.agent_calls),
            ]
        )


def test_a_run_out_of_tool_calls_ends_by_its_budget() -> None:
    """The calls beyond it are answered, and the reason is told."""
    adversary = Adversary((reply(call(), call(), call()),), (ToolOutcome("a", "ok"),))
    setup = evolve(SETUP, budget=Budget(tool_calls=2))

    run = adversary.run(loop(), setup=setup).run

    assert run.ending is not None
    assert (EndReason.BUDGET, ("budget.tool_calls",)) == (run.ending.reason, run.ending.stopped_by)
    assert ["ok", "ok", "not_run"] == [one.status for one in run.record.steps[0].tool_results]
    assert [call_key(0, at) for at in range(3)] == [
        one.key for one in run.record.steps[0].tool_results
    ]
