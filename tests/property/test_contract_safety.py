"""Contract 9 and 10: no tool runs that was not clearly, wholly and validly asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.effects import AskHuman, CallTool, CheckCalls
from graphloop.events import CallCheck, CallsChecked, Cancelled, Decided
from graphloop.policy.approvals import Approval
from graphloop.replay import replay_steps
from graphloop.testing.sim import Simulation
from graphloop.values import FinishReason, call_key
from tests.strategies import Adversary, adversaries, call, loop, reply

VOID = {
    FinishReason.REFUSAL,
    FinishReason.CONTENT_FILTER,
    FinishReason.LENGTH,
    FinishReason.CONTEXT_WINDOW,
}
"""Replies whose calls are not the model's considered wish."""


def allowed(simulation: Simulation[None]) -> set[str]:
    """Return the keys that the journal's own facts allow, worked out without any node."""
    cleared: set[str] = set()
    before = None
    for taken in replay_steps(loop(), simulation.events):
        event = taken.event
        answered = None if before is None else before.pending.get(getattr(event, "effect", 0))
        match event, answered:
            case CallsChecked(checks=checks), CheckCalls(turn=turn, calls=calls):
                assert before is not None
                asked = before.turn.calls
                offered = {tool.name for tool in before.turn.tools}
                known = [at for at, one in enumerate(asked) if one.name in offered]
                assert [asked[at] for at in known] == list(calls)
                cleared |= {
                    call_key(turn, at)
                    for at, check in zip(known, checks, strict=True)
                    if not check.problem and not check.needs_approval
                }
            case Decided(approved=True), AskHuman(key=key):
                cleared.add(key)
            case _:
                pass
        before = taken.run
    return cleared


@given(adversary=adversaries, seed=st.integers(0, 99))
def test_only_calls_that_were_checked_and_allowed_ever_run(adversary: Adversary, seed: int) -> None:
    """The gate fails closed: an error, a silence or a doubt is a no."""
    simulation = adversary.run(loop(), seed=seed)

    assert set(simulation.executions) <= allowed(simulation)


@given(adversary=adversaries, seed=st.integers(0, 99))
def test_no_tool_runs_from_a_reply_that_was_refused_cut_or_overfull(
    adversary: Adversary, seed: int
) -> None:
    """A call whose end is missing may be any call at all."""
    simulation = adversary.run(loop(), seed=seed)

    for taken in replay_steps(loop(), simulation.events):
        if any(isinstance(one, CallTool) for one in taken.effects):
            assert taken.run.turn.reply is not None
            assert taken.run.turn.reply.finish_reason not in VOID
    for step in simulation.run.record.steps:
        if step.finish_reason in VOID:
            assert all(one.status == "not_run" for one in step.tool_results)


@given(adversary=adversaries, cut=st.integers(1, 12), seed=st.integers(0, 9))
def test_nothing_is_wished_for_after_an_abort(adversary: Adversary, cut: int, seed: int) -> None:
    """Stop means stop."""
    simulation = adversary.run(loop(), seed=seed, abort_after=cut)

    for taken in replay_steps(loop(), simulation.events):
        if isinstance(taken.event, Cancelled):
            assert not taken.effects
            assert taken.run.ended


GARBAGE = ("", "yes", "{", '{"x": ', "null", "\x00")


@pytest.mark.parametrize("edited", GARBAGE)
def test_a_denial_denies_whatever_else_it_says(edited: str) -> None:
    """Edited arguments beside a no are still a no."""
    adversary = Adversary(
        (reply("done"), reply(call())),
        checks=(CallCheck(needs_approval=True),),
        decisions=(Approval(False, "no", edited),),
    )

    simulation = adversary.run(loop())

    assert not simulation.executions
    assert ["denied"] == [one.status for one in simulation.run.record.steps[0].tool_results]


@given(adversary=adversaries, seed=st.integers(0, 99))
def test_every_run_call_has_its_result_and_every_refused_one_a_reason(
    adversary: Adversary, seed: int
) -> None:
    """A model that is told nothing tries again, for ever."""
    simulation = adversary.run(loop(), seed=seed)

    for step in simulation.run.record.steps:
        for result in step.tool_results:
            if result.key not in simulation.executions:
                assert result.is_error
                assert result.text
