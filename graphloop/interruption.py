"""Interruption: what a stop makes of a run that is under way.

All that is pending is void. A call that may have run gets its result here, whatever node waited for
it and wherever the table leads from there: so no node takes it for a call that is still to run.
"""

from __future__ import annotations

from typing import TypeVar

from .effects import CallTool, StartRun
from .events import Cancelled
from .run import Ending, EndReason, Run, evolve
from .spending import Spent
from .turn import Turn
from .values import ToolResult, call_key

__all__ = ["INTERRUPTED", "STOPPED", "interrupted"]

S = TypeVar("S")

INTERRUPTED = (
    "It is not known whether this call took effect: the run was cancelled while it ran. Check "
    "before calling it again."
)
STOPPED = (
    "The agent was stopped before it had an answer: the run was cancelled. What it has done until "
    "then is done: check before calling it again."
)


def interrupted(run: Run[S], event: Cancelled, spent: Spent) -> Run[S]:
    """Return the run as a stop leaves it.

    Args:
        run: the run as it stood.
        event: the stop.
        spent: what the run has spent, without what is void. A tool or a child run that had started
            counts: it has run, or may have.
    """
    started = [one for at, one in run.pending.items() if at not in event.unbegun]
    tools = sum(isinstance(one, CallTool) for one in started)
    agents = sum(isinstance(one, StartRun) and run.turn.has_call(one.key) for one in started)
    ending = Ending(EndReason.ABORTED, (event.reason,) if event.reason else (), said=event.said)
    if event.timeout:
        ending = Ending(EndReason.TIMEOUT, ("step_timeout_s",), said=event.said)
    return evolve(
        run,
        seq=run.seq + 1,
        at=event.at,
        pending={},
        started=frozenset(),
        spent=spent + event.spent + Spent(tool_calls=tools, agent_calls=agents),
        turn=_answered(run, event),
        ending=ending,
    )


def _answered(run: Run[S], event: Cancelled) -> Turn:
    """Return the turn with a result of each call that may have run, and had none."""
    turn = run.turn
    void = [run.pending.get(at) for at in event.unbegun]
    surely_not = {turn.place_of(one.key) for one in void if isinstance(one, CallTool | StartRun)}
    agents = {tool.name for tool in turn.tools if tool.kind == "agent"}
    results = list(turn.results or (None,) * len(turn.calls))
    for place, call in enumerate(turn.calls):
        if not turn.started >> place & 1 or results[place] is not None:
            continue
        if place in turn.again or place not in surely_not:
            told = STOPPED if call.name in agents else INTERRUPTED
            key = call_key(turn.number, place)
            results[place] = ToolResult(key, call.id, call.name, told, "unknown")
    return evolve(turn, results=tuple(results)) if any(results) else turn
