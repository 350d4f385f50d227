"""SARIF 2.1.0: reports in the JSON format that code hosts and editors display."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias

from .report import PROPERTIES, Finding, Report, Suppressed, Unknown, short_path

__all__ = ["to_sarif"]

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | bool | None"

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
PACKAGE: Final = Path(__file__).parents[1]
OWN: Final = {"GL0": "what the checker is told makes sense"} | dict(PROPERTIES)


def to_sarif(reports: Iterable[Report]) -> str:
    """Return one SARIF log as JSON text, with one SARIF run for each report."""
    runs: list[Json] = [_run_of_report(report) for report in reports]
    log: Json = {"$schema": SCHEMA, "version": "2.1.0", "runs": runs}
    return json.dumps(log, indent=2, ensure_ascii=False)


def _run_of_report(report: Report) -> Json:
    """Return the SARIF run of one report, with a result for each finding and unknown."""
    rules: list[Json] = [_rule_of_property(code, text) for code, text in OWN.items()]
    results: list[Json] = [_finding_result(report, one, None) for one in report.findings]
    results += [_finding_result(report, one.finding, one) for one in report.suppressed]
    results += [_open_result(report, one) for one in report.unknown]
    return {
        "tool": {"driver": {"name": "graphloop", "rules": rules}},
        "automationDetails": {"id": f"graphloop/{report.graph}"},
        "results": results,
    }


def _rule_of_property(code: str, text: str) -> Json:
    """Return the SARIF rule of one property."""
    return {"id": code, "shortDescription": {"text": text}}


def _open_result(report: Report, unknown: Unknown) -> Json:
    """Return the SARIF result, of kind `open`, of an unknown property."""
    return {
        "ruleId": unknown.code,
        "ruleIndex": list(OWN).index(unknown.code),
        "kind": "open",
        "level": "none",
        "message": {"text": f"unknown: {unknown.reason}"},
        "locations": [_location_of(report, None, "")],
    }


def _finding_result(report: Report, finding: Finding, suppressed: Suppressed | None) -> Json:
    """Return the SARIF result of a finding, with its suppression if there is one."""
    result: dict[str, Json] = {
        "ruleId": finding.code,
        "ruleIndex": list(OWN).index(finding.code),
        "kind": "fail",
        "level": finding.severity,
        "message": {"text": f"{finding.place}: {finding.message} Fix: {finding.fix}"},
        "locations": [_location_of(report, finding.written or finding.location, finding.node)],
    }
    if finding.witness:
        result["codeFlows"] = [
            {
                "message": {"text": finding.path},
                "threadFlows": [
                    {
                        "locations": [
                            {"location": _location_of(report, None, node)}
                            for node in finding.witness
                        ]
                    }
                ],
            }
        ]
    if suppressed is not None:
        result["suppressions"] = [{"kind": "inSource", "justification": suppressed.reason}]
    return result


def _location_of(report: Report, place: str | None, node: str) -> Json:
    """Return the SARIF location of a node; `place` is its `file:line`, None if unknown."""
    name = f"{report.graph}/{node}" if node else report.graph
    logical: list[Json] = [{"fullyQualifiedName": name, "kind": "member"}]
    location: dict[str, Json] = {"logicalLocations": logical}
    file, _, line = (place or "").rpartition(":")
    uri = _uri_of(Path(file)) if file else None
    if uri is not None:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": uri},
            "region": {"startLine": int(line)},
        }
    return location


def _uri_of(file: Path) -> str | None:
    """Return a file's URI, or its relative path; None for a file of this package.

    Files of this package are in no repository of the user, so viewers could not open them.
    """
    # Compare both forms: paths below the current directory are relative, and the virtual
    # environment with this package may be there.
    if any(file.is_relative_to(one) for one in (PACKAGE, short_path(PACKAGE))):
        return None
    return file.as_uri() if file.is_absolute() else file.as_posix()
