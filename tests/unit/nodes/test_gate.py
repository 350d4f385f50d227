"""gate: known, then valid, then allowed, then approved; everything else is a no."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pytest

from graphloop.contract import Contract, contract_of
from graphloop.effects import AskHuman, CheckCalls, Effect
from graphloop.errors import IllegalEvent
from graphloop.events import (
    CallCheck,
    CallsChecked,
    Cancelled,
    Decided,
    EffectFailed,
    Event,
    Failure,
)
from graphloop.graph import END, NodeGraph
from graphloop.node_protocol import Kind, Leave, Reaction, Wait
from graphloop.nodes.append import Append
from graphloop.nodes.execute import Execute
from graphloop.nodes.gate import Gate, GateOutcome
from graphloop.outcomes import Aborted, ApprovalNeeded, Calls, Outcome, Settled
from graphloop.policy.approvals import Approval
from graphloop.policy.policy import Rule
from graphloop.rules import AtMost, Rules
from graphloop.rules.monitor import Monitor
from graphloop.run import Ending, EndReason, RuleState, Run, evolve
from graphloop.spending import Budget, Spent
from graphloop.testing.sim import World, simulate
from graphloop.tools.outcome import ToolOutcome
from graphloop.turn import CallVerdict
from graphloop.values import ToolCall, ToolChoice, ToolResult, ToolSpecs
from tests.strategies import QUESTION, SETUP, call, replied, reply, spec, wrong

ASK = CallCheck(needs_approval=True)
BROKEN = Failure("OSError", "disk")


def checked(*checks: CallCheck) -> Reaction[None, GateOutcome]:
    """Return the reaction to these checks of calls to a tool on offer."""
    run = replied(reply(*(call() for _ in checks)))
    entered = Gate().enter(run)
    assert isinstance(entered, Wait)
    return Gate().on(entered.run, CallsChecked(1.0, 1, checks), entered.effects[0])


def verdicts(reaction: Reaction[None, GateOutcome]) -> list[str]:
    """Return the kinds of the verdicts on leaving."""
    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Settled)
    return [one.kind for one in reaction.run.turn.verdicts if one is not None]


def decided(event: Event, effect: Effect | None = None) -> CallVerdict | None:
    """Return the verdict after one question and this answer."""
    asked = checked(ASK)
    assert isinstance(asked, Wait)
    reaction = Gate().on(asked.run, event, effect or asked.effects[0])
    assert isinstance(reaction, Leave)
    return reaction.run.turn.verdicts[0]


def test_a_gate_promises_to_ask_and_breaks_when_aborted() -> None:
    """So the proofs know where a run may wait for people, and what an abort leaves open."""
    assert Contract(moves={Aborted: frozenset({"broken"})}, asks=True) == contract_of(Gate())


def test_a_gate_takes_a_list_of_rules_as_they_are_now() -> None:
    """Rules that could be changed later would be no rules."""
    rules = [Rule("deny", ("pay",))]
    gate = Gate(rules=wrong(rules))

    rules.clear()

    assert (Rule("deny", ("pay",)),) == gate.rules
    assert {gate: "a row"}


def test_what_is_not_on_offer_is_never_checked() -> None:
    """A name that does not exist has no validator, and the model learns which names do."""
    reaction = Gate().enter(replied(reply(call("nowhere"), call("__class__"))))

    assert ["unknown", "unknown"] == verdicts(reaction)
    assert isinstance(reaction, Leave)
    verdict = reaction.run.turn.verdicts[0]
    assert verdict is not None
    assert 'No such tool: "nowhere". Available tools: read, write, client.' == verdict.reason


def test_an_invalid_call_never_reaches_a_human() -> None:
    """Nobody wants to be asked about what could not run."""
    reaction = checked(CallCheck("bad", needs_approval=True), ASK)

    assert isinstance(reaction, Wait)
    assert ["c0.1"] == [one.key for one in reaction.effects if isinstance(one, AskHuman)]


def test_checks_that_came_with_the_reply_need_no_request() -> None:
    """The driver has made them already, where no function of the user's decides."""
    run = replied(reply(call(), call()))
    turn = evolve(run.turn, checked=run.turn.calls, checks=(CallCheck(), CallCheck("bad")))

    assert ["run", "invalid"] == verdicts(Gate().enter(evolve(run, turn=turn)))


