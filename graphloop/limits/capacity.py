"""Capacity: the waiting calls of a turn that the run's limits still allow.

A gate checks capacity before a person is asked about a call, so that no approved call is refused
for a limit. An execute node checks capacity before a call runs. Tools and agents get the remaining
calls in request order; child runs share the budget that then remains.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple, TypeVar

from ..effects import CallTool, StartRun
from ..events import Failure, Setup
from ..run import Ending, EndReason, Run, evolve
from ..spending import Budget
from ..turn import Queue, Turn
from ..values import ResultStatus, ToolResult, ToolSpec, call_key

__all__ = [
    "NO_TOOL",
    "CallOverLimit",
    "answer",
    "budget_remaining",
    "deeper",
    "has_capacity",
    "no_start",
    "note_limits",
    "places_of",
    "queued",
    "refusals",
    "starts",
    "too_deep",
    "tools_waiting",
]

S = TypeVar("S")

NO_TOOL: Final = ToolSpec("", "", "")
"""The placeholder for a tool that is not on offer."""


class CallOverLimit(NamedTuple):
    """The refusal of a call over a limit: its result, and the name of the spent limit if any."""

    result: ToolResult
    limit: str = ""


def queued(turn: Turn, places: Iterable[int]) -> tuple[Queue, ...]:
    """Return the calls at these indices of a turn as one queue for each tool."""
    waiting: dict[str, list[int]] = {}
    for place in places:
        waiting.setdefault(turn.calls[place].name, []).append(place)
    named = turn.tools.by_name
    queues: list[Queue] = []
    for name, own_places in waiting.items():
        queues.append(Queue(named.get(name, NO_TOOL), tuple(own_places)))
    return tuple(queues)


def places_of(queues: Iterable[Queue]) -> list[int]:
    """Return the indices of all queued calls in their turn, in request order."""
    return sorted([place for queue in queues for place in queue.places])


def answer(turn: Turn, place: int, content: str, status: ResultStatus) -> ToolResult:
    """Return a result for a call that does not run, with this text and status."""
    call = turn.calls[place]
    return ToolResult(call_key(turn.number, place), call.id, call.name, content, status)


def refusals(run: Run[S], queues: Sequence[Queue]) -> dict[int, CallOverLimit]:
    """Return a refusal, by index, for each queued call that the run's limits do not allow."""
    agents = [queue for queue in queues if queue.tool.kind == "agent"]
    refused = _agents_beyond(run, agents) if agents else {}
    most = run.setup.budget.tool_calls
    if most is not None:
        room = max(0, most - run.spent.tool_calls - _tools_running(run))
        tools = places_of([queue for queue in queues if _is_counted(run, queue)])
        if len(tools) > room:
            refused |= {place: _no_call(run, place, most, "tool") for place in tools[room:]}
    return refused


def no_start(run: Run[S], agents: Iterable[str]) -> Ending | None:
    """Return the run's ending if a limit forbids it to start these agents; else None."""
    setup = run.setup
    if (failure := too_deep(setup, agents)) is not None:
        return Ending(EndReason.ERROR, failure=failure)
    spent = setup.budget.tripped(run.spent)
    return Ending(EndReason.BUDGET, spent) if spent else None


def too_deep(setup: Setup, agents: Iterable[str]) -> Failure | None:
    """Return the failure of a run that is nested too deep to start these agents; else None."""
    most = setup.depth_max
    if setup.depth < most:
        return None
    return Failure("ConfigError", deeper(agents, most, most + 1))


def deeper(agents: Iterable[str], most: int, needed: int) -> str:
    """Return the error message for agents that would be nested deeper than `most`."""
    named = ", ".join(sorted({repr(agent) for agent in agents}))
    return f"{named} would be more than {most} agents deep. Fix: max_agent_depth={needed}"


def tools_waiting(run: Run[S], queues: Iterable[Queue]) -> int:
    """Return the number of queued calls that count as tool calls of the budget."""
    return sum([len(queue.places) for queue in queues if _is_counted(run, queue)])


def _is_counted(run: Run[S], queue: Queue) -> bool:
    """Whether calls of a tool count: those of agents and of the loop's own tools do not."""
    return queue.tool.kind != "agent" and queue.tool.name not in run.setup.own


def _tools_running(run: Run[S]) -> int:
    """Return the number of pending calls that count as tool calls of the budget."""
    calls = [effect.call.name for effect in run.pending.values() if isinstance(effect, CallTool)]
    return sum(name not in run.setup.own for name in calls)


def starts(queues: Iterable[Queue]) -> int:
    """Return the number of agents that these calls may start; all takeovers count as one."""
    agents = [queue for queue in queues if queue.tool.kind == "agent"]
    handoffs = [queue for queue in agents if queue.tool.takes_over]
    return sum([len(queue.places) for queue in agents if queue not in handoffs]) + bool(handoffs)


def note_limits(turn: Turn, refused: Iterable[CallOverLimit]) -> Turn:
    """Return the turn with the limits of these refused calls added to `beyond_budget`."""
    limits = [*turn.beyond_budget, *[refusal.limit for refusal in refused if refusal.limit]]
    return evolve(turn, beyond_budget=tuple(dict.fromkeys(limits))) if limits else turn


def budget_remaining(run: Run[S], tool_calls: int, agent_calls: int = 0) -> Budget:
    """Return the remaining budget, less pending children and calls, and less these new calls."""
    left, tool_calls = run.setup.budget.remaining(run.spent), tool_calls + _tools_running(run)
    for effect in run.pending.values():
        if isinstance(effect, StartRun):
            left = left.without(effect.budget)
            agent_calls += run.turn.has_call(effect.key)
    return left.without(Budget(tool_calls=tool_calls, agent_calls=agent_calls))


def has_capacity(run: Run[S]) -> bool:
    """Whether the budget allows one more tool call besides the waiting calls."""
    return budget_remaining(run, tools_waiting(run, run.turn.waiting)).tool_calls != 0


def _agents_beyond(run: Run[S], agents: Sequence[Queue]) -> dict[int, CallOverLimit]:
    """Return a refusal, by index, for each call of an agent that cannot start a run."""
    setup, turn = run.setup, run.turn
    if setup.depth >= setup.depth_max:
        problem = f"Not run: agents may call agents {setup.depth_max} deep, and no deeper."
        return {at: CallOverLimit(answer(turn, at, problem, "error")) for at in places_of(agents)}
    if spent := setup.budget.tripped(run.spent):
        problem = f"Not run: {', '.join(spent)} of the run is spent."
        return {at: CallOverLimit(answer(turn, at, problem, "not_run")) for at in places_of(agents)}
    most = setup.budget.agent_calls
    if most is None:
        return {}
    running = [effect.key for effect in run.pending.values() if isinstance(effect, StartRun)]
    room = max(0, most - run.spent.agent_calls - sum(map(turn.has_call, running)))
    if starts(agents) <= room:
        return {}
    handoffs = places_of([queue for queue in agents if queue.tool.takes_over])
    # Of agents that take over, only the first can start.
    never = set(handoffs[1:])
    starting = [place for place in places_of(agents) if place not in never]
    without = starting[room:]
    if not set(handoffs[:1]) & set(starting[:room]):
        without += handoffs[1:]
    return {place: _no_call(run, place, most, "agent") for place in without}


def _no_call(run: Run[S], place: int, most: int, kind: Literal["tool", "agent"]) -> CallOverLimit:
    problem = f"Not run: the run's budget of {most} {kind} calls has no room for it."
    return CallOverLimit(answer(run.turn, place, problem, "not_run"), f"budget.{kind}_calls")
