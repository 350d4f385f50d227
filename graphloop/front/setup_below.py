"""What a child run works with: as strict and as poor as its parent, at least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..drivers.callback_results import gates_of
from ..drivers.ports import Ports
from ..effects import StartRun
from ..events import Setup
from ..limits import stricter
from ..policy import Condition, Policy, allow, policy_of
from ..run import Run
from ..values import evolve
from .watched import offered_below

__all__ = ["gates_below", "setup_below"]


def setup_below(own: Setup, effect: StartRun, parent: Run[Any], above: Sequence[Policy]) -> Setup:
    """Return the setup of a child run.

    Args:
        own: that of a run of the same graph at the top.
        effect: the wish for the child, with its budget.
        parent: the run that wishes for it.
        above: the rules of the gates above it, outermost first.
    """
    setup = parent.setup
    return evolve(
        own,
        tools=offered_below(own.tools, setup),
        budget=own.budget.tightened(effect.budget),
        rules=(*(gate.rules for gate in above), *own.rules),
        depth=setup.depth + 1,
        depth_max=min(own.depth_max + setup.depth + 1, setup.depth_max),
        signed=setup.signed,
        approval_ttl_s=stricter(setup.approval_ttl_s, own.approval_ttl_s),
    )


def gates_below(effect: StartRun, parent: Run[Any], ports: Ports[Any]) -> tuple[Policy, ...]:
    """Return the gates that a child run is held to, outermost first.

    Those of its parent hold below it; and of the parent's own graph those that have let the call
    pass which starts the child, for it works in that call's name. A child that a node starts has
    been called by nobody.

    Args:
        effect: the wish for the child.
        parent: the run that wishes for it.
        ports: the parent's world.
    """
    recorded, added = gates_of(parent.setup.rules, ports.gates)
    passed = parent.turn.gated if parent.turn.has_call(effect.key) else ()
    unknown: Mapping[str, Condition] = {}
    functions = unknown if ports.own is None else ports.own.conditions
    # The parent's own tools are no tools of the child, though one may be named alike.
    answering = allow(*parent.setup.own).rules if parent.setup.own else ()
    own = [
        policy_of(one[len(answering) :] if one[:1] == answering else one, functions)
        for one in passed
    ]
    return (*recorded, *added, *own)