@pytest.mark.parametrize("changed", [call(arguments='{"a": 2}'), call("write")])
def test_checks_of_other_calls_clear_nothing(changed: ToolCall) -> None:
    """A node may have changed the calls since, and nobody has checked these."""
    run = replied(reply(call(), call()))
    turn = evolve(run.turn, checked=run.turn.calls, checks=(CallCheck(), CallCheck()))

    for calls in ((changed, call()), (call(), changed), (call(),), (call(), call(), call())):
        entered = Gate().enter(evolve(run, turn=evolve(turn, calls=calls)))

        assert isinstance(entered, Wait)
        assert (CheckCalls(1, 0, calls, tuple(range(len(calls)))),) == entered.effects


@pytest.mark.parametrize("count", [0, 2])
def test_a_missing_or_surplus_check_is_illegal(count: int) -> None:
    """A check that lands on another call would let that one through."""
    entered = Gate().enter(replied(reply(call())))
    assert isinstance(entered, Wait)

    with pytest.raises(IllegalEvent, match="1 call"):
        Gate().on(entered.run, CallsChecked(1.0, 1, (CallCheck(),) * count), entered.effects[0])


@pytest.mark.parametrize(
    ("event", "verdict"),
    [
        (Decided(1.0, 2, True, "ok"), CallVerdict("run", "ok", asked=True, took_s=1.0)),
        (Decided(1.0, 2, False), CallVerdict("deny", "Tool call denied.", by="the approver")),
        (
            Decided(1.0, 2, False, "no"),
            CallVerdict("deny", "Tool call denied. Reason: no", by="the approver"),
        ),
        (
            EffectFailed(1.0, 2, BROKEN),
            CallVerdict("deny", "Tool call denied. The approver failed: disk", by="the approver"),
        ),
    ],
)
def test_a_decision_becomes_the_verdict(event: Event, verdict: CallVerdict) -> None:
    """An approver that breaks has approved nothing."""
    assert verdict == decided(event)


LARGE = (Rule("deny", ("*",), "large"), Rule("ask", ("*",)))


@pytest.mark.parametrize(
    ("gate", "above", "check", "kind"),
    [
        (Gate(), (), CallCheck(needs_approval=True), "run"),
        (Gate(), (), CallCheck("amount: too big"), "invalid"),
        (Gate(rules=LARGE), (), CallCheck(met=((),), unmet=(("large",),)), "run"),
        (Gate(rules=LARGE), (), CallCheck(met=(("large",),), unmet=((),)), "deny"),
        (Gate(rules=LARGE), (), CallCheck(met=((),), unmet=((),)), "deny"),
        (Gate(), (LARGE,), CallCheck(met=(("large",),), unmet=((),)), "deny"),
        (Gate(), (), BROKEN, "invalid"),
    ],
    ids=["fine", "invalid", "within", "beyond", "not known", "beyond the parent's", "unchecked"],
)
def test_what_a_human_has_edited_is_checked_and_judged_again(
    gate: Gate, above: tuple[tuple[Rule, ...], ...], check: CallCheck | Failure, kind: str
) -> None:
    """An approver, or whoever speaks for one, is no way around a gate, nor around a parent's."""
    first = CallCheck(needs_approval=True, met=((),), unmet=(("large",),))
    asked = ruled(gate, "read", "write", checks=[first, first], above=above)
    assert isinstance(asked, Wait)
    (question, other) = asked.effects
    assert isinstance(question, AskHuman)

    edited = Decided(101.0, question.id, True, "", '{"x": 9}')
    pending = {other.id: other}
    checking = gate.on(evolve(asked.run, pending=pending, next_effect=4), edited, question)
    assert isinstance(checking, Wait)
    (again,) = checking.effects
    event = (
        EffectFailed(102.0, again.id, check)
        if isinstance(check, Failure)
        else CallsChecked(102.0, again.id, (check,))
    )
    settled = gate.on(evolve(checking.run, pending=pending), event, again)

    assert CheckCalls(4, 0, (call(arguments='{"x": 9}'),), (0,), "c0.0") == again
    assert isinstance(settled, Wait)
    verdict = settled.run.turn.verdicts[0]
    assert verdict is not None
    assert (kind, '{"x": 9}' if kind == "run" else "") == (verdict.kind, verdict.arguments)


