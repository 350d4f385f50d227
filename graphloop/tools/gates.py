"""Gates: evaluate the user's condition functions, and find the rule that decides each tool call.

The journal keeps the rules that a run started with, but not the functions of their conditions. On
resume, `gates_of` finds the gate of this process that has the same rules. A condition without a
function counts as failed. A gate of this process that the journal does not have applies as well.
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
    """The gates of the parent runs and of the caller that apply to a run, outermost first.

    Args:
        recorded: the gates in the run's journal, which applied when the run started.
        added: gates that apply in addition since the run was resumed.
    """

    recorded: tuple[Policy, ...]
    added: tuple[Policy, ...]


LOG: Final = logging.getLogger("graphloop")

NO_GATES: Final = Gates((), ())


def gates_of(rules: Sequence[tuple[Rule, ...]], given: Sequence[Policy]) -> Gates:
    """Return the gates that apply to a run, with the condition functions of this process.

    Args:
        rules: the rules of each gate that the run started with (`Setup.rules`).
        given: the gates of this process, with their functions.
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
    condition: Condition | bool,  # noqa: FBT001 - a bool asks always or never
    tool: AnyTool,
    call: ToolCall,
    context: ToolContext,
    wrong: dict[str, None],
) -> bool | None:
    """Return whether a condition holds for a call; None if its function fails.

    The failure is added to `wrong` as a warning that begins with `name`.
    """
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
    """Return the names of a gate's conditions that hold for a call, and of those that do not.

    A condition whose function fails is in neither tuple; the failure is added to `wrong`.
    """
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
    """Return, for each gate, the rule that decides a call; add failed conditions to `wrong`."""
    rules: list[Rule] = []
    for gate in gates:
        held, unmet = await conditions_of(gate, tool, call, context, wrong)
        rules.append(gate.decide(call.name, held, untold(gate.rules, held, unmet)))
    return tuple(rules)
