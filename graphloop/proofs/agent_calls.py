"""Agent calls: how many models are asked where a budget counts the calls of agents.

A reply may call an agent any number of times, and what that agent calls is called as well. But a
run and all runs below it share one number of such calls (`budget(agent_calls=…)`), and each begins
one run. So a run asks no more than it asks alone, and for each call what the dearest of all agents
asks alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf, isfinite
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .most import Bound

__all__ = ["Asked", "alone", "each_call", "shared"]


class Asked(NamedTuple):
    """How many models a run asks at most.

    Attributes:
        calls: in all; infinite if nobody knows.
        turn: after the last check that lets the run go on.
        why: what it follows from.
        problem: why nobody knows.
    """

    calls: float
    turn: float
    why: tuple[str, ...]
    problem: str


def alone(found: Bound) -> float:
    """Return how many models an agent asks at most without the agents that it calls as tools."""
    return _parts(found)[0]


def each_call(called: Mapping[str, Bound], begun: Iterable[Bound]) -> tuple[float, str]:
    """Return how many models one call of an agent asks at most, and if nobody knows, why.

    Args:
        called: the agents that models call as tools, by name.
        begun: the agents that nodes begin, whose models may call others.
    """
    dearest = 0.0
    for name, found in called.items():
        most = max(_parts(found))
        if not isfinite(most):
            return inf, f"the agent {name!r}, a tool: {found.missing['model_calls']}"
        dearest = max(dearest, most)
    return max([dearest, *[_parts(found)[1] for found in begun]]), ""


def shared(every: Asked, own: Asked, each: tuple[float, str], most: int | None) -> Asked:
    """Return how many models a run and its agents ask with so many calls of agents.

    Args:
        every: what is known without a number of them.
        own: what the run asks without them.
        each: what one of them asks.
        most: how many there may be, if that is known.
    """
    if most is None:
        return every
    calls, problem = each
    called = most * calls if most else 0.0
    if not own.calls + called < every.calls:
        unknown = not isfinite(every.calls)
        return every._replace(problem=own.problem or problem) if unknown else every
    why = (f"models call agents at most {most:,} times: {most:,} x {calls:.0f} model calls",)
    return Asked(own.calls + called, own.turn + called, (*own.why, *why), "")


def _parts(found: Bound) -> tuple[float, float]:
    """Return what an agent asks alone, and what each call of an agent in it asks."""
    if found.alone is not None and found.each_call is not None:
        return found.alone, found.each_call
    # Who does not part the two has counted both.
    return inf if found.model_calls is None else found.model_calls, 0