def test_the_gate_waits_until_every_question_is_answered() -> None:
    """One yes does not open the gate for the others."""
    asked = checked(ASK, ASK)
    assert isinstance(asked, Wait)
    first, second = asked.effects
    waiting = evolve(asked.run, pending={second.id: second})

    reaction = Gate().on(waiting, Decided(1.0, first.id, True), first)

    assert isinstance(reaction, Wait)
    open_still = CallVerdict("held", gate="gate", asked_at=waiting.at)
    yes = CallVerdict("run", asked=True, took_s=1.0 - waiting.at)
    assert [yes, open_still] == list(reaction.run.turn.verdicts)


ALLOW_READ = (Rule("allow", ("read",)),)
FREE = CallCheck()


def ruled(
    gate: Gate,
    *names: str,
    checks: Sequence[CallCheck] = (),
    above: tuple[tuple[Rule, ...], ...] = (),
) -> Reaction[None, GateOutcome]:
    """Return the reaction of a gate with rules to calls of these tools."""
    run = evolve(
        replied(reply(*(call(name) for name in names))), at=100.0, setup=evolve(SETUP, rules=above)
    )
    entered = gate.enter(run)
    assert isinstance(entered, Wait)
    event = CallsChecked(100.0, 1, tuple(checks) or (FREE,) * len(names))
    return gate.on(entered.run, event, entered.effects[0])


def kinds(reaction: Reaction[None, GateOutcome]) -> list[str | None]:
    """Return the kinds of the verdicts, left or not."""
    return [None if one is None else one.kind for one in reaction.run.turn.verdicts]


def questions(reaction: Reaction[None, GateOutcome]) -> list[AskHuman]:
    """Return what people are asked."""
    assert isinstance(reaction, Wait)
    asked = [one for one in reaction.effects if isinstance(one, AskHuman)]
    assert len(asked) == len(reaction.effects)
    return asked


def test_what_no_rule_allows_is_denied() -> None:
    """Rules are a list of what may be, never of what may not."""
    reaction = ruled(Gate(rules=ALLOW_READ), "read", "write")

    assert ["run", "deny"] == kinds(reaction)
    verdict = reaction.run.turn.verdicts[1]
    assert verdict is not None
    assert "Tool call denied. Reason: no rule of the gate allows 'write'" == verdict.reason


@pytest.mark.parametrize(
    ("above", "own", "kind"),
    [
        ("allow", "allow", "run"),
        ("allow", "ask", "held"),
        ("ask", "allow", "held"),
        ("allow", "deny", "deny"),
        ("deny", "allow", "deny"),
        ("deny", "ask", "deny"),
        ("ask", "ask", "held"),
    ],
)
def test_the_strictest_word_of_all_levels_counts(
    above: Literal["allow", "ask", "deny"], own: Literal["allow", "ask", "deny"], kind: str
) -> None:
    """No child can do what its parent may not, and no parent can loosen a child's gate."""
    gate = Gate(rules=(Rule(own, ("read",)),))

    reaction = ruled(gate, "read", above=((Rule(above, ("*",)),),))

    assert [kind] == kinds(reaction)


