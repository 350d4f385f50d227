"""What comes only so often by the bounds of nodes needs no walk."""

from __future__ import annotations

from graphloop.graph import END, Edges, NodeGraph
from graphloop.nodes import Append, Limit
from graphloop.outcomes import Go, Resend
from graphloop.proofs.ground import Ground
from graphloop.proofs.rule_visits import Most
from graphloop.rules import AtMost


def test_a_rule_is_kept_that_allows_as_much_as_the_bounds_do() -> None:
    """A limit of two is left by `go` twice, and entered once more."""
    limit, append = Limit(2), Append()
    edges: Edges[None] = {
        limit: {Go: append, ...: END},
        append: {Resend: limit, ...: END},
    }
    most = Most(Ground(NodeGraph[None]("rounds", limit, edges)))

    assert most.keeps(AtMost("node:limit", 3))
    assert not most.keeps(AtMost("node:limit", 2))
    assert most.keeps(AtMost("outcome:limit.go", 3))
    assert not most.keeps(AtMost("tool:read", 3))
