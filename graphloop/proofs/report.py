"""Report: findings, proven properties, and unknown ones.

A property is in one of four places: proven, named by a finding, unknown with a reason, or set
aside with a reason by the author of the graph. Unknown is never reported as passed.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, final

from ..errors import GraphError

__all__ = [
    "PROPERTIES",
    "Finding",
    "Ignore",
    "Report",
    "Severity",
    "Suppressed",
    "Unknown",
    "aside_in",
    "claims",
    "excused",
    "set_aside",
    "short_path",
]


Severity: TypeAlias = Literal["error", "warning"]

PROPERTIES: Final[Mapping[str, str]] = {
    "GL1": "every node is reachable, and END is reachable from every node",
    "GL2": "since the last model call, a gate precedes each tool, and it or a person each act",
    "GL3": "every call the model asks for is answered exactly once on every path",
    "GL4": "every cycle holds a node with a strictly decreasing bound",
    "GL5": "outcomes and table agree exactly",
    "GL6": "nothing is read before it is written, and nothing is written in vain",
    "GL7": "children that may run in parallel write disjoint state",
    "GL8": "joins cannot starve when one branch parks",
    "GL9": "no node gives a sub-agent a weaker gate, or more budget, than its parent has",
    "GL10": "nothing effectful precedes a park in the same node",
    "GL11": "state and events are serialisable and versioned",
    "GL12": "the user's own temporal rules hold",
    "GL13": "a run that was stopped starts nothing, and nothing that started is started again",
}
"""Every property graphloop means to prove, by code."""


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """A way in which a graph lacks a property.

    Attributes:
        code: the property; GL0 is about what was said to the checker itself.
        severity: an error makes a report not ok, a warning informs.
        place: where, in words.
        message: what is wrong.
        witness: a shortest path of node names that shows it; empty where no path can.
        fix: what to do.
        outcomes: the outcomes that lead along the witness, one fewer than it has nodes.
        node: the node that it is about, within its graph; empty for none.
        outcome: the outcome of `node` whose line it is about; empty for none.
        location: the file and line where the node's class or function is defined, if known.
        written: the file and line of the row of the table, or of the cell, if known; else those of
            the graph.
        rows: the lines of the table to blame, as nodes and outcomes: it is gone once one of them
            leads elsewhere; empty where none is known.
    """

    code: str
    severity: Severity
    place: str
    message: str
    witness: tuple[str, ...]
    fix: str
    outcomes: tuple[str, ...] = ()
    node: str = ""
    outcome: str = ""
    location: str | None = None
    written: str | None = None
    rows: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> str:
        """The witness in words: nodes, and the outcomes between them where they are known."""
        if not self.outcomes:
            return " -> ".join(self.witness)
        steps = zip(self.outcomes, self.witness[1:], strict=True)
        return self.witness[0] + "".join(f" -{outcome}-> {node}" for outcome, node in steps)

    def __str__(self) -> str:
        """Return what is wrong, where that was written and is defined, the witness, the fix."""
        lines = [f"{self.severity} {self.code} at {self.place}: {self.message}"]
        if self.written:
            lines.append(f"  written: {self.written}")
        if self.rows:
            told = ", ".join(f"{node}.{outcome}" for node, outcome in self.rows)
            lines.append(f"  to blame: {told}")
        if self.location:
            lines.append(f"  defined: {self.location}")
        if self.witness:
            lines.append(f"  witness: {self.path}")
        lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)


@final
@dataclass(frozen=True, slots=True)
class Unknown:
    """A property that cannot be decided, and why.

    Attributes:
        code: the property.
        reason: why, and what would decide it.
        node: the node that it is about, within its graph; empty for none.
        fails: whether the report is not ok: the table has a way to a fault, of which no run was
            found.
    """

    code: str
    reason: str
    node: str = ""
    fails: bool = False


@final
@dataclass(frozen=True, slots=True)
class Suppressed:
    """A finding that the graph's author has set aside, and why."""

    finding: Finding
    reason: str


