"""The most that a run can come to, in the world it is given: its budget, its agents, its options.

A graph alone does not know which tools are agents. Who runs it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import front
from ..events import Setup
from ..graph import Graph
from ..model_price import ModelPrice
from .world import World

if TYPE_CHECKING:
    from ..proofs.most import Bound

__all__ = ["reply_max", "run_bound"]


def reply_max(setup: Setup, world: World) -> int | None:
    """Return how many tokens one reply may have, also to an agent of the world; None for any."""
    limits = [setup.settings.max_tokens]
    limits += [one.opener.reply_max for one in world.children.values()]
    known = [one for one in limits if one is not None]
    return max(known) if len(known) == len(limits) else None


def run_bound(
    graph: Graph[Any],
    setup: Setup,
    world: World,
    context_window: int | None,
    price: ModelPrice | None,
) -> Bound:
    """Return the bound of one run of `graph`, with the agents that it may call.

    Args:
        graph: what runs.
        setup: the run's budget and limits.
        world: the agents of the run.
        context_window: how many tokens the largest of the models' windows holds.
        price: the price of the dearest of the models.
    """
    agents = {
        name: plan.opener.bound(context_window=context_window, price=price)
        for name, plan in world.children.items()
    }
    called = [one for one in setup.tools if one.kind == "agent" and setup.depth_max > 0]
    proofs = front.bound
    return proofs.bound(
        graph,
        budget=setup.budget,
        max_tokens=reply_max(setup, world),
        context_window=context_window,
        price=price,
        agents=agents,
        called=proofs.Called(
            {one.name: agents[one.name] for one in called if not one.takes_over},
            {one.name: agents[one.name] for one in called if one.takes_over},
        ),
    )
