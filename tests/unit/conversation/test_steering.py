"""Steering: a caller's changes, notes and open calls become part of a run; pairs stay complete."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphloop.conversation.steering import (
    add_notes,
    adopt_open_calls,
    apply_steering,
    hand_over,
    steered,
    unanswered,
)
from graphloop.effects import AwaitCaller
from graphloop.errors import IllegalEvent
from graphloop.events import CallCheck, Setup, Steered
from graphloop.node_protocol import Wait
from graphloop.run import EndReason, History, Run, evolve
from graphloop.spending import Budget
from graphloop.turn import CallVerdict, Turn
from graphloop.values import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserMessage,
    call_key,
)
from tests.property.test_contract_pairing import assert_paired
from tests.runs import changed
from tests.strategies import (
    QUESTION,
    SETUP,
    Adversary,
    Steering,
    adversaries,
    call,
    fresh,
    loop,
    replied,
    reply,
    said,
)

TWO = said("look", call("read", "a"), call("write", "b"))
RAN = CallVerdict("run")


def answer(call_id: str, name: str, key: str = "", text: str = "given") -> ToolResult:
    """Return a result."""
    return ToolResult(key, call_id, name, text)


def of_turn(*results: ToolResult | None) -> Run[None]:
    """Return a run whose turn made two calls and has these results."""
    run = replied(reply(*TWO.parts), RAN, RAN)
    return evolve(run, turn=evolve(run.turn, results=results))


def told(run: Run[None], event: Steered) -> tuple[Message, ...]:
    """Return the conversation as its caller wants it, with a slot's result where there is one."""
    after = steered(run, event)
    results = [one for one in after.turn.results if one is not None]
    kept: tuple[Message, ...] = ()
    if after.turn.reply is not None and not after.turn.dropped:
        kept = (after.turn.reply.message, *results)
    return (*after.messages, *kept, *after.turn.notes)


@pytest.mark.parametrize("ran", [True, False])
def test_the_caller_is_told_whether_the_tools_have_run(ran: bool) -> None:
    """It is asked before and after, and must know which."""
    waiting = hand_over(fresh(), tools_ran=ran)

    assert Wait(fresh(), (AwaitCaller(1, ran),)) == waiting


def test_what_is_appended_comes_after_the_turn() -> None:
    """The assistant's turn is never lost for it (CONTRACT §9 #29)."""
    more = UserMessage("and now?")

    assert (*QUESTION, TWO, more) == told(of_turn(), Steered(1.0, 1, append=(more,)))


@pytest.mark.parametrize("key", ["c0.2", "c1.0", "c0.-1", "c-1.0"])
def test_a_result_of_a_call_of_another_turn_is_illegal(key: str) -> None:
    """It would answer a call that nobody made, or another one."""
    with pytest.raises(IllegalEvent, match=f"call '{key}' of run 'r', whose turn 0 makes 2"):
        steered(of_turn(), Steered(1.0, 1, results=(answer("a", "read", key),)))


def test_a_new_setup_never_loosens_the_bounds_of_the_run() -> None:
    """A caller steers within what the run was given; the rules above it stay (CONTRACT §9 #28)."""
    run = evolve(fresh(), setup=Setup("model", budget=Budget(tokens=5), depth=1, signed=True))
    wanted = Setup("other", SETUP.tools, budget=Budget(), depth=0, attended=True)

    setup = steered(run, Steered(1.0, 1, setup=wanted)).setup

    assert ("other", SETUP.tools) == (setup.model, setup.tools)
    assert (Budget(tokens=5), 1, True, False) == (
        setup.budget,
        setup.depth,
        setup.signed,
        setup.attended,
    )


def test_results_for_a_replaced_conversation_are_dropped() -> None:
    """The calls they were for are gone."""
    event = Steered(1.0, 1, QUESTION, results=(answer("a", "read", "c0.0"),))

    assert () == steered(of_turn(), event).turn.results


def test_open_calls_of_a_new_conversation_become_the_turn_s() -> None:
    """Whoever pushes an assistant's turn has its tools run (CONTRACT §9 #30)."""
    theirs = said(call("write", "x"))

    run = steered(of_turn(), Steered(1.0, 1, (*QUESTION, theirs)))

    assert (QUESTION, theirs.calls, ()) == (tuple(run.messages), run.turn.calls, run.turn.verdicts)
    assert run.turn.reply is not None
    assert theirs == run.turn.reply.message
    assert not run.turn.dropped


def test_a_result_stays_when_its_turn_is_pushed_again() -> None:
    """Pushing the turn after its tools ran must not run them twice (CONTRACT §9 #31)."""
    results = (answer("a", "read", "c0.0", "ran"), answer("b", "write", "c0.1", "ran"))

    run = steered(of_turn(*results), Steered(1.0, 1, (*QUESTION, TWO)))

    assert (results, (RAN, RAN)) == (run.turn.results, run.turn.verdicts)


