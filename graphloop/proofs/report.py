"""Report: the findings, proven properties and unknown properties of a graph.

Each property is proven, has a finding, is unknown with a reason, or has a finding that the graph's
author suppressed with a reason. An unknown property is never reported as proven.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, final

from ..errors import ConfigError, GraphError, nearest
from ..graph import NodeGraph
from ..lazy import notebook_display

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "PROPERTIES",
    "Finding",
    "Ignore",
    "PicturedGraphs",
    "Report",
    "Severity",
    "Suppressed",
    "Unknown",
    "claims",
    "codes",
    "cycles_set_aside",
    "result_data",
    "short_path",
    "suppress",
    "suppression_of",
    "witness_text",
]

PACKAGE: Final = Path(__file__).parents[1]

Severity: TypeAlias = Literal["error", "warning"]

Ignore: TypeAlias = Mapping[tuple[str, str], str]
"""Reasons for suppressing findings, by node and code; the node "" means the whole graph."""

PROPERTIES: Final[Mapping[str, str]] = {
    "GL1": "every node is reachable, and END is reachable from every node",
    "GL2": "after each model call, a gate comes before a tool, and it or a person before an act",
    "GL3": "each call that a model asks for is answered exactly once, on every path",
    "GL4": "every cycle has a bound, so no run goes on for ever",
    "GL5": "the table has a row for each outcome of each node, and no other row",
    "GL6": "nothing is read before it is written, and nothing is written in vain",
    "GL7": "children that run side by side write different fields of the state",
    "GL8": "no node waits for more branches than it starts",
    "GL9": "no node gives a sub-agent a weaker gate, or more budget, than its parent has",
    "GL10": "no node runs tools or acts, and asks a person, in one visit",
    "GL11": "a journal line gives the same state and the same events back",
    "GL12": "the user's own temporal rules hold",
    "GL13": "a stopped run starts nothing, and no call is started twice",
}
"""The properties that graphloop proves, by code."""


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """A fault: a property that a graph lacks.

    Attributes:
        code: the code of the property; GL0 means a fault in the arguments of `check`.
        severity: an error makes the report fail (`ok` is False); a warning does not.
        place: a description of the place in the graph.
        message: a description of the fault.
        witness: the nodes of a shortest path that shows the fault; empty if no path shows it.
        fix: a proposed change of the graph.
        outcomes: the outcomes along the witness, one fewer than its nodes.
        node: the name of the faulty node; empty for none.
        outcome: the name of the faulty outcome of `node`; empty for none.
        location: the `file:line` of the node's class or function; None if unknown.
        written: the `file:line` of the faulty transition in its source; of the node's row or of the
            graph if that is unknown; None if all are.
        rows: the transitions to blame, as pairs of node and outcome. A new target for one of these
            removes the fault. Empty if unknown.
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
        """The witness as text: `a -done-> b`, or `a -> b` if its outcomes are unknown."""
        return witness_text(self.witness, self.outcomes)

    def __str__(self) -> str:
        lines = [f"{self.severity} {self.code} at {self.place}: {self.message}"]
        for label, text in (
            ("written", self.written),
            ("to blame", ", ".join(f"{node}.{outcome}" for node, outcome in self.rows)),
            ("defined", "" if _is_ours(self.location or "") else self.location),
            ("witness", self.path if self.witness else ""),
            ("fix", self.fix),
        ):
            lines += [f"  {label}: {text}"] if text else []
        return "\n".join(lines)


def witness_text(witness: tuple[str, ...], outcomes: tuple[str, ...]) -> str:
    """Return a path as text: `a -done-> b`, or `a -> b` if its outcomes are unknown."""
    if not outcomes:
        return " -> ".join(witness)
    steps = zip(outcomes, witness[1:], strict=True)
    return witness[0] + "".join(f" -{outcome}-> {node}" for outcome, node in steps)


@final
@dataclass(frozen=True, slots=True)
class Unknown:
    """A property that the proofs could neither prove nor refute.

    Attributes:
        code: the code of the property.
        reason: why the property is undecided, and how to make it decidable.
        node: the name of the node in question; empty for none.
        fails: whether the report fails (`ok` is False). This is set if a path of the table leads to
            a fault, although no simulated run took that path.
    """

    code: str
    reason: str
    node: str = ""
    fails: bool = False


