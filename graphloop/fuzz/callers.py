"""Callers: what an adversarial caller does with the turns of a run that it iterates."""

from __future__ import annotations

from typing import Any

from ..events import Steered
from ..run import Run
from ..values import Message, ToolResult, UserMessage, call_key, evolve
from .arguments import unfit
from .choices import Choices

__all__ = ["steered_by_a_caller"]


def steered_by_a_caller(run: Run[Any], choices: Choices) -> Steered:
    """Return what the caller of a run has to say of its turn; nothing is the simplest.

    It adds to the conversation, answers calls itself, replaces the whole conversation, or takes
    tools from the model.
    """
    said = (UserMessage(f"And {unfit(choices)!a}?"),) if choices.chance(3) else ()
    setup = run.setup
    fewer = evolve(setup, tools=setup.tools[:1]) if choices.chance(16) else None
    return Steered(run.at, 0, _conversation(run, choices), said, _results(run, choices), fewer)


def _conversation(run: Run[Any], choices: Choices) -> tuple[Message, ...] | None:
    """Return another conversation in place of the run's; None for the run's own."""
    if not choices.chance(12):
        return None
    return choices.pick(((UserMessage("Anew."),), (*run.messages, UserMessage("Go on."))))


def _results(run: Run[Any], choices: Choices) -> tuple[ToolResult, ...]:
    """Return the caller's own answers to some calls of the turn."""
    turn = run.turn
    if not turn.calls or not choices.chance(5):
        return ()
    return tuple(
        [
            ToolResult(call_key(turn.number, place), call.id, call.name, "mine")
            for place, call in enumerate(turn.calls)
            if not choices.chance(3)
        ]
    )
