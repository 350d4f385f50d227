"""A child run is as strict and as poor as its parent, whatever it may do at the top."""

from __future__ import annotations

from graphloop import allow, budget, deny
from graphloop.agent.inherited_limits import gates_below, setup_below
from graphloop.driver.ports import Ports
from graphloop.effects import StartRun
from graphloop.events import Setup
from graphloop.history import History
from graphloop.stores.memory import MemoryStore
from graphloop.tools.toolbox import Toolbox
from graphloop.values import evolve
from tests.strategies import call, fresh, replied, reply


def test_a_child_has_the_stricter_of_what_it_and_its_parent_may() -> None:
    """Rules are added, outermost first; numbers are the smaller ones."""
    outer, own = deny("drop"), allow("read")
    parent = fresh()
    above = Setup("m", depth=1, depth_max=3, signed=True, approval_ttl_s=9.0)
    parent = evolve(parent, setup=above)
    effect = StartRun(1, "kid.1", "kid", "", History(), budget(tokens=5))
    alone = Setup("own", budget=budget(tokens=7, usd=1.0), rules=(own.rules,), depth_max=0)

    setup = setup_below(alone, effect, parent, (outer,))

    assert ("own", budget(tokens=5, usd=1.0)) == (setup.model, setup.budget)
    assert (outer.rules, own.rules) == setup.rules
    assert (2, 2, True, 9.0) == (setup.depth, setup.depth_max, setup.signed, setup.approval_ttl_s)


def test_an_agents_call_is_held_to_its_own_gate_below() -> None:
    """With its functions; but for the rule that lets its answer pass, which is no tool below."""

    def much(arguments: object, context: object) -> bool:
        return True

    gate = deny("pay", when=much) | allow("*")
    outer, new = allow("read", "kid"), allow("kid")
    turn = replied(reply(call("kid"))).turn
    turn = evolve(turn, gated=((*allow("answer").rules, *gate.rules),))
    parent = evolve(fresh(turn), setup=Setup("m", rules=(outer.rules,), own=("answer",)))
    ports: Ports[None] = Ports(
        store=MemoryStore(), models={}, toolbox=Toolbox(()), gates=(new, outer), own=gate
    )
    called, by_node = (StartRun(1, key, "kid", "", History()) for key in ("c0.0", "kid.1"))

    assert (outer, new, gate) == gates_below(called, parent, ports)
    assert (outer, new) == gates_below(by_node, parent, ports)
