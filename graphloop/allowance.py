"""Allowance: what the bounds of a run leave for the calls of a turn.

It is asked twice: before a person is asked about a call, so that nobody is asked in vain, and
before the call runs. Tools get what there is in request order; child runs share what is left then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from .effects import CallTool, StartRun
from .run import Run, Turn
from .spending import Budget
from .values import ResultStatus, ToolResult, ToolSpec, call_key

__all__ = ["NO_TOOL", "answer", "beyond", "free", "has_room", "lacks_calls", "specs_of"]

S = TypeVar("S")

NO_TOOL: Final = ToolSpec("", "", "")
"""Stands for a tool that is not on offer."""


def specs_of(turn: Turn, places: Iterable[int]) -> dict[int, ToolSpec]:
    """Return the tools that these calls of a turn are for, in the same order."""
    named = {tool.name: tool for tool in turn.tools}
    return {place: named.get(turn.calls[place].name, NO_TOOL) for place in places}


def answer(turn: Turn, place: int, content: str, status: ResultStatus) -> ToolResult:
    """Return the result of a call that is answered without running."""
    call = turn.calls[place]
    return ToolResult(call_key(turn.number, place), call.id, call.name, content, status)


def beyond(run: Run[S], specs: Mapping[int, ToolSpec]) -> dict[int, ToolResult]:
    """Return results for those calls that no bound of the run has room for.

    Args:
        run: the run as it stands.
        specs: the calls that would run, in request order, and their tools.
    """
    setup, turn = run.setup, run.turn
    agents: list[int] = []
    tools: list[int] = []
    for place, spec in specs.items():
        (agents if spec.kind == "agent" else tools).append(place)
    refused: dict[int, ToolResult] = {}
    if agents and setup.depth >= setup.depth_max:
        problem = f"Not run: agents may call agents {setup.depth_max} deep, and no deeper."
        refused |= {one: answer(turn, one, problem, "error") for one in agents}
    elif agents and (spent := setup.budget.tripped(run.spent)):
        problem = f"Not run: {', '.join(spent)} of the run is spent."
        refused |= {one: answer(turn, one, problem, "not_run") for one in agents}
    most = setup.budget.tool_calls
    if most is not None:
        running = sum(isinstance(one, CallTool) for one in run.pending.values())
        problem = f"Not run: the run's budget of {most} tool calls has no room for it."
        without = tools[max(0, most - run.spent.tool_calls - running) :]
        refused |= {one: answer(turn, one, problem, "not_run") for one in without}
    return refused


def lacks_calls(specs: Mapping[int, ToolSpec], refused: Iterable[int]) -> bool:
    """Whether one of these calls was refused because the budget has no tool call left."""
    return any(specs[place].kind != "agent" for place in refused)


def free(run: Run[S], tool_calls: int) -> Budget:
    """Return what the budget has left beside what is reserved for children and for these calls."""
    left = run.setup.budget.left(run.spent)
    for effect in run.pending.values():
        if isinstance(effect, StartRun):
            left = left.without(effect.budget)
        elif isinstance(effect, CallTool):
            tool_calls += 1
    return left.without(Budget(tool_calls=tool_calls))


def has_room(run: Run[S]) -> bool:
    """Whether the budget has a tool call left that nobody waits for."""
    agents = {tool.name for tool in run.turn.tools if tool.kind == "agent"}
    waiting = sum(run.turn.calls[place].name not in agents for place in run.turn.unissued)
    return free(run, waiting).tool_calls != 0
