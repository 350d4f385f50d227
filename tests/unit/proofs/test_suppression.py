"""Nothing is set aside in silence."""

from __future__ import annotations

import pytest

from graphloop.proofs.report import Finding, Unknown
from graphloop.proofs.suppression import Ignore, claims, excused, set_aside

FOUND = Finding("GL3", "error", "node 'a'", "m", (), "f", node="a")


def test_a_finding_is_set_aside_by_node_and_code() -> None:
    """A reason for one node is none for another."""
    other = Finding("GL3", "error", "node 'b'", "m", (), "f", node="b")

    counted, aside = set_aside([FOUND, other], {("a", "GL3"): "known"})

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
    counted, aside = set_aside([FOUND], ignore)

    assert counted[0] == FOUND
    assert ("GL0", severity) == (counted[1].code, counted[1].severity)
    assert word in counted[1].message
    assert () == aside


def test_what_nobody_can_tell_is_a_finding_for_whoever_answers_for_it() -> None:
    """Only where it is about a node; and of that node and code."""
    open_ = Unknown("GL4", "nobody says.", "a")
    ignore = {("a", "GL4"): " known "}

    found = claims(open_, ignore)

    assert "known" == excused(open_, ignore)
    assert isinstance(found, Finding)
    assert ("GL4", "a", "nobody says.") == (found.code, found.node, found.message)
    assert claims(open_, {("b", "GL4"): "known"}) is open_
    assert claims(open_, {("a", "GL4"): " "}) is open_
    assert claims(FOUND, {("a", "GL3"): "known"}) is FOUND
    nowhere = Unknown("GL12", "no rules.")
    assert claims(nowhere, {("", "GL12"): "known"}) is nowhere
