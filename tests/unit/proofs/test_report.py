"""A report never says that something holds which nobody has decided."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from graphloop.errors import GraphError, Problem
from graphloop.proofs.report import (
    PROPERTIES,
    Finding,
    Ignore,
    Report,
    Suppressed,
    Unknown,
    claims,
    suppress,
    suppression_of,
)

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


def test_a_report_reads_as_what_is_proven_wrong_set_aside_and_unknown() -> None:
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


def test_a_report_without_gaps_or_findings_says_only_what_is_proven() -> None:
    """No empty headings."""
    report = Report.of("g", ())

    assert 1 + len(PROPERTIES) == len(str(report).splitlines())
    assert str(report).startswith("graph 'g': no problem found\n")


def test_a_finding_without_a_path_shows_no_witness() -> None:
    """Nothing can be walked in a table that does not fit its nodes."""
    finding = Finding("GL5", "error", "row of 'a'", "leads nowhere.", (), "add it.")

    assert str(finding) == "error GL5 at row of 'a': leads nowhere.\n  fix: add it."


def test_a_witness_without_outcomes_is_a_list_of_nodes() -> None:
    """Whoever makes a finding of its own need not know the outcomes."""
    assert Finding("GL1", "error", "p", "m", ("a", "b"), "f").path == "a -> b"


def test_a_warning_alone_leaves_a_report_ok() -> None:
    """`ok` decides a build: a warning informs."""
    warning = Finding("GL6", "warning", "node 'a'", "is written in vain.", (), "remove it.")

    assert Report.of("g", (warning,)).ok
    assert not Report.of("g", (warning, FINDING)).ok
    assert "2 problems found" in str(Report.of("g", (warning, FINDING)))


def test_the_line_that_was_written_stands_before_where_it_is_defined() -> None:
    """It is what its author has to change."""
    lines = str(replace(FINDING, written="desk.py:9")).splitlines()

    assert ["  written: desk.py:9", "  defined: own.py:3"] == lines[1:3]


def test_json_holds_every_field() -> None:
    """Other programs read what people read."""
    found = json.loads(Report.of("gräph", (FINDING,), (OPEN,), (ASIDE,)).to_json())

    assert (False, "gräph") == (found["ok"], found["graph"])
    assert [{"code": "GL4", "reason": "nobody says.", "node": "", "fails": False}] == found[
        "unknown"
    ]
    assert found["suppressed"][0]["reason"] == "known"
    assert {
        "code": "GL1",
        "severity": "error",
        "place": "node 'a'",
        "message": "never ends.",
        "witness": ["s", "a", "a"],
        "fix": "add END.",
        "outcomes": ["go", "go"],
        "node": "a",
        "outcome": "go",
        "location": "own.py:3",
        "written": None,
        "rows": [],
    } == found["findings"][0]


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


def test_a_finding_is_set_aside_by_node_and_code() -> None:
    """A reason for one node is none for another."""
    other = Finding("GL3", "error", "node 'b'", "m", (), "f", node="b")

    counted, aside = suppress([FOUND, other], {("a", "GL3"): "known"})

    assert (other,) == counted
    assert [(FOUND, "known")] == [(one.finding, one.reason) for one in aside]


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


def test_what_nobody_can_tell_is_a_finding_for_whoever_answers_for_it() -> None:
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
