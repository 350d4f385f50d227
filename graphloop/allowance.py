"""Allowance: what the bounds of a run leave for the calls of a turn.

It is asked twice: before a person is asked about a call, so that nobody is asked in vain, and
before the call runs. Tools and agents get the calls that there are in request order; child runs
share what is left then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple, TypeVar

from .effects import CallTool, StartRun
from .events import Failure, Setup
from .run import Ending, EndReason, Run, evolve
from .spending import Budget
from .turn import Queue, Turn
from .values import ResultStatus, ToolResult, ToolSpec, call_key

__all__ = [
    "NO_TOOL",
    "Beyond",
    "answer",
    "beyond",
    "deeper",
    "free",
    "has_room",
    "no_start",
    "places_of",
    "queued",
    "starts",
    "too_deep",
    "tools_waiting",
    "without_room",
]

S = TypeVar("S")

NO_TOOL: Final = ToolSpec("", "", "")
"""Stands for a tool that is not on offer."""


class Beyond(NamedTuple):
    """How a call is answered that has no room; `limit` is the limit of calls that it is beyond."""

    result: ToolResult
    limit: str = ""


def queued(turn: Turn, places: Iterable[int]) -> tuple[Queue, ...]:
    """Return these calls of a turn, given in request order, as one queue a tool."""
    waiting: dict[str, list[int]] = {}
    for place in places:
        waiting.setdefault(turn.calls[place].name, []).append(place)
    named = {tool.name: tool for tool in turn.tools} if waiting else {}
    queues: list[Queue] = []
    for name, found in waiting.items():
        queues.append(Queue(named.get(name, NO_TOOL), tuple(found)))
    return tuple(queues)


def places_of(queues: Iterable[Queue]) -> list[int]:
    """Return the places of the calls that wait, in request order."""
    return sorted([place for queue in queues for place in queue.places])


def answer(turn: Turn, place: int, content: str, status: ResultStatus) -> ToolResult:
    """Return the result of a call that is answered without running."""
    call = turn.calls[place]
    return ToolResult(call_key(turn.number, place), call.id, call.name, content, status)


def beyond(run: Run[S], queues: Sequence[Queue]) -> dict[int, Beyond]:
    """Return results for those calls, of all that wait, that no bound of the run has room for."""
    agents = [queue for queue in queues if queue.tool.kind == "agent"]
    refused = _agents_beyond(run, agents) if agents else {}
    most = run.setup.budget.tool_calls
    if most is not None:
        running = sum(isinstance(one, CallTool) for one in run.pending.values())
        room = max(0, most - run.spent.tool_calls - running)
        if tools_waiting(queues) > room:
            tools = places_of([queue for queue in queues if queue not in agents])
            refused |= {place: _no_call(run, place, most, "tool") for place in tools[room:]}
    return refused


def no_start(run: Run[S], agents: Iterable[str]) -> Ending | None:
    """Return how a run ends whose node would begin runs of these agents; None if it may."""
    setup = run.setup
    if (failure := too_deep(setup, agents)) is not None:
        return Ending(EndReason.ERROR, failure=failure)
    spent = setup.budget.tripped(run.spent)
    return Ending(EndReason.BUDGET, spent) if spent else None


def too_deep(setup: Setup, agents: Iterable[str]) -> Failure | None:
    """Return why a run of this setup begins no runs of these agents; None if it may."""
    most = setup.depth_max
    if setup.depth < most:
        return None
    return Failure("ConfigError", deeper(agents, most, most + 1))


def deeper(agents: Iterable[str], most: int, needed: int) -> str:
    """Return, in words, that these agents would be too deep, and how deep would do."""
    named = ", ".join(sorted({repr(one) for one in agents}))
    return f"{named} would be more than {most} agents deep. Fix: max_agent_depth={needed}"


def tools_waiting(queues: Iterable[Queue]) -> int:
    """Return how many of the calls that wait are of tools, not of agents."""
    return sum([len(queue.places) for queue in queues if queue.tool.kind != "agent"])


def starts(queues: Iterable[Queue]) -> int:
    """Return how many of these calls may begin agents: of those that take over, only one."""
    agents = [queue for queue in queues if queue.tool.kind == "agent"]
    handoffs = [queue for queue in agents if queue.tool.takes_over]
    return sum([len(one.places) for one in agents if one not in handoffs]) + bool(handoffs)


def without_room(turn: Turn, refused: Iterable[Beyond]) -> Turn:
    """Return the turn, told of the limits that these calls were refused for."""
    limits = [*turn.beyond_budget, *[one.limit for one in refused if one.limit]]
    return evolve(turn, beyond_budget=tuple(dict.fromkeys(limits))) if limits else turn


def free(run: Run[S], tool_calls: int, agent_calls: int = 0) -> Budget:
    """Return what the budget has left beside what is reserved for children and for these calls."""
    left = run.setup.budget.left(run.spent)
    for effect in run.pending.values():
        if isinstance(effect, StartRun):
            left = left.without(effect.budget)
            agent_calls += run.turn.has_call(effect.key)
        elif isinstance(effect, CallTool):
            tool_calls += 1
    return left.without(Budget(tool_calls=tool_calls, agent_calls=agent_calls))


def has_room(run: Run[S]) -> bool:
    """Whether the budget has a tool call left that nobody waits for."""
    return free(run, tools_waiting(run.turn.waiting)).tool_calls != 0


def _agents_beyond(run: Run[S], agents: Sequence[Queue]) -> dict[int, Beyond]:
    """Return results for those calls of agents that cannot begin a child run."""
    setup, turn = run.setup, run.turn
    if setup.depth >= setup.depth_max:
        problem = f"Not run: agents may call agents {setup.depth_max} deep, and no deeper."
        return {one: Beyond(answer(turn, one, problem, "error")) for one in places_of(agents)}
    if spent := setup.budget.tripped(run.spent):
        problem = f"Not run: {', '.join(spent)} of the run is spent."
        return {one: Beyond(answer(turn, one, problem, "not_run")) for one in places_of(agents)}
    most = setup.budget.agent_calls
    if most is None:
        return {}
    running = [one.key for one in run.pending.values() if isinstance(one, StartRun)]
    room = max(0, most - run.spent.agent_calls - sum(map(turn.has_call, running)))
    if starts(agents) <= room:
        return {}
    handoffs = places_of([queue for queue in agents if queue.tool.takes_over])
    # Of agents that take over, only the first can begin.
    never = set(handoffs[1:])
    beginning = [place for place in places_of(agents) if place not in never]
    without = beginning[room:]
    if not set(handoffs[:1]) & set(beginning[:room]):
        without += handoffs[1:]
    return {one: _no_call(run, one, most, "agent") for one in without}


def _no_call(run: Run[S], place: int, most: int, kind: Literal["tool", "agent"]) -> Beyond:
    problem = f"Not run: the run's budget of {most} {kind} calls has no room for it."
    return Beyond(answer(run.turn, place, problem, "not_run"), f"budget.{kind}_calls")