@pytest.mark.parametrize(
    ("met", "unmet", "kind"),
    [
        ((("small",),), ((),), "run"),
        (((),), (("small",),), "deny"),
        (((),), ((),), "deny"),
        (((),), (("renamed",),), "deny"),
        ((), (), "deny"),
        ((("small",),), (), "deny"),
    ],
)
def test_a_condition_allows_only_where_it_is_known_to_hold(
    met: tuple[tuple[str, ...], ...], unmet: tuple[tuple[str, ...], ...], kind: str
) -> None:
    """One that failed, or that nobody looked at, has allowed nothing."""
    gate = Gate(rules=(Rule("allow", ("*",), "small"),))

    reaction = ruled(gate, "read", checks=[CallCheck(met=met, unmet=unmet)])

    assert [kind] == kinds(reaction)


@pytest.mark.parametrize(
    ("ttls", "run_ttl", "expires_at"),
    [
        ((None, None), None, None),
        ((30.0, None), None, 130.0),
        ((30.0, 20.0), None, 120.0),
        ((30.0, 20.0), 10.0, 110.0),
        ((None, None), 10.0, 110.0),
        ((5.0, None), 10.0, 105.0),
    ],
)
def test_a_question_is_open_for_the_shortest_of_all_times(
    ttls: tuple[float | None, float | None], run_ttl: float | None, expires_at: float | None
) -> None:
    """Each level's rule and the run itself may set one."""
    above, own = (Rule("ask", ("*",), ttl_s=one) for one in ttls)
    gate = Gate(rules=(own,))
    run = evolve(
        replied(reply(call())),
        at=100.0,
        setup=evolve(SETUP, rules=((above,),), approval_ttl_s=run_ttl),
    )
    entered = gate.enter(run)
    assert isinstance(entered, Wait)

    checked_at = CallsChecked(100.0, 1, (FREE,))
    (question,) = questions(gate.on(entered.run, checked_at, entered.effects[0]))

    assert expires_at == question.expires_at


@pytest.mark.parametrize(
    ("at", "kind"), [(129.9, "run"), (130.0, "deny"), (1e9, "deny"), (float("nan"), "deny")]
)
def test_an_approval_that_comes_too_late_is_a_no(at: float, kind: str) -> None:
    """From the very instant on, and where the clock tells no time at all."""
    asked = ruled(Gate(rules=(Rule("ask", ("*",), ttl_s=30.0),)), "read")
    (question,) = questions(asked)

    reaction = Gate().on(asked.run, Decided(at, 2, approved=True), question)

    assert [kind] == kinds(reaction)
    if kind == "deny":
        verdict = reaction.run.turn.verdicts[0]
        assert verdict is not None
        assert "expired" in verdict.reason


def test_the_batch_is_held_by_default() -> None:
    """Order is safety: nothing runs beside a call that somebody has yet to look at."""
    reaction = ruled(Gate(), "read", "write", checks=[FREE, ASK])

    assert ["c0.1"] == [one.key for one in questions(reaction)]


def test_a_gate_that_does_not_hold_lets_the_others_run_first() -> None:
    """And asks when it is entered again."""
    gate = Gate(hold=False)

    first = ruled(gate, "read", "write", checks=[FREE, ASK])

    assert isinstance(first, Leave)
    assert ["run", "held"] == kinds(first)
    again = gate.enter(first.run)
    assert ["c0.1"] == [one.key for one in questions(again)]


def test_an_agent_that_takes_over_is_nothing_that_runs_first() -> None:
    """It waits for all others, so a gate that left them for later would never be asked again."""
    tools = ToolSpecs((spec("read"), spec("boss", "agent", ends=True)))
    run = replied(reply(call("boss"), call("read")))
    entered = Gate(hold=False).enter(evolve(run, turn=evolve(run.turn, tools=tools)))
    assert isinstance(entered, Wait)

    asked = Gate(hold=False).on(entered.run, CallsChecked(1.0, 1, (FREE, ASK)), entered.effects[0])

    assert ["c0.1"] == [one.key for one in questions(asked)]


@pytest.mark.parametrize("check", [ASK, CallCheck("bad")])
def test_with_nothing_to_run_first_even_such_a_gate_asks_at_once(check: CallCheck) -> None:
    """Going round for nothing would only take longer."""
    reaction = ruled(Gate(hold=False), "read", "write", checks=[check, ASK])

    assert "c0.1" in [one.key for one in questions(reaction)]


