"""What a child run works with: as strict and as poor as its parent, at least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..drivers.ports import Ports
from ..effects import StartRun
from ..events import Setup
from ..limits import stricter
from ..policy import Condition, Policy, policy_of
from ..run import Run
from ..values import evolve
from .watched import offered_below
from .world import World

__all__ = ["gates_above", "gates_passed", "setup_below"]


def setup_below(
    own: Setup, world: World, effect: StartRun, parent: Run[Any], above: Sequence[Policy]
) -> Setup:
    """Return the setup of a child run.

    Args:
        own: that of a run of the same graph at the top.
        world: the child's tools and agents.
        effect: the wish for the child, with its budget.
        parent: the run that wishes for it.
        above: the rules of the gates above it, outermost first.
    """
    setup = parent.setup
    return evolve(
        own,
        tools=offered_below(own.tools, setup),
        budget=own.budget.tightened(effect.budget),
        rules=(*((*world.allowed, *gate.rules) for gate in above), *own.rules),
        depth=setup.depth + 1,
        depth_max=min(own.depth_max + setup.depth + 1, setup.depth_max),
        signed=setup.signed,
        approval_ttl_s=stricter(setup.approval_ttl_s, own.approval_ttl_s),
    )


def gates_above(run: Run[Any], own: Setup) -> tuple[Policy, ...]:
    """Return the gates above a run that is taken up without the runs above it.

    Its journal holds their rules. Their functions are not known here: what they are asked about
    counts as if they had failed.

    Args:
        run: a run of any depth.
        own: what a run of the same graph works with at the top.
    """
    if not run.setup.depth:
        return ()
    rules = run.setup.rules
    ours = len(own.rules)
    above = rules[:-ours] if ours and rules[-ours:] == own.rules else rules
    return tuple([policy_of(one, {}) for one in above])


def gates_passed(effect: StartRun, parent: Run[Any], ports: Ports[Any]) -> tuple[Policy, ...]:
    """Return the gates of the parent's own graph that have let a call pass which starts a child.

    They hold of what the child does in its name. A child that a node starts has been called by
    nobody.

    Args:
        effect: the wish for the child.
        parent: the run that wishes for it.
        ports: the parent's world.
    """
    if not parent.turn.has_call(effect.key):
        return ()
    unknown: Mapping[str, Condition] = {}
    functions = unknown if ports.own is None else ports.own.conditions
    known = [gate.rules for gate in ports.gates]
    return tuple(
        [
            policy_of(rules, functions)
            for rules in parent.turn.gated
            if not any(rules[-len(one) :] == one for one in known)
        ]
    )
