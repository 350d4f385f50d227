"""Lines, their roles, notes and visible names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphloop import Agent
from graphloop.nodes import AnswerCheck, Child, Execute, Gate, Verify
from graphloop.outcomes import outcome_name
from graphloop.own_nodes import parallel
from graphloop.policy.policy import allow, ask
from graphloop.testing import ScriptedModel
from graphloop.views.drawing import Line, lines, notes, visible
from graphloop.views.levels import picture
from graphloop.views.text import text_of
from tests.graphs import build


def test_outcomes_with_one_target_are_one_line() -> None:
    graph = build({"a": ["END", "b", "END"], "b": ["END"]})

    assert lines(graph) == (
        Line("a", "END", ("calls", "answered_calls"), "main"),
        Line("a", "b", ("answered",), "side"),
        Line("b", "END", ("calls",), "side"),
    )


def test_the_main_path_follows_first_outcomes() -> None:
    graph = build({"a": ["b", "END"], "b": ["c"], "c": ["a", "END"]})

    assert {(line.source, line.target): line.role for line in lines(graph)} == {
        ("a", "b"): "main",
        ("a", "END"): "side",
        ("b", "c"): "main",
        ("c", "a"): "closing",
        ("c", "END"): "leaving",
    }


def test_the_main_path_stops_at_a_node_that_can_only_fail() -> None:
    graph = build({"a": ["b"], "b": ["END"]})
    row = build({"a": ["END"] * 5}).table["a"]
    quiet = [outcome for outcome in row if outcome_name(outcome) == "failed"]
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
def test_hidden_characters_get_a_visible_sign(text: str, shown: str) -> None:
    """A name that reverses itself would make a reviewer approve another graph."""
    assert visible(text) == shown


def test_notes_are_the_rules_of_a_gate_or_the_checks_of_an_answer() -> None:
    rules = (allow("read_*") | ask("refund", ttl_s=60)).rules
    checks = AnswerCheck("output", 2), AnswerCheck("done_when", 0), AnswerCheck("verify", 1)

    assert notes(Gate(rules=rules)) == ("allow read_*", "ask refund within 60 s", "deny *")
    assert notes(Verify(checks)) == ("output, 2 retries", "done_when, 0 retries", "verify, 1 retry")
    assert notes(Gate()) == notes(Verify()) == ()


def test_a_child_that_any_worker_drives_has_a_note() -> None:
    """Where a run goes on decides what its tools reach: files, secrets, a screen."""
    anywhere = "on any worker"
    assert notes(Child("desk", place="anywhere")) == (anywhere,)
    assert notes(Child("desk", "clerk", place="anywhere")) == ("agent desk", anywhere)
    assert notes(replace(parallel("a", "b"), place="anywhere")) == (anywhere,)
    assert notes(parallel("a", "b")) == notes(Child("desk")) == notes(Execute()) == ()

    helper = Agent(ScriptedModel([]), name="helper")
    plain = helper.as_tool(name="plain")
    placed = helper.as_tool(name="placed", place="anywhere")
    agent = Agent(ScriptedModel([]), tools=[plain, placed])
    text = text_of(picture(agent.graph))
    for drawn in (agent.graph.mermaid(), agent.graph.dot(), text):
        assert drawn.count(anywhere) == drawn.count(f"placed {anywhere}") == 1