@pytest.mark.parametrize("approved", [True, False])
def test_a_held_call_goes_round_through_execute_and_is_answered_once(approved: bool) -> None:
    """The others have run by then, and their results stay (CONTRACT §9 #21)."""
    gate, execute = Gate(hold=False), Execute()
    start = Batch()
    graph: NodeGraph[None] = NodeGraph(
        "g",
        start,
        {start: {...: gate}, gate: {...: execute}, execute: {ApprovalNeeded: gate, ...: END}},
    )
    world = World(
        model=lambda _: reply("never"),
        tool=lambda effect: ToolOutcome(effect.call.name, "ok"),
        check=lambda effect: tuple(ASK if one.name == "write" else FREE for one in effect.calls),
        human=lambda _: Approval(approved),
    )

    simulation = simulate(graph, QUESTION, world, None, setup=SETUP)

    order = [type(one).__name__ for one in simulation.events]
    assert order.index("ToolReturned") < order.index("Decided")
    results = [one for one in simulation.run.turn.results if one]
    assert ["ok", "ok" if approved else "denied", "ok"] == [one.status for one in results]
    assert {"c0.0": 1, "c0.2": 1} | ({"c0.1": 1} if approved else {}) == simulation.executions


@dataclass(frozen=True)
class Batch:
    """Puts a turn with three calls into the run, and leaves."""

    name: str = "batch"
    kind: Kind = "model"
    outcomes: frozenset[type[Outcome]] = frozenset({Calls})

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Leave."""
        batch = replied(reply(call(), call("write"), call()))
        return Leave(evolve(run, turn=batch.turn), Calls())

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Never happens."""
        raise AssertionError


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ToolChoice("none"), ["unknown", "unknown"]),
        (ToolChoice("tool", "write"), ["unknown", None]),
        (ToolChoice("tool", "nowhere"), ["unknown", "unknown"]),
        (ToolChoice("required"), []),
    ],
)
def test_a_tool_choice_binds_the_gate_too(choice: ToolChoice, expected: list[str | None]) -> None:
    """Not every server honours it."""
    run = replied(reply(call(), call("write")))

    reaction = Gate().enter(evolve(run, turn=evolve(run.turn, tool_choice=choice)))

    assert expected == kinds(reaction)


def test_with_every_call_answered_there_is_nothing_to_check() -> None:
    """The turn goes on at once."""
    run = replied(reply(call()))
    given = ToolResult("c0.0", "", "read", "42")

    reaction = Gate().enter(evolve(run, turn=evolve(run.turn, results=(given,))))

    assert ["answered"] == verdicts(reaction)


def bounded(
    most: int, *checks: CallCheck, spent: int = 0, hold: bool = True
) -> Reaction[None, GateOutcome]:
    """Return what a gate makes of these checks where the budget has so many tool calls."""
    run = evolve(
        replied(reply(*(call() for _ in checks))),
        setup=evolve(SETUP, budget=Budget(tool_calls=most)),
        spent=Spent(0, spent),
    )
    entered = Gate(hold=hold).enter(run)
    assert isinstance(entered, Wait)
    return Gate(hold=hold).on(entered.run, CallsChecked(1.0, 1, checks), entered.effects[0])


def results(reaction: Reaction[None, GateOutcome]) -> list[str | None]:
    """Return what became of the calls so far."""
    return [None if one is None else one.status for one in reaction.run.turn.results]


def test_nobody_is_asked_about_a_call_that_the_budget_has_no_room_for() -> None:
    """In request order, and calls that need nobody's word take room too."""
    reaction = bounded(3, ASK, FREE, ASK, ASK, FREE, spent=0)

    assert ["c0.0", "c0.2"] == [one.key for one in questions(reaction)]
    assert [None, None, None, "not_run", None] == results(reaction)
    assert ["held", "run", "held", "answered", "run"] == kinds(reaction)