@final
@dataclass(frozen=True, slots=True)
class Report:
    """All that is known of the graph of that name; print it to read it.

    Attributes:
        graph: the graph's name.
        findings: what is wrong.
        proven: the codes of the properties that hold.
        unknown: the properties that cannot be decided.
        suppressed: the findings that are set aside.
        never_taken: the lines of its own table that no run takes, as nodes and outcomes: the
            parameters of their nodes rule them out.
    """

    graph: str
    findings: tuple[Finding, ...]
    proven: tuple[str, ...]
    unknown: tuple[Unknown, ...]
    suppressed: tuple[Suppressed, ...] = ()
    never_taken: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_error(cls, error: GraphError) -> Report:
        """Return what a graph that could not be built is known to lack; nothing is proven."""
        findings = tuple(
            Finding(
                problem.code,
                "error",
                problem.place,
                problem.found,
                (),
                problem.fix,
                written=error.written or None,
            )
            for problem in error.problems
        )
        found = {one.code for one in findings}
        reason = "the graph could not be built."
        unknown = tuple(Unknown(code, reason) for code in PROPERTIES if code not in found)
        return cls(error.graph, findings, (), unknown)

    @classmethod
    def of(
        cls,
        graph: str,
        findings: Iterable[Finding],
        unknown: Iterable[Unknown] = (),
        suppressed: Iterable[Suppressed] = (),
    ) -> Report:
        """Return the report of having checked everything: proven is what nothing speaks against."""
        known, aside = tuple(findings), tuple(suppressed)
        # What nobody can decide beside what is wrong already would be noise.
        settled = {one.code for one in known if one.severity == "error"}
        open_ = tuple(dict.fromkeys(one for one in unknown if one.code not in settled))
        spoken = (
            {one.code for one in known}
            | {one.code for one in open_}
            | {one.finding.code for one in aside}
        )
        proven = tuple(code for code in PROPERTIES if code not in spoken)
        order = {code: place for place, code in enumerate(PROPERTIES)}
        open_ = tuple(sorted(open_, key=lambda one: order.get(one.code, len(order))))
        return cls(graph, known, proven, open_, aside)

    @property
    def ok(self) -> bool:
        """Whether no finding is an error, and no unknown property fails."""
        wrong = any(finding.severity == "error" for finding in self.findings)
        return not wrong and not any(one.fails for one in self.unknown)

    def to_json(self) -> str:
        """Return the report as a JSON object, with `ok` and the fields of this class."""
        return json.dumps({"ok": self.ok, **asdict(self)}, indent=2, ensure_ascii=False)

    def __str__(self) -> str:
        """Return what is proven, what is wrong, what is set aside, and what is unknown."""
        lines = [f"graph {self.graph!r}: {self._verdict()}"]
        lines += [f"  proven {code}: {PROPERTIES[code]}" for code in self.proven]
        lines += [f"  {line}" for finding in self.findings for line in str(finding).splitlines()]
        for one in self.suppressed:
            found = one.finding
            lines.append(f"  suppressed {found.code} at {found.place}: {found.message}")
            lines.append(f"    reason: {one.reason}")
        open_: dict[str, list[str]] = {}
        for unknown in self.unknown:
            open_.setdefault(unknown.reason, []).append(unknown.code)
        lines += [f"  unknown {', '.join(codes)}: {reason}" for reason, codes in open_.items()]
        if self.never_taken:
            count = len(self.never_taken)
            lines.append(f"  lines of the table that these parameters never take: {count}")
        return "\n".join(lines)

    def _verdict(self) -> str:
        match len(self.findings):
            case 0 if not self.ok:
                return "no problem is shown, and a way to one is not ruled out"
            case 0 if not self.proven:
                return "nothing is proven, and no problem found"
            case 0:
                return "no problem found"
            case 1:
                return "1 problem found"
            case count:
                return f"{count} problems found"


def short_path(file: Path) -> str:
    """Return a file's name as it is seen from the current directory."""
    try:
        here = Path.cwd()
    except OSError:  # The directory has been removed.
        return file.as_posix()
    return file.relative_to(here).as_posix() if file.is_relative_to(here) else file.as_posix()


Ignore: TypeAlias = Mapping[tuple[str, str], str]
"""Reasons by node and code; an empty node stands for the graph as a whole."""


def excused(found: Finding | Unknown, ignore: Ignore) -> str:
    """Return the reason for which something is set aside; empty for none."""
    return ignore.get((found.node, found.code), "").strip()


def aside_in(ignore: Ignore) -> frozenset[str]:
    """Return the nodes whose cycles (GL4) are set aside, by their names in their own graphs."""
    return frozenset(node.rpartition("/")[2] for node, code in ignore if code == "GL4")


def claims(found: Finding | Unknown, ignore: Ignore) -> Finding | Unknown:
    """Return an unknown as a finding, where the graph's author answers for it."""
    if isinstance(found, Finding) or not found.node or not excused(found, ignore):
        return found
    place = f"node {found.node!r}"
    fix = "let its nodes promise what they do."
    return Finding(found.code, "warning", place, found.reason, (), fix, node=found.node)


def set_aside(
    findings: Iterable[Finding], ignore: Ignore, told: Container[str] | None = None
) -> tuple[tuple[Finding, ...], tuple[Suppressed, ...]]:
    """Return the findings that count, with those about `ignore` itself, and those that do not.

    Args:
        findings: what was found.
        ignore: the reasons.
        told: what the names of nodes begin with of which anything was told; None for all.
    """
    counted: list[Finding] = []
    aside: list[Suppressed] = []
    for finding in findings:
        reason = excused(finding, ignore)
        if reason:
            aside.append(Suppressed(finding, reason))
        else:
            counted.append(finding)
    used = {(one.finding.node, one.finding.code) for one in aside}
    looked = {one: why for one, why in ignore.items() if told is None or _prefix(one[0]) in told}
    return (*counted, *_misuses(looked, used)), tuple(aside)


def _prefix(node: str) -> str:
    """Return the names of the children that lead to a node."""
    path, slash, _ = node.rpartition("/")
    return path + slash


def _misuses(ignore: Ignore, used: set[tuple[str, str]]) -> Iterator[Finding]:
    for (node, code), reason in ignore.items():
        place = f"ignore[{node!r}, {code!r}]"
        if not reason.strip():
            yield Finding(
                "GL0",
                "error",
                place,
                "sets findings aside without saying why.",
                (),
                "give the reason as text, or take it out.",
                node=node,
            )
        elif code not in PROPERTIES:
            yield Finding(
                "GL0",
                "error",
                place,
                f"there is no property {code!r}.",
                (),
                f"name one of {', '.join(PROPERTIES)}.",
                node=node,
            )
        elif (node, code) not in used:
            yield Finding(
                "GL0",
                "warning",
                place,
                "sets nothing aside: there is no such finding.",
                (),
                "take it out, so that it cannot hide what comes.",
                node=node,
            )
