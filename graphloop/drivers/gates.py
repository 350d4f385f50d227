"""gates: what a run is held to from above, by its journal and by whoever drives it.

The journal keeps the rules that a run began under, so they hold whoever takes it up; what their
conditions ask is known to the process alone. It finds its functions by the rules, never by their
number, for runs are taken up under other gates than they began under: what nobody knows there
counts as failed, and what is new there holds as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ..policy import Policy, Rule, policy_of, untold
from ..tools import AnyTool, ToolContext
from ..values import ToolCall

__all__ = ["Gates", "Told", "conditions_told", "gates_of", "words_of"]


class Gates(NamedTuple):
    """The gates of the runs above, and of the caller, outermost first.

    Args:
        recorded: those that the run began under, as its journal has them.
        added: those that it is held to besides since it was taken up.
    """

    recorded: tuple[Policy, ...]
    added: tuple[Policy, ...]


NONE: Final = Gates((), ())


def gates_of(rules: Sequence[tuple[Rule, ...]], given: Sequence[Policy]) -> Gates:
    """Return the gates that a run is held to.

    Args:
        rules: what it began under (`Setup.rules`).
        given: the gates that this process knows, with their functions.
    """
    if not rules and not given:
        return NONE
    added, recorded = [*given], list[Policy]()
    for one in rules:
        known = next((gate for gate in added if gate.rules == one), None)
        if known is not None:
            added.remove(known)
        recorded.append(policy_of(one, {}) if known is None else known)
    return Gates(tuple(recorded), tuple(added))


class Told(NamedTuple):
    """What was told of the conditions of a gate for one call; of any other nobody could tell."""

    held: tuple[str, ...]
    unmet: tuple[str, ...]


async def conditions_told(
    gate: Policy, tool: AnyTool, call: ToolCall, context: ToolContext
) -> Told:
    """Ask the conditions of a gate about a call."""
    held, unmet = list[str](), list[str]()
    for name in gate.asked(call.name):
        try:
            answer = await tool.holds(gate.conditions[name], call.arguments, context)
        except Exception:  # noqa: BLE001, S112 - a condition that fails has told nothing.
            continue
        (held if answer else unmet).append(name)
    return Told(tuple(held), tuple(unmet))


async def words_of(
    gates: Iterable[Policy], tool: AnyTool, call: ToolCall, context: ToolContext
) -> tuple[Rule, ...]:
    """Return what each gate says of a call: the rule that decides it."""
    said: list[Rule] = []
    for gate in gates:
        told = await conditions_told(gate, tool, call, context)
        said.append(gate.decide(call.name, told.held, untold(gate.rules, *told)))
    return tuple(said)