def test_what_is_said_after_open_calls_closes_them() -> None:
    """The conversation has gone on, so they are answered as not run."""
    results = (answer("a", "read", "c0.0"), answer("b", "write", "c0.1"))
    more = UserMessage("never mind")
    event = Steered(1.0, 1, (*QUESTION, said(call("read", "x"))), (more,))

    conversation = told(of_turn(*results), event)

    assert_paired(conversation)
    assert more == conversation[-1]


def test_a_closed_conversation_has_nothing_to_take_up() -> None:
    """Nor has one that goes on after a call, whatever became of it."""
    whole = (*QUESTION, TWO, answer("a", "read"), answer("b", "write"))

    for messages in ((), QUESTION, whole, (*QUESTION, TWO, *QUESTION)):
        assert adopt_open_calls(fresh(), messages) is None


def test_results_in_another_order_find_their_calls() -> None:
    """Two of three came, the last one first."""
    three = said(call("read", "a"), call("read", "b"), call("read", "c"))
    messages = (three, answer("c", "read"), answer("a", "read"))

    run = adopt_open_calls(fresh(Turn()), messages)

    assert run is not None
    assert ["a", None, "c"] == [one and one.call_id for one in run.turn.results]


def test_what_was_said_meanwhile_is_heard_once() -> None:
    """At the end of the conversation, and as something new."""
    more = (UserMessage("one"), UserMessage("two"))
    run = changed(fresh(), steering=more)

    after = apply_steering(run)

    assert ((*QUESTION, *more), more) == (tuple(after.messages), tuple(after.record.added))
    assert after == apply_steering(after)
    assert () == after.inbox.steering


# What a caller may say at any hand-over, by the run that it sees.


def _push(run: Run[None]) -> Steered:
    return Steered(0.0, 0, append=(UserMessage("more"),))


def _push_both(run: Run[None]) -> Steered:
    turn = run.turn
    results = tuple(
        ToolResult(call_key(turn.number, at), one.id, one.name, "mine")
        for at, one in enumerate(turn.calls)
    )
    return Steered(0.0, 0, append=(UserMessage("more"),), results=results)


def _first_only(run: Run[None]) -> Steered:
    return Steered(0.0, 0, results=_push_both(run).results[:1])


def _fresh_start(run: Run[None]) -> Steered:
    return Steered(0.0, 0, (SystemMessage("new"), UserMessage("start")))


def _same_again(run: Run[None]) -> Steered:
    own = () if run.turn.reply is None else (run.turn.reply.message,)
    return Steered(0.0, 0, (*run.messages, *own))


def _other_calls(run: Run[None]) -> Steered:
    return Steered(0.0, 0, (*run.messages, said(call("write", "w"), call("read", "r"))))


def _other_and_more(run: Run[None]) -> Steered:
    return Steered(0.0, 0, _other_calls(run).messages, (UserMessage("more"),))


def _half_answered(run: Run[None]) -> Steered:
    given = ToolResult("", "r", "read", "theirs")
    return Steered(0.0, 0, (*(_other_calls(run).messages or ()), given))


def _loosen(run: Run[None]) -> Steered:
    return Steered(0.0, 0, setup=Setup("model", SETUP.tools))


MOVES: tuple[Steering, ...] = (
    lambda _: Steered(0.0, 0),
    _push,
    _push_both,
    _first_only,
    _fresh_start,
    _same_again,
    _other_calls,
    _other_and_more,
    _half_answered,
    _loosen,
)
ATTENDED = evolve(SETUP, attended=True, budget=Budget(tool_calls=9))


@example(
    adversary=Adversary((reply(*[call()] * 10),)),
    moves=[MOVES[0], _other_calls],
    crashes=[],
    seed=5,
)
@given(
    adversary=adversaries,
    moves=st.lists(st.sampled_from(MOVES), min_size=1, max_size=5),
    crashes=st.lists(st.integers(1, 30), max_size=3),
    seed=st.integers(0, 9),
)
def test_no_caller_breaks_the_pairs_of_a_history_or_its_bounds(
    adversary: Adversary, moves: list[Steering], crashes: list[int], seed: int
) -> None:
    """Steering is the caller's; the promises are not (CONTRACT §9 #28 to #31)."""
    steering = Adversary(
        adversary.models,
        adversary.tools,
        adversary.checks,
        adversary.decisions,
        steering=tuple(moves),
    )

    simulation = steering.run(loop(), setup=ATTENDED, seed=seed, crash_after=crashes)

    run = simulation.run
    assert not simulation.repeated
    assert run.spent.tool_calls <= 9
    assert len(run.record.steps) <= 6
    assert run.setup.budget == Budget(tool_calls=9)
    if run.ended:
        assert_answered(tuple(run.messages))


def assert_answered(history: tuple[Message, ...]) -> None:
    """Assert that each call is answered once, at once, in order; a caller's keys may be empty."""
    at = 0
    while at < len(history):
        message = history[at]
        assert not isinstance(message, ToolResult)
        at += 1
        if isinstance(message, AssistantMessage):
            results = history[at : at + len(message.calls)]
            expected = [(one.id, one.name) for one in message.calls]
            got = [(one.call_id, one.name) for one in results if isinstance(one, ToolResult)]
            assert expected == got
            at += len(message.calls)