@final
@dataclass(frozen=True, slots=True)
class Suppressed:
    """A finding that the graph's author suppresses with `ignore`, and the author's reason."""

    finding: Finding
    reason: str


@final
class PicturedGraphs:
    """The graphs that a result is about, for its picture in a notebook.

    A copy or a pickle has no graphs, because a graph holds functions, which cannot be pickled.
    """

    display = staticmethod(notebook_display)

    def __init__(self, *graphs: NodeGraph[Any]) -> None:
        self.graphs = graphs

    def __reduce__(self) -> tuple[type[PicturedGraphs], tuple[()]]:
        return PicturedGraphs, ()


@final
@dataclass(frozen=True, slots=True)
class Report:
    """The results of `check` for one graph; `str` returns them as readable lines.

    Attributes:
        graph: the graph's name.
        findings: the faults that are not suppressed.
        proven: the codes of the proven properties.
        unknown: the undecided properties, with reasons.
        suppressed: the findings that the graph's author suppresses.
        subject: the graph, for the picture in a notebook.
    """

    graph: str
    findings: tuple[Finding, ...]
    proven: tuple[str, ...]
    unknown: tuple[Unknown, ...]
    suppressed: tuple[Suppressed, ...] = ()
    subject: PicturedGraphs = field(default_factory=PicturedGraphs, compare=False)

    _repr_mimebundle_ = PicturedGraphs.display

    @classmethod
    def from_error(cls, error: GraphError) -> Report:
        """Return a report of the problems of a graph that could not be built, without proofs."""
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
        broken = {finding.code for finding in findings}
        reason = "the graph could not be built."
        unknown = tuple(Unknown(code, reason) for code in PROPERTIES if code not in broken)
        return cls(error.graph, findings, (), unknown)

    @classmethod
    def of(
        cls,
        graph: str,
        findings: Iterable[Finding],
        unknown: Iterable[Unknown] = (),
        suppressed: Iterable[Suppressed] = (),
        subject: PicturedGraphs | None = None,
    ) -> Report:
        """Return a report of these results; each property without a result counts as proven."""
        faults, aside = tuple(findings), tuple(suppressed)
        # Drop an unknown if an error shows that the same property is violated.
        broken = {finding.code for finding in faults if finding.severity == "error"}
        doubts = dict.fromkeys(doubt for doubt in unknown if doubt.code not in broken)
        order = {code: number for number, code in enumerate(PROPERTIES)}
        ordered = tuple(sorted(doubts, key=lambda doubt: order.get(doubt.code, len(order))))
        unproven = {*(fault.code for fault in faults), *(doubt.code for doubt in ordered)}
        unproven |= {entry.finding.code for entry in aside}
        proven = tuple(code for code in PROPERTIES if code not in unproven)
        return cls(graph, faults, proven, ordered, aside, subject or PicturedGraphs())

    @property
    def ok(self) -> bool:
        """Whether no finding is an error, and no unknown property fails the report."""
        wrong = any(finding.severity == "error" for finding in self.findings)
        return not wrong and not any(doubt.fails for doubt in self.unknown)

    def to_json(self) -> str:
        """Return the report as a JSON object, with `ok` and the fields of this class."""
        return json.dumps({"ok": self.ok, **result_data(self)}, indent=2, ensure_ascii=False)

    def __repr__(self) -> str:
        counts = f"{len(self.proven)} proven, {len(self.unknown)} unknown"
        return f"<Report {self.graph!r}: {self._summary()}; {counts}>"

    def __str__(self) -> str:
        lines = [f"graph {self.graph!r}: {self._summary()}"]
        lines += [f"  proven {code}: {PROPERTIES[code]}" for code in self.proven]
        lines += [f"  {line}" for finding in self.findings for line in str(finding).splitlines()]
        for suppression in self.suppressed:
            finding = suppression.finding
            lines.append(f"  suppressed {finding.code} at {finding.place}: {finding.message}")
            lines.append(f"    reason: {suppression.reason}")
        codes: dict[str, list[str]] = {}
        for doubt in self.unknown:
            codes.setdefault(doubt.reason, []).append(doubt.code)
        lines += [f"  unknown {', '.join(same)}: {reason}" for reason, same in codes.items()]
        return "\n".join(lines)

    def _summary(self) -> str:
        """Return the summary in the first line of the report."""
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


