"""Every rule that fits a graph gets a verdict, on every graph."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphloop.graph import names_of
from graphloop.proofs.checking import check
from graphloop.rules import (
    Rules,
    always_followed_by,
    at_most,
    never,
    only_after,
    rules_of,
)
from tests.sizes import NIGHTLY, sized
from tests.varied_graphs import seeded, varied

TOOLS = ("tool:read", "tool:*", "approval:read", "approval:*")


def drawn_rule(rng: random.Random, words: list[str]) -> Rules:
    """Return a rule of any form, over different words."""
    one, two, three = rng.sample(words, 3)
    return rng.choice(
        (
            never(one),
            never(one, before=two),
            at_most(one, rng.randint(1, 3)),
            at_most(one, rng.randint(1, 3), per=two),
            only_after(one, two),
            only_after(one, two, since=three),
            always_followed_by(one, two),
        )
    )


@pytest.mark.timeout(0 if NIGHTLY else 300)
@settings(max_examples=sized(7, 2_000), deadline=None)
@given(st.integers(0, 2**32), st.booleans())
@example(0, True)
def test_every_rule_on_every_graph_gets_a_verdict(seed: int, wild: bool) -> None:
    """A proof that raises says nothing about the graph, and hides all that it knew."""
    rng = seeded(seed)
    graph = varied(rng, wild=wild).graph
    known = names_of(graph)
    outcomes = [f"outcome:{node}.{word}" for node, word in known.outcomes]
    kinds = [f"outcome:{word}" for _, word in known.outcomes]
    words = [*(f"node:{name}" for name in known.nodes), *dict.fromkeys(outcomes + kinds), *TOOLS]
    # What a node leaves by is in each graph, also in those that no run arrives at.
    rules = rules_of(at_most(one, 1) for one in outcomes)
    for _ in range(8):
        rules = rules & drawn_rule(rng, words)

    report = check(graph, rules)

    found = [one.code for one in report.findings]
    assert "GL12" in [*report.proven, *found, *[one.code for one in report.unknown]]
