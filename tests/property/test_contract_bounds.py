"""Contract 8: hard bounds hold against models that never want to stop."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphloop.events import CallCheck, EffectFailed, ModelReplied
from graphloop.nodes.extend import RETRIES_MAX
from graphloop.policy.approvals import Approval
from graphloop.run import EndReason
from graphloop.testing.sim import Simulation
from graphloop.tools.outcome import ToolOutcome
from graphloop.values import FinishReason, OpaquePart
from tests.strategies import Adversary, adversaries, call, loop, reply

REQUESTS_MAX = 1 + RETRIES_MAX
"""How often one turn may ask the model."""

CUT = reply(call(arguments='{"x": '), finish=FinishReason.LENGTH)
PAUSED = reply(OpaquePart("{}"), finish=FinishReason.PAUSE)
ERROR = (ToolOutcome("no", "error"),)


def model_calls(simulation: Simulation[None]) -> int:
    """Return how often the model answered."""
    return sum(isinstance(one, ModelReplied) for one in simulation.events)


def ends(simulation: Simulation[None]) -> EndReason | None:
    """Return why the run ended."""
    ending = simulation.run.ending
    return None if ending is None else ending.reason


@given(
    adversary=adversaries,
    max_steps=st.integers(1, 7),
    max_consecutive_tool_errors=st.integers(1, 3),
    max_pauses=st.integers(0, 3),
)
@example(
    adversary=Adversary(
        (reply(call()),), (ToolOutcome("", "unknown"),), (CallCheck("", True),), (Approval(True),)
    ),
    max_steps=1,
    max_consecutive_tool_errors=1,
    max_pauses=0,
)
def test_no_model_gets_more_turns_than_it_was_given(
    adversary: Adversary, max_steps: int, max_consecutive_tool_errors: int, max_pauses: int
) -> None:
    """`max_steps` is what stands between a confused model and an empty bank account."""
    graph = loop(
        max_steps=max_steps,
        max_consecutive_tool_errors=max_consecutive_tool_errors,
        max_pauses=max_pauses,
    )

    simulation = adversary.run(graph)

    run = simulation.run
    assert max_steps >= len(run.record.steps)
    assert max_steps * REQUESTS_MAX >= model_calls(simulation)
    assert model_calls(simulation) == run.spent.model_calls
    assert all(max_consecutive_tool_errors >= count for count in run.counters.tool_errors.values())
    assert max_pauses + 1 >= pauses_in_a_row(simulation)


def pauses_in_a_row(simulation: Simulation[None]) -> int:
    """Return the longest series of turns that paused."""
    longest = current = 0
    for step in simulation.run.record.steps:
        current = current + 1 if step.finish_reason is FinishReason.PAUSE else 0
        longest = max(longest, current)
    return longest


@pytest.mark.parametrize(
    ("adversary", "calls", "reason"),
    [
        (Adversary((reply(call()),)), 6, EndReason.MAX_STEPS),
        (Adversary((reply(call(), finish=FinishReason.STOP),)), 6, EndReason.MAX_STEPS),
        (Adversary((reply(call(), finish=FinishReason.PAUSE),)), 3, EndReason.MAX_PAUSES),
        (Adversary((PAUSED,)), 3, EndReason.MAX_PAUSES),
        (Adversary((reply(finish=FinishReason.PAUSE),)), 3, EndReason.MAX_PAUSES),
        (Adversary((CUT,)), 2, EndReason.LENGTH),
        (Adversary((reply(),)), 2, EndReason.EMPTY_RESPONSE),
        (Adversary((reply("  \n"),)), 2, EndReason.EMPTY_RESPONSE),
        (Adversary((reply(call("nowhere")),)), 3, EndReason.TOOL_ERRORS),
        (Adversary((reply(call()),), ERROR), 3, EndReason.TOOL_ERRORS),
        (Adversary((reply(call()),), (OSError("disk"),)), 3, EndReason.TOOL_ERRORS),
        (Adversary((reply(call()),), checks=(CallCheck("bad"),)), 3, EndReason.TOOL_ERRORS),
        (Adversary((reply(call()),), checks=(OSError("?"),)), 3, EndReason.TOOL_ERRORS),
        (
            Adversary(
                (reply(call()),),
                checks=(CallCheck(needs_approval=True),),
                decisions=(Approval(False),),
            ),
            6,
            EndReason.MAX_STEPS,
        ),
    ],
    ids=[
        "always calls",
        "always calls and says stop",
        "always calls and says pause",
        "always pauses",
        "always pauses and says nothing",
        "always is cut",
        "always is empty",
        "always is blank",
        "always invents a tool",
        "always fails",
        "always raises",
        "always fails validation",
        "always fails to be checked",
        "always is denied",
    ],
)
def test_a_model_that_repeats_one_thing_is_stopped_for_that_reason(
    adversary: Adversary, calls: int, reason: EndReason
) -> None:
    """Each kind of stubbornness has a bound of its own, and the result names it."""
    simulation = adversary.run(loop())

    assert reason == ends(simulation)
    assert calls == model_calls(simulation)


@given(seed=st.integers(0, 999))
def test_a_success_between_failures_keeps_the_loop_alive(seed: int) -> None:
    """The guard counts consecutive steps, not failures."""
    mixed = Adversary(
        (reply(call(), call()),), (ToolOutcome("no", "error"), ToolOutcome("yes", "ok"))
    )

    simulation = mixed.run(loop(), seed=seed)

    assert EndReason.MAX_STEPS == ends(simulation)


def test_a_model_that_cannot_be_reached_is_asked_once() -> None:
    """Retrying is the provider's business; a second layer of it would multiply."""
    simulation = Adversary((ConnectionError("line"),)).run(loop())

    assert EndReason.ERROR == ends(simulation)
    assert 1 == sum(isinstance(one, EffectFailed) for one in simulation.events)
