"""The lines of a drawing: joined by pair, and each with the role the table gives it."""

from __future__ import annotations

import pytest

from graphloop.nodes import AnswerCheck, Gate, Verify
from graphloop.outcomes import outcome_name
from graphloop.policy.policy import allow, ask
from graphloop.views.drawing import Line, lines, notes, visible
from tests.graphs import build


def test_outcomes_with_one_target_are_one_line_in_the_order_of_the_table() -> None:
    """The order of a row says what is usual; a drawing keeps it."""
    graph = build({"a": ["END", "b", "END"], "b": ["END"]})

    assert (
        Line("a", "END", ("calls", "answered_calls"), "main"),
        Line("a", "b", ("answered",), "side"),
        Line("b", "END", ("calls",), "side"),
    ) == lines(graph)


def test_first_outcomes_are_the_main_path_until_a_node_comes_back() -> None:
    """The eye must find the way that most runs take."""
    graph = build({"a": ["b", "END"], "b": ["c"], "c": ["a", "END"]})

    roles = {(line.source, line.target): line.role for line in lines(graph)}

    assert roles == {
        ("a", "b"): "main",
        ("a", "END"): "side",
        ("b", "c"): "main",
        ("c", "a"): "closing",
        ("c", "END"): "leaving",
    }


def test_a_node_that_can_only_fail_is_where_the_main_path_stops() -> None:
    """Its lines stay dashed, and the line to it closes no loop."""
    graph = build({"a": ["b"], "b": ["END"]})
    quiet = [one for one in build({"a": ["END"] * 5}).table["a"] if outcome_name(one) == "failed"]
    graph.table = {"a": graph.table["a"], "b": dict.fromkeys(quiet, "END")}

    assert [line.role for line in lines(graph)] == ["main", "quiet"]
    graph.start = "b"
    assert [line.role for line in lines(graph)] == ["side", "quiet"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb", "a\u240ab"),
        ("\x00\x7f", "\u2400\u2421"),
        ("\x85\u2028\u2029", "\ufffd\ufffd\ufffd"),
        ("\ud800", "\ufffd"),
        ("\uffff\U0010fffe", "\ufffd\ufffd"),
        ("safe\u202eelif", "safe\ufffdelif"),
        ("👩\u200d🚀 日本 é", "👩\u200d🚀 日本 é"),
    ],
)
def test_what_no_picture_can_show_has_a_visible_sign(text: str, shown: str) -> None:
    """A name that hides or reverses itself would let a reviewer approve what does not run."""
    assert shown == visible(text)


def test_a_gate_shows_its_rules_and_what_becomes_of_the_rest() -> None:
    """Who may do what is the first thing a reviewer asks of a drawing."""
    rules = (allow("read_*") | ask("refund", ttl_s=60)).rules

    assert ("allow read_*", "ask refund within 60 s", "deny *") == notes(Gate(rules=rules))
    assert () == notes(Gate())


def test_the_checks_of_an_answer_are_listed_with_their_bounds() -> None:
    """A reader learns which checks an answer must pass."""
    checks = AnswerCheck("output", 2), AnswerCheck("done_when", 0), AnswerCheck("verify", 1)

    assert ("output, 2 retries", "done_when, 0 retries", "verify, 1 retry") == notes(Verify(checks))
    assert () == notes(Verify())