def codes(asking: str, given: Iterable[str]) -> tuple[str, ...]:
    """Return property codes such as "GL6" as a tuple; a single code may be given as text.

    Raises:
        ConfigError: a code is unknown. The message begins with `asking`, the option's name.
    """
    # A type checker accepts a single text too, since it is an iterable of letters.
    listed = (given,) if isinstance(given, str) else tuple(given)
    for code in listed:
        if code not in PROPERTIES:
            known = ", ".join(PROPERTIES)
            raise ConfigError(
                f"{asking}: there is no property {code!r}; there are {known}."
                f"{nearest(code, PROPERTIES)}"
            )
    return listed


def result_data(result: DataclassInstance) -> dict[str, object]:
    """Return the fields of a result and of its parts as plain data, without its graphs."""

    def plain(pairs: list[tuple[str, object]]) -> dict[str, object]:
        return {name: value for name, value in pairs if not isinstance(value, PicturedGraphs)}

    return asdict(result, dict_factory=plain)


def _is_ours(place: str) -> bool:
    """Whether a `file:line` is in this package, whose code is not at fault."""
    return Path(place).absolute().is_relative_to(PACKAGE)


def short_path(file: Path) -> str:
    """Return a file's path as text, relative to the current directory if the file is in it."""
    try:
        here = Path.cwd()
    except OSError:  # The directory was removed.
        return file.as_posix()
    return file.relative_to(here).as_posix() if file.is_relative_to(here) else file.as_posix()


def suppression_of(result: Finding | Unknown, ignore: Ignore) -> str:
    """Return the reason in `ignore` that suppresses a result; empty if it is not suppressed."""
    return ignore.get((result.node, result.code), "").strip()


def cycles_set_aside(ignore: Ignore) -> frozenset[str]:
    """Return the names, without `child/` prefixes, of nodes for which `ignore` suppresses GL4."""
    return frozenset(node.rpartition("/")[2] for node, code in ignore if code == "GL4")


def claims(result: Finding | Unknown, ignore: Ignore) -> Finding | Unknown:
    """Turn an unknown that `ignore` suppresses into a warning; return other results unchanged."""
    if isinstance(result, Finding) or not result.node or not suppression_of(result, ignore):
        return result
    place = f"node {result.node!r}"
    fix = "let its nodes promise what they do."
    return Finding(result.code, "warning", place, result.reason, (), fix, node=result.node)


def suppress(
    findings: Iterable[Finding], ignore: Ignore, prefixes: Container[str] | None = None
) -> tuple[tuple[Finding, ...], tuple[Suppressed, ...]]:
    """Return the reported findings and the suppressed findings.

    Faults of `ignore` itself, such as an unused entry, are added to the reported findings.

    Args:
        findings: all findings of the proofs.
        ignore: the reasons for suppressing findings, by node and code.
        prefixes: the `child/` prefixes of the graphs that were reported; None for all graphs. Only
            entries for these graphs can be unused.
    """
    counted: list[Finding] = []
    suppressed: list[Suppressed] = []
    for finding in findings:
        reason = suppression_of(finding, ignore)
        if reason:
            suppressed.append(Suppressed(finding, reason))
        else:
            counted.append(finding)
    used = {(entry.finding.node, entry.finding.code) for entry in suppressed}
    for (node, code), reason in ignore.items():
        path, slash, _ = node.rpartition("/")
        if prefixes is None or path + slash in prefixes:
            counted += _misuse_of_ignore(node, code, reason, is_used=(node, code) in used)
    return tuple(counted), tuple(suppressed)


def _misuse_of_ignore(node: str, code: str, reason: str, *, is_used: bool) -> Iterator[Finding]:
    """Yield a GL0 finding if an `ignore` entry has no reason, no valid code, or no effect."""
    severity: Severity = "error"
    if not reason.strip():
        message = "sets findings aside without saying why."
        fix = "give the reason as text, or take it out."
    elif code not in PROPERTIES:
        message, fix = f"there is no property {code!r}.", f"name one of {', '.join(PROPERTIES)}."
    elif not is_used:
        severity = "warning"
        message = "sets nothing aside: there is no such finding."
        fix = "take it out, so that it cannot hide what comes."
    else:
        return
    yield Finding("GL0", severity, f"ignore[{node!r}, {code!r}]", message, (), fix, node=node)
