"""gates: what a run is held to from above, by its journal and by whoever drives it.

The journal keeps the rules that a run began under, so they hold whoever takes it up; what their
conditions ask is known to the process alone. It finds its functions by the rules, never by their
number, for runs are taken up under other gates than they began under: what nobody knows there
counts as failed, and what is new there holds as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ..errors import ConfigError, known_name
from ..policy import Condition, Policy, Rule, policy_of, untold
from ..tools import AnyTool, ToolContext
from ..values import ToolCall

__all__ = ["Gates", "Told", "answer_of", "conditions_told", "gates_of", "words_of"]


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
    gate: Policy, tool: AnyTool, call: ToolCall, context: ToolContext, wrong: dict[str, None]
) -> Told:
    """Ask the conditions of a gate about a call; `wrong` is told of those that do not answer."""
    held, unmet = list[str](), list[str]()
    for name in gate.asked(call.name):
        answer = await answer_of(name, gate.conditions[name], tool, call, context, wrong)
        if answer is not None:
            (held if answer else unmet).append(name)
    return Told(tuple(held), tuple(unmet))


async def answer_of(
    name: str,
    condition: Condition | bool,  # noqa: FBT001 - a tool may always ask, or never
    tool: AnyTool,
    call: ToolCall,
    context: ToolContext,
    wrong: dict[str, None],
) -> bool | None:
    """Return what a function answers about a call; None, and `wrong` is told, if no yes or no."""
    if isinstance(condition, bool):
        return condition
    try:
        return await tool.holds(condition, call.arguments, context)
    except Exception as error:  # noqa: BLE001 - the effect boundary: it counts against the call.
        raised = "" if isinstance(error, ConfigError) else f"raised {known_name(error)}: "
        wrong[f"`{name}`: {raised}{error} It counted against a call of {call.name!r}."] = None
        return None


async def words_of(
    gates: Iterable[Policy],
    tool: AnyTool,
    call: ToolCall,
    context: ToolContext,
    wrong: dict[str, None],
) -> tuple[Rule, ...]:
    """Return what each gate says of a call: the rule that decides it."""
    said: list[Rule] = []
    for gate in gates:
        told = await conditions_told(gate, tool, call, context, wrong)
        said.append(gate.decide(call.name, told.held, untold(gate.rules, *told)))
    return tuple(said)
