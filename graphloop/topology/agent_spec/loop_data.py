"""The loop that an agent of Open Agent Spec stands for, as a topology says it.

Agent Spec says what an agent is given, not how it goes on: this is how it goes on here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..forms import Data

__all__ = ["GO_ON", "STEPS_MAX", "answer_data", "appended", "loop_data"]

GO_ON: Final = "Go on from here, as you were told to."
"""What an agent is told that comes after another: most models reply to a person only."""

STEPS_MAX: Final = 20
"""How many turns an agent has: Agent Spec has no bound, and a loop needs one."""


def loop_data(asked: Sequence[str], free: Sequence[str], model: str) -> dict[str, Data]:
    """Return the nodes and edges of an agent with tools.

    Args:
        asked: the tools that a person has to confirm.
        free: the other tools.
        model: the label of the model to ask; empty for the run's own.
    """
    rules: list[Data] = []
    if asked:
        # Once a gate has rules, what none of them matches is denied.
        rules.append({"ask": [*asked]})
        if free:
            rules.append({"allow": [*free]})
    return {
        "start": "prepare_step",
        "nodes": {
            "prepare_step": {"use": "prepare_step"},
            "model_call": {"use": "model_call", **({"model": model} if model else {})},
            "gate": {"use": "gate", **({"rules": rules} if rules else {})},
            "execute": {"use": "execute"},
            "append": {"use": "append"},
            "stop_check": {"use": "stop_check", "max_steps": STEPS_MAX},
        },
        "edges": {
            "prepare_step": {"ready": "model_call", "calls": "gate", "else": "END"},
            "model_call": {"calls": "gate", "failed": "END", "else": "append"},
            "gate": {"settled": "execute", "else": "append"},
            "execute": {"held": "gate", "else": "append"},
            "append": {"answered_calls": "stop_check", "resend": "stop_check", "else": "END"},
            "stop_check": {"go": "prepare_step", "else": "END"},
        },
    }


def answer_data(model: str) -> dict[str, Data]:
    """Return the nodes and edges of an agent without tools: it answers once."""
    return {
        "start": "prepare_step",
        "nodes": {
            "prepare_step": {"use": "prepare_step"},
            "model_call": {"use": "model_call", **({"model": model} if model else {})},
            "append": {"use": "append"},
        },
        "edges": {
            "prepare_step": {"ready": "model_call", "calls": "append", "else": "END"},
            "model_call": {"failed": "END", "else": "append"},
            "append": {"else": "END"},
        },
    }


def appended(target: str) -> dict[str, Data]:
    """Return the row of a node that appends an agent's answer, and goes on to `target`."""
    if target == "END":
        return {"else": "END"}
    return {"final": target, "resend": target, "else": "END"}
