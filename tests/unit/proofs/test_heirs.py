"""Heirs: a child of another name in the place of one."""

from __future__ import annotations

from dataclasses import dataclass

from graphloop.contract import ChildContract, Contract
from graphloop.front.topology import load
from graphloop.graph import END, Edges, Graph
from graphloop.proofs.difference import difference
from graphloop.proofs.heirs import heirs, namesakes
from tests.graphs import OUTCOMES, Place, agent

CHILD = """
graphloop: 1
name: ship
start: prepare_step
nodes:
  prepare_step: {{use: prepare_step}}
  deploy: {{use: child, agent: {name}, prompt: deploy it}}
agents:
  {name}:
    graph:
      graphloop: 1
      name: {name}
      start: prepare_step
      nodes:
        prepare_step: {{use: prepare_step}}
        model_call: {{use: model_call}}
        gate: {{use: gate, rules: [{{{verdict}: "*"}}]}}
        execute: {{use: execute}}
        append: {{use: append}}
        stop_check: {{use: stop_check, max_steps: 8}}
      edges:
        prepare_step: {{ready: model_call, calls: gate, else: END}}
        model_call: {{calls: gate, else: append}}
        gate: {{settled: execute, else: append}}
        execute: {{held: gate, else: append}}
        append: {{answered_calls: stop_check, resend: stop_check, else: END}}
        stop_check: {{go: prepare_step, else: END}}
edges:
  prepare_step: {{ready: deploy, else: END}}
  deploy: {{else: END}}
"""
GIVEN = """
graphloop: 1
name: ship
start: prepare_step
nodes:
  prepare_step: {{use: prepare_step}}
  deploy: {{use: child, agent: {name}, prompt: deploy it}}
agents:
  {name}: {{given: true}}
edges:
  prepare_step: {{ready: deploy, else: END}}
  deploy: {{else: END}}
"""


def test_a_child_of_another_name_is_held_to_what_the_first_promised() -> None:
    """A gate is not got rid of by renaming what it is in."""
    before = load(CHILD.format(name="deployer", verdict="ask"))
    after = load(CHILD.format(name="deployer2", verdict="allow"))
    found = difference(before, after)

    assert [("deploy", "deployer", "deployer2")] == [
        (one.node, one.before.name, one.after.name) for one in heirs(before, after)
    ]
    assert found.weaker
    assert ["deployer2 of deploy"] == [name for name, _ in found.children]
    assert "`gate` allows 'x', which it asked about before" in str(found)
    same = load(CHILD.format(name="deployer2", verdict="ask"))
    assert not difference(before, same).weaker
    assert [] == list(heirs(before, before))


def test_a_child_that_nobody_knows_in_the_place_of_another_is_weaker() -> None:
    """What cannot be compared is not taken for the same."""
    found = difference(load(GIVEN.format(name="one")), load(GIVEN.format(name="two")))

    assert found.weaker
    assert "`deploy` runs the agent 'two', and ran 'one', which nobody can compare" in str(found)


@dataclass(frozen=True)
class Parent(Place):
    """A node that runs graphs."""

    children: tuple[ChildContract, ...] = ()

    @property
    def contract(self) -> Contract:
        return Contract(children=self.children)


def parents(**nodes: tuple[ChildContract, ...]) -> Graph[None]:
    """Return a graph of nodes in a row that run some children."""
    places = [Parent(one, frozenset(OUTCOMES[:1]), children=nodes[one]) for one in nodes]
    edges: Edges[None] = {
        one: {OUTCOMES[0]: places[number] if number < len(places) else END}
        for number, one in enumerate(places, 1)
    }
    return Graph("g", places[0], edges)


def test_children_of_one_name_are_held_to_each_other_in_their_order() -> None:
    """One that moves to another node is held to what nothing took the place of."""
    made = {one: ChildContract("kid", agent()) for one in "abcde"}
    a, b, c, d, e = made.values()
    names = {id(one.graph): name for name, one in made.items()}

    def told(before: Graph[None], after: Graph[None]) -> list[str]:
        pairs = namesakes(before, after)
        return [f"{names[id(old.graph)]}{names[id(new.graph)]}" for _, old, new in pairs]

    assert ["ac", "bd"] == told(parents(one=(a, b)), parents(one=(c, d)))
    assert ["ac", "be"] == told(parents(one=(a, b)), parents(one=(c,), three=(e,)))
    assert ["ac", "be"] == told(parents(one=(a,), two=(b,)), parents(one=(c,), three=(e,)))
    assert ["ac", "ad"] == told(parents(one=(a,)), parents(one=(c, d)))
    assert ["ac", "bd"] == told(
        parents(one=(a,), two=(b,), three=(e,)), parents(one=(c,), two=(d,))
    )


def test_a_second_child_of_a_name_may_have_an_heir() -> None:
    """The first keeps the name; the second is gone all the same."""
    one, other = (ChildContract("kid", agent()) for _ in "ab")
    third = ChildContract("guest", agent())
    found = [*heirs(parents(n=(one, other)), parents(n=(one, third)))]

    assert [("n", other, third)] == found
