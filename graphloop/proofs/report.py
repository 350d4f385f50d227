"""Report: what is proven about a graph, what is wrong with it, and what nobody has looked at.

A property is in exactly one of three places: proven, named by a finding, or not checked. What was
not decided is never reported as passed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final, Literal, TypeAlias, final

from ..errors import GraphError

__all__ = ["PROPERTIES", "Finding", "Report", "Severity"]

Severity: TypeAlias = Literal["error", "warning"]

PROPERTIES: Final[Mapping[str, str]] = {
    "GL1": "every node is reachable, and END is reachable from every node",
    "GL2": "every execute is dominated by a gate since the last model call",
    "GL3": "every call the model asks for is answered exactly once on every path",
    "GL4": "every cycle holds a node with a strictly decreasing bound",
    "GL5": "outcomes and table agree exactly",
    "GL6": "nothing is read before it is written, and nothing is written in vain",
    "GL7": "children that may run in parallel write disjoint state",
    "GL8": "joins cannot starve when one branch parks",
    "GL9": "a sub-agent's gate and budget are no weaker than its parent's",
    "GL10": "nothing effectful precedes a park in the same node",
    "GL11": "state and events are serialisable and versioned",
    "GL12": "the user's own temporal rules hold",
}
"""Every property graphloop means to prove, by code."""


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """One way in which a graph lacks a property.

    `witness` is a shortest path of node names that shows it, empty where no path can.
    """

    code: str
    severity: Severity
    place: str
    message: str
    witness: tuple[str, ...]
    fix: str

    def __str__(self) -> str:
        """Return three lines: what is wrong, the witness, the fix."""
        lines = [f"{self.severity} {self.code} at {self.place}: {self.message}"]
        if self.witness:
            lines.append(f"  witness: {' -> '.join(self.witness)}")
        lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)


@final
@dataclass(frozen=True, slots=True)
class Report:
    """What is known of the graph of that name; print it to read it."""

    graph: str
    findings: tuple[Finding, ...]
    proven: tuple[str, ...]
    not_checked: tuple[str, ...]

    @classmethod
    def from_error(cls, error: GraphError) -> Report:
        """Return what a graph that could not be built is known to lack; nothing is proven."""
        findings = tuple(
            Finding(problem.code, "error", problem.place, problem.found, (), problem.fix)
            for problem in error.problems
        )
        return cls(error.graph, findings, (), _others({one.code for one in findings}))

    @classmethod
    def of(cls, graph: str, findings: tuple[Finding, ...], checked: frozenset[str]) -> Report:
        """Return the report of having checked `checked`: proven is what no finding names."""
        found = {one.code for one in findings}
        proven = tuple(code for code in PROPERTIES if code in checked and code not in found)
        return cls(graph, findings, proven, _others(checked | found))

    @property
    def ok(self) -> bool:
        """Whether no finding is an error. Says nothing about what is in `not_checked`."""
        return all(finding.severity != "error" for finding in self.findings)

    def to_json(self) -> str:
        """Return the report as a JSON object, with `ok` and the fields of this class."""
        return json.dumps({"ok": self.ok, **asdict(self)}, indent=2, ensure_ascii=False)

    def __str__(self) -> str:
        """Return what is proven, what is wrong, and what nobody has checked."""
        lines = [f"graph {self.graph!r}: {self._verdict()}"]
        lines += [f"  proven {code}: {PROPERTIES[code]}" for code in self.proven]
        lines += [f"  {line}" for finding in self.findings for line in str(finding).splitlines()]
        if self.not_checked:
            lines.append(f"  not checked yet: {', '.join(self.not_checked)}")
        return "\n".join(lines)

    def _verdict(self) -> str:
        match len(self.findings):
            case 0:
                return "no problem found"
            case 1:
                return "1 problem found"
            case count:
                return f"{count} problems found"


def _others(codes: set[str] | frozenset[str]) -> tuple[str, ...]:
    return tuple(code for code in PROPERTIES if code not in codes)
