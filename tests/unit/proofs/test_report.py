"""A report never says that something holds which nobody has decided."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphloop import Agent
from graphloop.errors import ConfigError, GraphError, Problem
from graphloop.proofs.proof_graph import ProofGraph
from graphloop.proofs.report import (
    PROPERTIES,
    Finding,
    Ignore,
    Report,
    Suppressed,
    Unknown,
    claims,
    codes,
    suppress,
    suppression_of,
)
from graphloop.testing import ScriptedModel

FINDING = Finding(
    "GL1",
    "error",
    "node 'a'",
    "never ends.",
    ("s", "a", "a"),
    "add END.",
    ("go", "go"),
    "a",
    "go",
    "own.py:3",
)
OPEN = Unknown("GL4", "nobody says.")
ASIDE = Suppressed(Finding("GL6", "warning", "node 'b'", "in vain.", (), "x", node="b"), "known")


def test_every_property_is_in_exactly_one_place() -> None:
    """A property in two places is a contradiction, and in none is a silent pass."""
    report = Report.of("g", (FINDING,), (OPEN, Unknown("GL1", "noise")), (ASIDE,))

    assert {*PROPERTIES} - {"GL1", "GL4", "GL6"} == {*report.proven}
    assert (OPEN,) == report.unknown


def test_a_finding_at_a_node_of_the_library_does_not_send_its_reader_there() -> None:
    """The fault is in the user's table, and no line of the library mends it."""
    place = ProofGraph(Agent(ScriptedModel([])).graph).definition_of("gate")

    shown = str(replace(FINDING, location=place))

    assert place is not None
    assert "defined:" not in shown
    assert "defined: own.py:3" in str(FINDING)


def test_a_report_shows_every_kind_of_result() -> None:
    """It is read in a terminal, and pasted into a review."""
    text = str(Report.of("g", (FINDING,), (OPEN,), (ASIDE,))).splitlines()

    assert "graph 'g': 1 problem found" == text[0]
    assert f"  proven GL2: {PROPERTIES['GL2']}" == text[1]
    assert [
        "  error GL1 at node 'a': never ends.",
        "    defined: own.py:3",
        "    witness: s -go-> a -go-> a",
        "    fix: add END.",
        "  suppressed GL6 at node 'b': in vain.",
        "    reason: known",
        "  unknown GL4: nobody says.",
    ] == text[-7:]


def test_a_clean_report_shows_only_proven_properties() -> None:
    """No empty headings."""
    report = Report.of("g", ())

    assert 1 + len(PROPERTIES) == len(str(report).splitlines())
    assert str(report).startswith("graph 'g': no problem found\n")


def test_a_warning_alone_leaves_a_report_ok() -> None:
    """`ok` decides a build: a warning informs."""
    warning = Finding("GL6", "warning", "node 'a'", "is written in vain.", (), "remove it.")

    assert Report.of("g", (warning,)).ok
    assert not Report.of("g", (warning, FINDING)).ok
    assert "2 problems found" in str(Report.of("g", (warning, FINDING)))


def test_a_graph_that_could_not_be_built_has_proven_nothing() -> None:
    """The command line reports it in the same form, and must not praise it."""
    error = GraphError("g", [Problem("row of 'a'", "leads nowhere.", "add it.")] * 2)

    report = Report.from_error(error)

    assert report.graph == "g"
    assert 2 * (Finding("GL5", "error", "row of 'a'", "leads nowhere.", (), "add it."),) == (
        report.findings
    )
    assert () == report.proven
    assert {*PROPERTIES} - {"GL5"} == {one.code for one in report.unknown}


FOUND = Finding("GL3", "error", "node 'a'", "m", (), "f", node="a")


@pytest.mark.parametrize(
    ("ignore", "severity", "word"),
    [
        ({("a", "GL3"): " "}, "error", "without saying why"),
        ({("a", "GL99"): "x"}, "error", "no property 'GL99'"),
        ({("b", "GL3"): "x"}, "warning", "sets nothing aside"),
    ],
)
def test_a_suppression_that_is_wrong_is_a_finding_itself(
    ignore: Ignore, severity: str, word: str
) -> None:
    """A forgotten one would hide what comes."""
    counted, aside = suppress([FOUND], ignore)

    assert counted[0] == FOUND
    assert ("GL0", severity) == (counted[1].code, counted[1].severity)
    assert word in counted[1].message
    assert () == aside


def test_a_suppressed_unknown_becomes_a_finding() -> None:
    """Only where it is about a node; and of that node and code."""
    open_ = Unknown("GL4", "nobody says.", "a")
    ignore = {("a", "GL4"): " known "}

    found = claims(open_, ignore)

    assert "known" == suppression_of(open_, ignore)
    assert isinstance(found, Finding)
    assert ("GL4", "a", "nobody says.") == (found.code, found.node, found.message)
    assert claims(open_, {("b", "GL4"): "known"}) is open_
    assert claims(open_, {("a", "GL4"): " "}) is open_
    assert claims(FOUND, {("a", "GL3"): "known"}) is FOUND
    nowhere = Unknown("GL12", "no rules.")
    assert claims(nowhere, {("", "GL12"): "known"}) is nowhere


def test_codes_are_those_of_properties() -> None:
    """A code that is not there would never be proven."""
    assert ("GL1", "GL4") == codes("proven", ["GL1", "GL4"])
    assert ("GL1",) == codes("proven", "GL1")
    with pytest.raises(ConfigError, match=r"no property 'GL33'.*Did you mean 'GL3'"):
        codes("proven", ("GL33",))
