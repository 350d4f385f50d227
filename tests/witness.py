"""Witnesses as ways of a graph's table, and whether a run takes them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from graphloop.graph import NodeGraph
from graphloop.outcomes import outcome_name
from graphloop.proofs.proof_graph import Arc, TablePath
from graphloop.proofs.report import Finding
from graphloop.proofs.run_search import RunSearch

__all__ = ["is_run", "way_of"]


def way_of(graph: NodeGraph[Any], finding: Finding) -> TablePath:
    """Return the lines of the table that a witness tells."""
    return tuple(
        Arc(source, {outcome_name(one): one for one in graph.table[source]}[word], target)
        for (source, target), word in zip(pairwise(finding.witness), finding.outcomes, strict=True)
    )


def is_run(graph: NodeGraph[Any], finding: Finding, *, repeated: int = 0) -> bool:
    """Whether a run takes a witness, and then goes round its cycle so often again."""
    way = way_of(graph, finding)
    if repeated:
        into = finding.witness.index(finding.witness[-1])
        way = (*way, *way[into:] * repeated)
    return RunSearch(graph).walk(way) == len(way)
