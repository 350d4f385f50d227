"""Reports of what is exact, approximated and refused."""

from __future__ import annotations

from graphloop.topology.agent_spec.findings import AgentSpecFinding, Findings
from graphloop.topology.problems import Mark


def test_a_report_is_told_in_order_and_counted() -> None:
    """Each finding once, with its place; what was refused is a problem of the file."""
    findings = Findings("a.json")
    for _ in range(2):
        findings.add("refused", "ApiNode", "x", "no", Mark(2, 3))
    findings.add("exact", "EndNode", "e", "END")

    report = findings.report
    assert (
        "refused: a.json:2:3: ApiNode 'x': no\n"
        "exact: EndNode 'e': END\n"
        "1 exact, 0 approximated, 1 refused"
    ) == str(report)
    assert (AgentSpecFinding("exact", "EndNode", "e", "END"),) == report.of("exact")
    (problem,) = report.problems("mend it.")
    assert "a.json:2:3" == problem.place
    assert "ApiNode 'x' is refused: no" in str(problem)


def test_findings_wait_until_it_is_known_what_is_kept() -> None:
    """What is left out in the end has no verdict."""
    findings = Findings()
    findings.begin()
    findings.add("exact", "A", "a", "one")
    findings.begin()
    findings.add("exact", "B", "b", "two")
    inner = findings.end()
    assert not findings.report.findings
    findings.keep(inner)
    outer = findings.end()

    findings.keep(outer[1:])

    assert ["b"] == [one.name for one in findings.report]