def test_what_waits_at_the_gate_when_the_run_is_stopped_has_not_run() -> None:
    """Nobody may be told that it is not known, for it is."""
    asked = bounded(2, FREE, ASK, ASK)

    left = Gate().on(asked.run, Cancelled(2.0), None)

    assert isinstance(left, Leave)
    assert isinstance(left.outcome, Aborted)
    ended = Append().enter(evolve(left.run, ending=Ending(EndReason.ABORTED)))
    assert ["not_run"] * 3 == [one.status for one in ended.run.record.steps[0].tool_results]


LENIENT = Gate("lenient", rules=(Rule("allow", ("*",)),))
ASKS_ABOUT_READ = Gate("asks", rules=(Rule("ask", ("read",), ttl_s=9.0), Rule("allow", ("*",))))
DENIES_WRITE = Gate("strict", rules=(Rule("deny", ("write",), "not here"), Rule("allow", ("*",))))


def passed(
    run: Run[None], *gates: Gate, approved: bool = True, edit: str = "", at: float = 1.0
) -> Run[None]:
    """Return the run after these gates in a row; a human says the same to every question."""
    for gate in gates:
        reaction = gate.enter(run)
        while isinstance(reaction, Wait):
            run = reaction.run
            for effect in reaction.effects:
                if isinstance(effect, CheckCalls):
                    fine = tuple([CallCheck() for _ in effect.calls])
                    answer: Event = CallsChecked(1.0, effect.id, fine)
                else:
                    answer = Decided(at, effect.id, approved, "", edit)
                reaction = gate.on(run, answer, effect)
                run = reaction.run
        run = reaction.run
    return run


def kinds_after(*gates: Gate) -> list[str]:
    """Return the verdicts on a read and a write after these gates in a row."""
    run = passed(replied(reply(call("read"), call("write"))), *gates)
    return [one.kind for one in run.turn.verdicts if one is not None]


@pytest.mark.parametrize(
    "gates", [(LENIENT, DENIES_WRITE), (DENIES_WRITE, LENIENT), (LENIENT, DENIES_WRITE, LENIENT)]
)
def test_of_several_gates_in_a_row_the_strictest_word_counts(gates: Sequence[Gate]) -> None:
    """A gate that would take another's word for its own would gate nothing."""
    assert ["run", "deny"] == kinds_after(*gates)


def test_every_gate_sees_a_call_as_it_will_run_and_one_gate_asks() -> None:
    """The second gate judges the arguments that the human wrote."""
    run = passed(replied(reply(call("read"))), ASKS_ABOUT_READ, edit='{"a": 1}')
    second = ASKS_ABOUT_READ.enter(evolve(run, pending={}))

    assert isinstance(second, Wait)
    (asked,) = second.effects
    assert isinstance(asked, CheckCalls)
    assert '{"a": 1}' == asked.calls[0].arguments
    left = ASKS_ABOUT_READ.on(second.run, CallsChecked(2.0, asked.id, (CallCheck(),)), asked)
    assert isinstance(left, Leave)
    expected = CallVerdict("run", arguments='{"a": 1}', asked=True, took_s=1.0)
    assert expected == left.run.turn.verdicts[0]


@pytest.mark.parametrize("edit", ["", '{"a": 1}'])
@pytest.mark.parametrize(("took", "kind"), [(9.9, "run"), (10.0, "deny")])
def test_a_yes_at_one_gate_is_too_late_by_the_limit_of_the_next(
    took: float, kind: str, edit: str
) -> None:
    """Nobody is asked twice, and the strictest of both limits counts."""
    slow = Gate("slow", rules=(Rule("ask", ("read",)),))
    quick = Gate("quick", rules=(Rule("ask", ("read",), ttl_s=10.0),))

    begun = evolve(replied(reply(call("read"))), at=100.0)
    run = passed(begun, slow, quick, edit=edit, at=100.0 + took)

    (verdict,) = run.turn.verdicts
    assert verdict is not None
    assert kind == verdict.kind
    assert kind == "run" or "expired" in verdict.reason


