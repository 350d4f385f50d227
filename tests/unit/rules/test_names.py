"""Words of rules: each means one thing of the graph, or is refused with what it could mean."""

from __future__ import annotations

import pytest

from graphloop.errors import ConfigError
from graphloop.graph import Surroundings, names_of
from graphloop.rules import (
    AtMost,
    Followed,
    Never,
    OnlyAfter,
    Rules,
    always_followed_by,
    at_most,
    at_most_once,
    never,
    only_after,
)
from graphloop.rules.names import (
    Vocabulary,
    guarded_tools,
    resolve_words,
    spelled_tools,
    to_be_brought,
)
from tests.graphs import agent

NAMES = Vocabulary(
    "g",
    ("review", "plan", "deploy", "END"),
    (("review", "accepted"), ("review", "rejected"), ("plan", "accepted"), ("plan", "plan")),
    ("deploy", "refund", "search"),
)


def test_every_word_gets_its_kind() -> None:
    """Proof and monitor look for exactly these words."""
    rules = (
        never("refund", before="review", reason="why")
        & at_most("search", 2, per="END")
        & at_most_once("refund", per="approval")
        & only_after("search", "review.accepted", since="rejected")
        & always_followed_by("tool:deploy", "node:deploy")
    )

    assert Rules(
        (
            Never("tool:refund", "node:review", "why"),
            AtMost("tool:search", 2, "node:END"),
            AtMost("tool:refund", 1, "approval:refund"),
            OnlyAfter("tool:search", "outcome:review.accepted", "outcome:review.rejected"),
            Followed("tool:deploy", "node:deploy"),
        )
    ) == resolve_words(rules, NAMES)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("deploy", "could mean node:deploy, tool:deploy"),
        ("accepted", "mean outcome:review.accepted, outcome:plan.accepted, outcome:accepted"),
        ("plan", "could mean node:plan, outcome:plan.plan"),
        ("reviw", "no node, outcome or tool 'reviw'. Did you mean 'review'"),
        ("node:reviw", "no node 'reviw'. Did you mean 'review'"),
        ("tool:serch", "no tool 'serch'. Did you mean 'search'"),
        ("approval:serch", "no tool 'serch'. Did you mean 'search'"),
        ("outcome:review.acepted", "Did you mean 'review.accepted'"),
        ("outcome:acepted", "Did you mean 'accepted'"),
        ("node:*", r"no node '\*'"),
        ("tool:", "no tool ''"),
    ],
)
def test_a_word_that_means_nothing_or_two_things_is_refused(word: str, message: str) -> None:
    """A rule that watches the wrong thing holds for ever and guards nothing."""
    with pytest.raises(ConfigError, match=message):
        resolve_words(never(word), NAMES)


def test_where_no_tools_are_known_a_tool_is_named_by_its_kind() -> None:
    """A topology is written before anybody says which tools it is run with."""
    names = names_of(agent())

    assert never("tool:anything") == resolve_words(never("tool:anything"), names)
    with pytest.raises(ConfigError, match="If it is a tool, write 'tool:anything'"):
        resolve_words(never("anything"), names)


def test_two_words_for_one_thing_are_no_rule() -> None:
    """Only looking them up shows it."""
    with pytest.raises(ConfigError, match="expected different happenings"):
        resolve_words(never("review", before="node:review"), NAMES)


def test_the_tools_that_rules_bound_are_known_to_who_starts_a_child() -> None:
    """A child's calls are not counted here, so it must not have these tools unwatched."""
    rules = never("tool:x", before="node:a") & at_most("tool:y", 2) & never("node:a")

    assert ("x", "y") == guarded_tools(rules & at_most("tool:x", 3))
    assert ("*",) == guarded_tools(never("tool:*", before="node:a"))


def test_tools_that_runs_have_to_bring_are_told() -> None:
    """They may be misspelt; where the graph knows no tools, runs bring all of them."""
    rules = never("tool:depoly", before="approval:mail") & never("tool:*", before="approval:deploy")
    graph = agent()

    assert ("depoly", "mail", "deploy") == spelled_tools(rules)
    assert ["", ""] == [to_be_brought(one, graph.surroundings.tool_names or ()) for one in rules]
    graph.surroundings = Surroundings(("deploy",))
    said = " A run has to bring the tool 'depoly'. Did you mean 'deploy'?"
    assert [f"{said} A run has to bring the tool 'mail'.", ""] == [
        to_be_brought(one, graph.surroundings.tool_names or ()) for one in rules
    ]
