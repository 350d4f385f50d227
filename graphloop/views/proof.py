"""proof: the findings of the checker and the region behind the gates, as marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from ..contract import contract_of
from ..graph import NodeGraph
from ..node_protocol import Kind
from ..proofs import Dominance, Finding, ProofGraph, Report
from .family import Family, members
from .marks import Marks, Tone, Way

__all__ = ["proof_marks"]

S = TypeVar("S")

_GUARDS: Final[frozenset[Kind]] = frozenset({"gate", "human"})


def proof_marks(graph: NodeGraph[S], report: Report, *, family: Family | None = None) -> Marks:
    """Return a report on `graph` as marks for its diagram.

    The witness of the first finding that has a path is thick and numbered. Nodes with findings are
    red, with the codes; so are lines that lead back into a cycle without a bound. Shaded are the
    nodes that every run reaches through a gate or a person.

    Args:
        graph: the graph.
        report: the report.
        family: the graph with its agents, for findings in the agents.
    """
    return _marks(family or Family(graph), report.findings, len(report.findings))


def _marks(family: Family, findings: Sequence[Finding], count: int) -> Marks:
    graph = family.graph
    here = [finding for finding in findings if finding.node in graph.nodes]
    paths = [finding for finding in here if finding.outcomes]
    shown = paths[0] if paths else None
    steps: dict[Way, list[str]] = {}
    for number, way in enumerate(_ways(shown) if shown else (), 1):
        steps.setdefault(way, []).append(str(number))
    words = {way: f"[{', '.join(numbers)}]" for way, numbers in steps.items()}
    tones: dict[Way, Tone] = dict.fromkeys(steps, "strong")
    for finding in paths:
        if finding.code == "GL4":
            back = _back(graph, finding)
            tones[back] = "alarm"
            words[back] = f"{words.get(back, '')} (no bound)".strip()
    node_tones: dict[str, Tone] = dict.fromkeys(shown.witness if shown else (), "strong")
    node_tones |= {finding.node: "alarm" for finding in here}
    codes: dict[str, dict[str, None]] = {}
    for finding in here:
        codes.setdefault(finding.node, {})[finding.code] = None
    guarded = _guarded(graph)
    title = _title(count, shown)
    return Marks(
        title=f"{title}; shaded: behind a gate" if guarded else title,
        nodes={name: ", ".join(some) for name, some in codes.items()},
        ways=words,
        node_tones=node_tones,
        way_tones=tones,
        shaded=guarded,
        children=dict(_children(family, findings)),
    )


def _children(
    family: Family, findings: Sequence[Finding]
) -> Iterator[tuple[tuple[str, str], Marks]]:
    """Yield the marks of each child graph; the checker names a node in it `child/node`."""
    for node, name, child in members(family):
        contract = contract_of(family.graph.nodes[node])
        known = () if contract is None else contract.children
        if name not in {*(promised.name for promised in known), *family.graph.called}:
            yield (node, name), Marks(title="not checked")
            continue
        within = f"{name}/"
        own = [
            replace(finding, node=finding.node.removeprefix(within))
            for finding in findings
            if finding.node.startswith(within)
        ]
        yield (node, name), _marks(child, own, len(own))


def _ways(finding: Finding) -> Iterator[Way]:
    yield from zip(finding.witness, finding.outcomes, strict=False)


def _back(graph: NodeGraph[Any], finding: Finding) -> Way:
    """Return the line of the cycle at a witness's end that leads back, in the table's order."""
    places = {name: place for place, name in enumerate(graph.nodes)}
    first = finding.witness.index(finding.witness[-1])
    steps = list(zip(_ways(finding), finding.witness[1:], strict=True))[first:]
    back = (way for way, target in steps if places[target] <= places[way[0]])
    return next(back, steps[-1][0])


def _title(count: int, shown: Finding | None) -> str:
    found = "no problem found" if not count else "1 problem" if count == 1 else f"{count} problems"
    return found if shown is None else f"{found}; numbered: {shown.code} at {shown.place}"


def _guarded(graph: NodeGraph[Any]) -> frozenset[str]:
    passed = Dominance(ProofGraph(graph))
    guards = {name for name, node in graph.nodes.items() if node.kind in _GUARDS}
    return frozenset(name for name in graph.nodes if passed.before(name) & guards)