def steered_to(steering: Steering, *, ran: bool) -> tuple[tuple[Message, ...], list[str], object]:
    """Return the history, the executed keys and the ending of a run steered once."""

    def once(run: Run[None]) -> Steered:
        # The turn's hand-over before its tools, or the one after them.
        there = run.turn.number == 0 and bool(run.turn.results) == ran
        return steering(run) if there else Steered(0.0, 0)

    adversary = Adversary(
        (reply("done"), reply(call("read", "x")), *(reply("done"),) * 30), steering=(once,)
    )
    simulation = adversary.run(loop(), setup=evolve(SETUP, attended=True))
    assert simulation.run.ending is not None
    history = tuple(simulation.run.messages)
    return history, sorted(simulation.executions), simulation.run.ending.reason


def shown(history: tuple[Message, ...]) -> list[str]:
    """Return a history as roles and texts."""
    texts: list[str] = []
    for one in history:
        match one:
            case UserMessage(content=content) | SystemMessage(content=content):
                texts.append(f"{one.role}:{content}")
            case AssistantMessage():
                calls = ",".join(f"{part.name}" for part in one.calls)
                texts.append(f"assistant:{one.text}{calls}")
            case ToolResult():
                texts.append(f"tool:{one.text}")
    return texts


OWN = ["user:go", "assistant:read"]


@pytest.mark.parametrize(
    ("steering", "ran", "history", "executed"),
    [
        (MOVES[0], False, [*OWN, "tool:fine"], ["c0.0"]),
        (_push, False, [*OWN, "tool:fine", "user:more"], ["c0.0"]),
        (_push, True, [*OWN, "tool:fine", "user:more"], ["c0.0"]),
        (_push_both, False, [*OWN, "tool:mine", "user:more"], []),
        (_push_both, True, [*OWN, "tool:mine", "user:more"], ["c0.0"]),
        (_same_again, False, [*OWN, "tool:fine"], ["c0.0"]),
        (_same_again, True, [*OWN, "tool:fine"], ["c0.0"]),
        (_fresh_start, False, ["system:new", "user:start"], []),
        (
            _other_calls,
            False,
            ["user:go", "assistant:write,read", "tool:fine", "tool:fine"],
            ["c0.0", "c0.1"],
        ),
        (
            _other_calls,
            True,
            ["user:go", "assistant:write,read", "tool:fine", "tool:fine"],
            ["c0.0", "c1.0", "c1.1"],
        ),
        (
            _half_answered,
            False,
            ["user:go", "assistant:write,read", "tool:fine", "tool:theirs"],
            ["c0.0"],
        ),
    ],
)
def test_each_kind_of_steering_leads_to_its_history(
    steering: Steering, ran: bool, history: list[str], executed: list[str]
) -> None:
    """The four cases of seed 004 and their neighbours, to the message."""
    found, keys, reason = steered_to(steering, ran=ran)

    assert [*history, "assistant:done"] == shown(found)
    assert (executed, EndReason.COMPLETED) == (keys, reason)


def test_handed_in_calls_run_before_the_model_is_asked() -> None:
    """In turn -1: nothing of them is a step, and only their results are new."""
    messages = (*QUESTION, TWO, answer("a", "read"))
    adversary = Adversary((reply("done"),), checks=(CallCheck(),))

    simulation = adversary.run(loop(), messages=messages)

    run = simulation.run
    assert ["c-1.1"] == list(simulation.executions)
    assert [*shown(messages), "tool:fine", "assistant:done"] == shown(tuple(run.messages))
    assert ["tool:fine", "assistant:done"] == shown(tuple(run.record.added))
    assert [0] == [step.index for step in run.record.steps]
    assert_answered(tuple(run.messages))
    assert isinstance(TWO.calls[0], ToolCall)
    assert isinstance(run.messages, History)


NOTE = UserMessage("listen", "node")


def test_words_come_at_the_end_of_the_conversation() -> None:
    """They are new, and somebody has said them."""
    run = add_notes(fresh(), (NOTE, SystemMessage("be brief")))

    assert (*QUESTION, NOTE, SystemMessage("be brief")) == tuple(run.messages)
    assert (NOTE, SystemMessage("be brief")) == tuple(run.record.added)
    assert fresh() == add_notes(fresh(), ())


def test_words_wait_for_the_turn_in_hand() -> None:
    """Its calls and their results come before them, together."""
    run = add_notes(fresh(Turn(0, reply=reply(call("read")))), (NOTE,))

    assert (QUESTION, (NOTE,)) == (tuple(run.messages), run.turn.notes)


def test_a_conversation_with_open_calls_takes_no_words() -> None:
    """The error says which calls, and where to lead the run before."""
    asked = call("read")
    open_run = fresh(messages=(*QUESTION, said(asked)))
    whole = fresh(messages=(*QUESTION, said(asked), ToolResult("c0.0", asked.id, "read", "x")))

    why = unanswered(open_run)

    assert "calls without results ('read')" in why
    assert "Gate, an Execute and an Append" in why
    assert "" == unanswered(whole) == unanswered(fresh())
