"""SARIF is what code hosts show beside a line."""

from __future__ import annotations

import json
from dataclasses import replace
from inspect import getfile
from pathlib import Path

import pytest

from graphloop.nodes import PrepareStep
from graphloop.proofs.report import Finding, Report, Suppressed, Unknown
from graphloop.proofs.sarif import to_sarif

FOUND = Finding(
    "GL2", "error", "node 'a'", "wrong.", ("s", "a"), "mend.", ("go",), "a", "", "own.py:7"
)


def test_a_finding_has_its_line_its_level_and_its_way() -> None:
    """An annotation without a place is not shown."""
    log = json.loads(to_sarif([Report.of("g", (FOUND,))]))

    (run,) = log["runs"]
    (result,) = run["results"]
    assert log["version"] == "2.1.0"
    assert ("GL2", "error") == (result["ruleId"], result["level"])
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "GL2"
    assert {
        "artifactLocation": {"uri": "own.py"},
        "region": {"startLine": 7},
    } == result["locations"][0]["physicalLocation"]
    assert result["codeFlows"][0]["message"]["text"] == "s -go-> a"


@pytest.mark.parametrize(
    ("place", "uri"),
    [
        ("own nodes/one.py:7", "own nodes/one.py"),
        (
            f"{Path('/elsewhere/one.py').absolute()}:7",
            Path("/elsewhere/one.py").absolute().as_uri(),
        ),
        (f"{Path(getfile(PrepareStep)).absolute()}:7", None),
        (None, None),
    ],
)
def test_a_place_is_one_that_a_viewer_finds(place: str | None, uri: str | None) -> None:
    """Beside a line of an installed package nobody would see it."""
    found = replace(FOUND, location=place)

    (result,) = json.loads(to_sarif([Report.of("g", (found,))]))["runs"][0]["results"]
    (location,) = result["locations"]
    physical = location.get("physicalLocation")
    assert uri == (None if physical is None else physical["artifactLocation"]["uri"])
    assert "g/a" == location["logicalLocations"][0]["fullyQualifiedName"]


def test_the_line_of_the_table_is_the_place_if_it_is_known() -> None:
    """Where a node's class is defined, nobody has to change anything."""
    found = replace(FOUND, written="desk.py:9")

    (result,) = json.loads(to_sarif([Report.of("g", (found,))]))["runs"][0]["results"]
    assert {
        "artifactLocation": {"uri": "desk.py"},
        "region": {"startLine": 9},
    } == result["locations"][0]["physicalLocation"]


def test_what_is_set_aside_and_what_is_unknown_are_told_as_such() -> None:
    """Neither is a failure, and neither is a pass."""
    report = Report.of("g", (), (Unknown("GL4", "who knows"),), (Suppressed(FOUND, "known"),))

    results = json.loads(to_sarif([report]))["runs"][0]["results"]

    assert [{"kind": "inSource", "justification": "known"}] == results[0]["suppressions"]
    assert ("open", "none") == (results[1]["kind"], results[1]["level"])
