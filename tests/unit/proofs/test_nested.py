"""Which graphs are proven along, and by what name each is told."""

from __future__ import annotations

from graphloop.graph import END, Edges, Graph
from graphloop.nodes import Append, Child
from graphloop.proofs.nested import NEST_MAX, USES_MAX, nested, nobody_knows
from graphloop.proofs.report import PROPERTIES, Finding, Unknown
from graphloop.spending import Budget
from tests.nested_graphs import nest, shared, ungated


def test_uses_are_found_nearest_first_with_the_names_that_lead_to_them() -> None:
    """The names of a finding's node are those names, and its own."""
    uses = nested(shared(ungated(), 2), None)

    assert ["", "c1-0/", "c1-1/", "c1-0/c0-0/"] == [one.prefix for one in uses][:4]
    assert 1 + 2 + 4 == len(uses)
    assert 3 == len({one.key for one in uses})


def test_no_graph_is_left_out_however_many_uses_there_are() -> None:
    """Past the first of them, each is still there once."""
    uses = nested(shared(ungated(), 40), None)

    assert 41 == len({one.key for one in uses})
    assert len(uses) <= USES_MAX + 41


def test_a_child_may_spend_what_its_parent_may() -> None:
    """What it claims is held against that."""
    budget = Budget(tokens=7)

    assert {budget} == {one.budget for one in nested(nest(ungated(), 2), budget)}


def test_what_was_found_is_told_of_the_outermost_graph() -> None:
    """Nobody has to know which graph a node is in."""
    use = nested(nest(ungated(), 2), None)[-1]
    finding = Finding("GL2", "error", "node 'gate'", "wrong", (), "mend it", node="gate")

    told, open_ = use.told(finding), use.told(Unknown("GL6", "dark", "gate"))
    assert isinstance(told, Finding)
    assert isinstance(open_, Unknown)
    assert ("k1/k0/gate", "node 'gate' of the child 'k0' of the child 'k1'") == (
        told.node,
        told.place,
    )
    assert ("k1/k0/gate", "in the child 'k1': in the child 'k0': dark") == (
        open_.node,
        open_.reason,
    )


def test_nothing_is_known_of_an_agent_that_is_only_named_or_too_deep() -> None:
    """Everything that is proven of a graph is open then."""
    child, append = Child("desk"), Append()
    edges: Edges[None] = {child: {...: append}, append: {...: END}}
    (named,) = nested(Graph("g", child, edges), None)
    deep = nested(nest(ungated(), NEST_MAX + 1), None)

    codes = [code for code in PROPERTIES if code != "GL12"]
    assert codes == [one.code for one in nobody_knows(named)]
    assert [(NEST_MAX, codes)] == [
        (len(one.path), found)
        for one in deep
        if (found := [each.code for each in nobody_knows(one)])
    ]