def test_an_edit_is_judged_by_every_gate_that_the_call_has_passed() -> None:
    """A person at the second gate is no way around the first."""
    asks = Gate("people", rules=(Rule("ask", ("*",)),))
    limit = Gate("limits", rules=(Rule("deny", ("read",), "large"), Rule("allow", ("*",))))
    small = CallCheck(met=((),), unmet=(("large",),))
    entered = limit.enter(replied(reply(call("read"))))
    assert isinstance(entered, Wait)
    let = limit.on(entered.run, CallsChecked(1.0, 1, (small,)), entered.effects[0])
    assert ["run"] == verdicts(let)
    entered = asks.enter(let.run)
    assert isinstance(entered, Wait)
    asked = asks.on(entered.run, CallsChecked(1.0, 1, (small,)), entered.effects[0])
    assert isinstance(asked, Wait)
    (question,) = asked.effects
    again = asks.on(asked.run, Decided(2.0, question.id, True, "", '{"x": 9}'), question)
    assert isinstance(again, Wait)
    large = CallCheck(met=(("large",),), unmet=((),))

    left = asks.on(again.run, CallsChecked(3.0, 9, (large,)), again.effects[0])

    assert ["deny"] == verdicts(left)


def test_the_soonest_of_two_limits_on_a_question_holds() -> None:
    """Two gates ask about one call; the human is given the time that both allow."""
    sooner = Gate("sooner", rules=(Rule("ask", ("*",), ttl_s=3.0),))
    held = CallVerdict("held", gate="asks", ttl_s=9.0)
    entered = sooner.enter(replied(reply(call("read")), held))
    assert isinstance(entered, Wait)

    asked = sooner.on(entered.run, CallsChecked(0.0, 1, (CallCheck(),)), entered.effects[0])

    assert isinstance(asked, Wait)
    assert [3.0] == [one.expires_at for one in asked.effects if isinstance(one, AskHuman)]


ONCE_AN_APPROVAL = Monitor.of(Rules((AtMost("tool:write", 1, "approval:read"),)))


@pytest.mark.parametrize(
    ("reads", "writes", "expected"),
    [
        # A person may approve the reading, which allows the writing behind it.
        (ASK, ASK, ["run", "held", "held"]),
        # Nobody will; the writing that needs nobody's word is left to the last gate.
        (FREE, ASK, ["run", "run", "deny"]),
        (CallCheck("bad"), ASK, ["run", "invalid", "deny"]),
        (CallCheck("bad"), FREE, ["run", "invalid", "run"]),
        # What was refused stays refused for its own reason.
        (FREE, CallCheck("bad"), ["run", "run", "invalid"]),
    ],
)
def test_a_forbidden_call_is_denied_before_a_person_is_asked(
    reads: CallCheck, writes: CallCheck, expected: list[str]
) -> None:
    """A person's time is not spent on a call that a rule forbids whatever they say."""
    calls = call("write"), call("read"), call("write")
    run = evolve(replied(reply(*calls)), watch=RuleState(ONCE_AN_APPROVAL))
    entered = Gate().enter(run)
    assert isinstance(entered, Wait)

    event = CallsChecked(1.0, 1, (FREE, reads, writes))
    reaction = Gate().on(entered.run, event, entered.effects[0])

    assert expected == [one and one.kind for one in reaction.run.turn.verdicts]


def test_a_refused_call_allows_no_other_though_a_person_was_asked() -> None:
    """Another gate has refused it: its approval never comes, so the writing behind it is denied."""
    refused = CallVerdict("deny", "no", asked=True)
    run = evolve(
        replied(reply(call("read"), call("write")), refused, None),
        watch=RuleState(ONCE_AN_APPROVAL),
    )
    entered = Gate().enter(run)
    assert isinstance(entered, Wait)

    reaction = Gate().on(entered.run, CallsChecked(1.0, 1, (ASK,)), entered.effects[0])

    assert [refused.kind, "deny"] == [one and one.kind for one in reaction.run.turn.verdicts]
