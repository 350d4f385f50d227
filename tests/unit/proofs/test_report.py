"""A report never says that something holds which nobody has checked."""

from __future__ import annotations

import json

from graphloop.errors import GraphError, Problem
from graphloop.proofs.report import PROPERTIES, Finding, Report

FINDING = Finding("GL1", "error", "node 'a'", "never ends.", ("s", "a", "a"), "add END.")


def test_every_property_is_in_exactly_one_place() -> None:
    """A property in two places is a contradiction, and in none is a silent pass."""
    report = Report.of("g", (FINDING,), frozenset({"GL1", "GL5"}))

    assert report.proven == ("GL5",)
    assert set(PROPERTIES) == {"GL1", *report.proven, *report.not_checked}
    assert len(PROPERTIES) == 1 + len(report.proven) + len(report.not_checked)


def test_a_report_reads_as_what_is_proven_what_is_wrong_and_what_is_unknown() -> None:
    """It is read in a terminal, and pasted into a review."""
    report = Report.of("g", (FINDING,), frozenset(PROPERTIES) - {"GL4"})

    text = str(report).splitlines()

    assert text[0] == "graph 'g': 1 problem found"
    assert f"  proven GL2: {PROPERTIES['GL2']}" == text[1]
    assert text[-4:] == [
        "  error GL1 at node 'a': never ends.",
        "    witness: s -> a -> a",
        "    fix: add END.",
        "  not checked yet: GL4",
    ]


def test_a_report_without_gaps_or_findings_says_only_what_is_proven() -> None:
    """No empty headings."""
    report = Report.of("g", (), frozenset(PROPERTIES))

    assert 1 + len(PROPERTIES) == len(str(report).splitlines())
    assert str(report).startswith("graph 'g': no problem found\n")


def test_a_finding_without_a_path_shows_no_witness() -> None:
    """Nothing can be walked in a table that does not fit its nodes."""
    finding = Finding("GL5", "error", "row of 'a'", "leads nowhere.", (), "add it.")

    assert str(finding) == "error GL5 at row of 'a': leads nowhere.\n  fix: add it."


def test_a_warning_alone_leaves_a_report_ok() -> None:
    """`ok` decides a build: a warning informs."""
    warning = Finding("GL6", "warning", "node 'a'", "is written in vain.", (), "remove it.")

    assert Report.of("g", (warning,), frozenset()).ok
    assert not Report.of("g", (warning, FINDING), frozenset()).ok


def test_json_holds_every_field() -> None:
    """Other programs read what people read."""
    report = Report.of("gräph", (FINDING,), frozenset({"GL1", "GL5"}))

    found = json.loads(report.to_json())

    assert {
        "ok": False,
        "graph": "gräph",
        "findings": [
            {
                "code": "GL1",
                "severity": "error",
                "place": "node 'a'",
                "message": "never ends.",
                "witness": ["s", "a", "a"],
                "fix": "add END.",
            }
        ],
        "proven": ["GL5"],
        "not_checked": list(report.not_checked),
    } == found


def test_a_graph_that_could_not_be_built_has_proven_nothing() -> None:
    """The command line reports it in the same form, and must not praise it."""
    error = GraphError("g", [Problem("row of 'a'", "leads nowhere.", "add it.")] * 2)

    report = Report.from_error(error)

    assert report.graph == "g"
    assert 2 * (Finding("GL5", "error", "row of 'a'", "leads nowhere.", (), "add it."),) == (
        report.findings
    )
    assert report.proven == ()
    assert tuple(code for code in PROPERTIES if code != "GL5") == report.not_checked
    assert str(report).startswith("graph 'g': 2 problems found\n")
