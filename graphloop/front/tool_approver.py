"""The user's `approve_tool_call`, told of a call as somebody outside knows it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

from ..approvals import Approval, refuse_edit
from ..drivers.pending import Pending, ask_key, question_of
from ..drivers.ports import Approver, LeftOpen
from ..effects import AskHuman
from ..policy import Policy, Rule, may_ask
from ..run import Run
from .answers import approval_of

__all__ = ["Decide", "ToolApprover", "approver_alone", "approver_below"]

Decide: TypeAlias = Callable[[Pending], bool | Approval | Awaitable[bool | Approval]]


@final
@dataclass(frozen=True)
class ToolApprover:
    """Asks `decide` about the calls of one run.

    No agent may approve what its callers are to be asked about: what a gate above asks, by today's
    rules or by those of the run's journal, is left to those who answer there.

    Args:
        decide: the user's function.
        agents: those that the run is in, outermost first.
        own: the rules of gates that are not above whoever brings it.
        above: today's rules of those that are; None where nobody is above.
    """

    decide: Decide
    agents: tuple[str, ...] = ()
    own: tuple[tuple[Rule, ...], ...] = ()
    above: tuple[tuple[Rule, ...], ...] | None = None

    async def __call__(self, effect: AskHuman, run: Run[Any]) -> Approval:
        """Ask about one call; everything that is not exactly an approval denies it.

        Raises:
            ConfigError: the answer edits a call that may have run.
            LeftOpen: a gate above asks about the call.
        """
        if self.above is not None:
            recorded = [rules for rules in run.setup.rules if rules not in self.own]
            if any(may_ask(rules, effect.call.name) for rules in (*recorded, *self.above)):
                raise LeftOpen
        key, path = ask_key(effect), run.id.partition("/")[2]
        pending = question_of(run, effect, f"{path}/{key}" if path else key, self.agents)
        answer = self.decide(pending)
        if inspect.isawaitable(answer):
            answer = await answer
        approval = approval_of(answer)
        refuse_edit(pending.key, approval, unknown=pending.unknown)
        return approval


def approver_below(
    inherited: Approver[Any] | None,
    own: ToolApprover | None,
    agent: str,
    parent: Run[Any],
    gates: Iterable[Policy],
) -> Approver[Any] | None:
    """Return who decides in the runs of an agent that a run calls.

    Args:
        inherited: who decides above (CONTRACT D04); the agent's own is asked only without.
        own: the agent's own.
        agent: its name.
        parent: the run that calls it.
        gates: those that it is held to from above.
    """
    rules = tuple([one.rules for one in gates])
    match inherited or own:
        case ToolApprover(above=above) as approver:
            if inherited is None:
                approver = replace(approver, above=rules)
            elif above is not None:
                known = {*parent.setup.rules, *above}
                new = tuple([one for one in rules if one not in known])
                approver = replace(approver, own=(*approver.own, *new))
            return replace(approver, agents=(*approver.agents, agent))
        case approver:
            return approver


def approver_alone(own: ToolApprover | None, run: Run[Any]) -> ToolApprover | None:
    """Return who decides in a run that is taken up by itself.

    Those above a child are not here, and still the ones to be asked.
    """
    return replace(own, above=()) if own is not None and run.setup.depth else own
