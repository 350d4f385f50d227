"""proof: turns findings of `check`, and the nodes behind gates, into marks for a diagram."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from ..graph import NodeGraph
from ..node_protocol import Kind
from ..proofs import Dominance, Finding, ProofGraph
from .levels import child_graphs
from .marks import Marks, Tone, Way

__all__ = ["proof_marks"]

_GUARDS: Final[frozenset[Kind]] = frozenset({"gate", "human"})


def proof_marks(graph: NodeGraph[Any], findings: Sequence[Finding]) -> Marks:
    """Return marks that show the findings of `check` on the diagram of a graph.

    The witness of the first finding that has a path is thick and numbered. Nodes with findings are
    red, with the codes. An edge that closes a cycle without a bound is red too. Nodes that every
    run reaches through a gate or a person are shaded. A finding whose node is `child/node` is
    marked in that child graph.
    """
    here = [finding for finding in findings if finding.node in graph.nodes]
    paths = [finding for finding in here if finding.outcomes]
    ways, tones = _number_witnesses(paths[:1])
    node_tones: dict[str, Tone] = dict.fromkeys(paths[0].witness if paths else (), "strong")
    for finding in paths:
        if finding.code == "GL4":
            back = _way_back(graph, finding)
            tones[back] = "alarm"
            ways[back] = f"{ways.get(back, '')} (no bound)".strip()
    codes: dict[str, dict[str, None]] = {}
    for finding in here:
        codes.setdefault(finding.node, {})[finding.code] = None
        node_tones[finding.node] = "alarm"
    guarded = _guarded_nodes(graph)
    title = "1 problem" if len(findings) == 1 else f"{len(findings) or 'no'} problems"
    title = title if findings else "no problem found"
    title += f"; numbered: {paths[0].code} at {paths[0].place}" if paths else ""
    return Marks(
        title=f"{title}; shaded: behind a gate" if guarded else title,
        nodes={name: ", ".join(names) for name, names in codes.items()},
        ways=ways,
        node_tones=node_tones,
        way_tones=tones,
        shaded=guarded,
        children={
            (node, name): proof_marks(child, [*_findings_of_child(name, findings)])
            for node, name, child in child_graphs(graph)
        },
    )


def _number_witnesses(shown: Sequence[Finding]) -> tuple[dict[Way, str], dict[Way, Tone]]:
    """Map each transition of the witnesses to its step numbers as text, and to a `strong` tone."""
    steps: dict[Way, list[str]] = {}
    for finding in shown:
        for number, way in enumerate(_transitions_of(finding), 1):
            steps.setdefault(way, []).append(str(number))
    return {way: f"[{', '.join(step)}]" for way, step in steps.items()}, dict.fromkeys(
        steps, "strong"
    )


def _findings_of_child(child: str, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the findings on nodes `child/node`, renamed to `node` for the child graph's marks."""
    for finding in findings:
        if finding.node.startswith(f"{child}/"):
            yield replace(finding, node=finding.node.removeprefix(f"{child}/"))


def _transitions_of(finding: Finding) -> list[Way]:
    return [*zip(finding.witness, finding.outcomes, strict=False)]


def _way_back(graph: NodeGraph[Any], finding: Finding) -> Way:
    """Return the first transition of the witness's final cycle that leads back in table order."""
    places = {name: place for place, name in enumerate(graph.nodes)}
    first = finding.witness.index(finding.witness[-1])
    steps = list(zip(_transitions_of(finding), finding.witness[1:], strict=True))[first:]
    back = (way for way, target in steps if places[target] <= places[way[0]])
    return next(back, steps[-1][0])


def _guarded_nodes(graph: NodeGraph[Any]) -> frozenset[str]:
    passed = Dominance(ProofGraph(graph))
    guards = {name for name, node in graph.nodes.items() if node.kind in _GUARDS}
    return frozenset(name for name in graph.nodes if passed.before(name) & guards)
