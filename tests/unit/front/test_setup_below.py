"""A child run is as strict and as poor as its parent, whatever it may do at the top."""

from __future__ import annotations

from graphloop import allow, budget, deny
from graphloop.effects import StartRun
from graphloop.events import Setup
from graphloop.front.setup_below import setup_below
from graphloop.front.world import World
from graphloop.history import History
from graphloop.testing import ScriptedModel
from graphloop.values import evolve
from tests.strategies import fresh


def test_a_child_has_the_stricter_of_what_it_and_its_parent_may() -> None:
    """Rules are added, outermost first; numbers are the smaller ones."""
    outer, own = deny("drop"), allow("read")
    parent = fresh()
    above = Setup("m", depth=1, depth_max=3, signed=True, approval_ttl_s=9.0)
    parent = evolve(parent, setup=above)
    effect = StartRun(1, "kid.1", "kid", "", History(), budget(tokens=5))
    world = World(ScriptedModel([]), {}, ())
    alone = Setup("own", budget=budget(tokens=7, usd=1.0), rules=(own.rules,), depth_max=0)

    setup = setup_below(alone, world, effect, parent, (outer,))

    assert ("own", budget(tokens=5, usd=1.0)) == (setup.model, setup.budget)
    assert (outer.rules, own.rules) == setup.rules
    assert (2, 2, True, 9.0) == (setup.depth, setup.depth_max, setup.signed, setup.approval_ttl_s)
