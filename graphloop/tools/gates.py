"""Gates: the answers of tools and of gates about a call, from the user's own functions.

The journal keeps the rules that a run began under; only this process knows the functions of their
conditions. A gate is found by its rules: a condition without a function counts as failed, and a
gate that is new holds as well.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ..errors import ConfigError, known_name
from ..policy import Condition, Policy, Rule, policy_of, untold
from ..values import ToolCall
from .tool import AnyTool, ToolContext

__all__ = ["NO_GATES", "Gates", "answer_of", "conditions_of", "gates_of", "rules_of"]


class Gates(NamedTuple):
    """The gates of the runs above, and of the caller, outermost first.

    Args:
        recorded: those that the run began under, as its journal has them.
        added: those that hold as well since the run was resumed.
    """

    recorded: tuple[Policy, ...]
    added: tuple[Policy, ...]


LOG: Final = logging.getLogger("graphloop")

NO_GATES: Final = Gates((), ())


def gates_of(rules: Sequence[tuple[Rule, ...]], given: Sequence[Policy]) -> Gates:
    """Return the gates that a run is held to.

    Args:
        rules: what the run began under (`Setup.rules`).
        given: the gates that this process knows, with their functions.
    """
    added, recorded = [*given], list[Policy]()
    for each in rules:
        known = next((gate for gate in added if gate.rules == each), None)
        if known is not None:
            added.remove(known)
        recorded.append(policy_of(each, {}) if known is None else known)
    return Gates(tuple(recorded), tuple(added))


async def answer_of(
    name: str,
    condition: Condition | bool,  # noqa: FBT001 - a tool may always ask, or never
    tool: AnyTool,
    call: ToolCall,
    context: ToolContext,
    wrong: dict[str, None],
) -> bool | None:
    """Return the answer of a function about a call; None, with a note in `wrong`, if it fails."""
    if isinstance(condition, bool):
        return condition
    try:
        return await tool.holds(condition, call.arguments, context)
    except Exception as error:
        raised = "" if isinstance(error, ConfigError) else f"raised {known_name(error)}: "
        said = f"`{name}`: {raised}{error} It counted against a call of {call.name!r}."
        if said not in wrong:
            LOG.warning("run %s: %s", context.run_id, said, exc_info=error)
        wrong[said] = None
        return None


async def conditions_of(
    gate: Policy, tool: AnyTool, call: ToolCall, context: ToolContext, wrong: dict[str, None]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the conditions of a gate that hold for a call, and those that do not."""
    held, unmet = list[str](), list[str]()
    for name in gate.asked(call.name):
        answer = await answer_of(name, gate.conditions[name], tool, call, context, wrong)
        if answer is not None:
            (held if answer else unmet).append(name)
    return tuple(held), tuple(unmet)


async def rules_of(
    gates: Iterable[Policy],
    tool: AnyTool,
    call: ToolCall,
    context: ToolContext,
    wrong: dict[str, None],
) -> tuple[Rule, ...]:
    """Return the rule by which each gate decides a call."""
    rules: list[Rule] = []
    for gate in gates:
        held, unmet = await conditions_of(gate, tool, call, context, wrong)
        rules.append(gate.decide(call.name, held, untold(gate.rules, held, unmet)))
    return tuple(rules)
