"""proof: what is wrong with a graph, and what its gates guard, laid over its diagram."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from ..contract import contract_of
from ..graph import Graph
from ..node_protocol import Kind
from ..proofs.dominance import Dominance
from ..proofs.ground import Ground
from ..proofs.report import Finding, Report
from ..views.family import Family, kin
from ..views.marks import Marks, Tone, Way

__all__ = ["proof_marks"]

S = TypeVar("S")

GUARDS: Final[frozenset[Kind]] = frozenset({"gate", "human"})


def proof_marks(
    graph: Graph[S], report: Report, *, finding: int = 0, family: Family | None = None
) -> Marks:
    """Return a report on `graph` as marks for its diagram.

    One witness is followed: its lines are thick and numbered. The nodes that findings are about are
    red, with the codes; lines that lead back into a cycle without a bound are, too. Shaded is what
    no run arrives at without having passed a gate, or a person.

    Args:
        graph: what the report is about.
        report: the report.
        finding: which finding's witness is followed, among those whose witness is a path.
        family: the graph with its agents, for what was found in those that were proven with it.
    """
    return _marks(family or Family(graph), report.findings, finding, len(report.findings))


def _marks(family: Family, findings: Sequence[Finding], finding: int, count: int) -> Marks:
    graph = family.graph
    here = [one for one in findings if one.node in graph.nodes]
    paths = [one for one in here if one.outcomes]
    shown = paths[finding] if finding < len(paths) else None
    steps: dict[Way, list[str]] = {}
    for number, way in enumerate(_ways(shown), 1):
        steps.setdefault(way, []).append(str(number))
    words = {way: f"[{', '.join(numbers)}]" for way, numbers in steps.items()}
    tones: dict[Way, Tone] = dict.fromkeys(steps, "strong")
    for one in paths:
        if one.code == "GL4":
            back = _back(graph, one)
            tones[back] = "alarm"
            words[back] = f"{words.get(back, '')} (no bound)".strip()
    node_tones: dict[str, Tone] = dict.fromkeys(
        shown.witness if shown is not None else (), "strong"
    )
    node_tones |= {one.node: "alarm" for one in here}
    codes: dict[str, list[str]] = {}
    for one in here:
        if one.code not in codes.setdefault(one.node, []):
            codes[one.node].append(one.code)
    guarded = _guarded(graph)
    told = _title(count, shown)
    return Marks(
        title=f"{told}; shaded: behind a gate" if guarded else told,
        nodes={name: ", ".join(some) for name, some in codes.items()},
        ways=words,
        node_tones=node_tones,
        way_tones=tones,
        shaded=guarded,
        children=dict(_below(family, findings)),
    )


def _below(family: Family, findings: Sequence[Finding]) -> Iterator[tuple[tuple[str, str], Marks]]:
    """Yield what was found in each graph that nodes run; the checker names a node `child/node`."""
    for one in kin(family):
        contract = contract_of(family.graph.nodes[one.node])
        children = () if contract is None else contract.children
        proven = {*(child.name for child in children), *family.graph.called}
        if one.name not in proven:
            yield (one.node, one.name), Marks(title="not checked along")
            continue
        within = f"{one.name}/"
        own = [
            replace(each, node=each.node.removeprefix(within))
            for each in findings
            if each.node.startswith(within)
        ]
        yield (one.node, one.name), _marks(one.family, own, 0, len(own))


def _ways(finding: Finding | None) -> Iterator[Way]:
    if finding is not None:
        yield from zip(finding.witness, finding.outcomes, strict=False)


def _back(graph: Graph[Any], finding: Finding) -> Way:
    """Return the line of the cycle at a witness's end that leads back, in the table's order."""
    places = {name: place for place, name in enumerate(graph.nodes)}
    first = finding.witness.index(finding.witness[-1])
    steps = list(zip(_ways(finding), finding.witness[1:], strict=True))[first:]
    back = (way for way, target in steps if places[target] <= places[way[0]])
    return next(back, steps[-1][0])


def _title(count: int, shown: Finding | None) -> str:
    told = "no problem found" if not count else "1 problem" if count == 1 else f"{count} problems"
    return told if shown is None else f"{told}; numbered: {shown.code} at {shown.place}"


def _guarded(graph: Graph[Any]) -> frozenset[str]:
    passed = Dominance(Ground(graph))
    guards = {name for name, node in graph.nodes.items() if node.kind in GUARDS}
    return frozenset(name for name in graph.nodes if passed.before(name) & guards)
