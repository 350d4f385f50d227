"""Temporal rules in a difference: what was promised about a run and is not any more."""

from __future__ import annotations

import json

import pytest

from graphloop import END, Graph
from graphloop.errors import ConfigError
from graphloop.front.topology import load
from graphloop.nodes import Limit
from graphloop.outcomes import Go
from graphloop.proofs.difference import Difference, difference
from graphloop.proofs.rule_changes import refuse_unknown, rule_changes
from graphloop.temporal import (
    Rules,
    always_followed_by,
    at_most,
    at_most_once,
    never,
    only_after,
)
from tests.graphs import build

SAFE = build({"a": ["review"], "review": ["deploy"], "deploy": ["log"], "log": ["END"]})
LED_PAST = build(
    {"a": ["review", "deploy"], "review": ["deploy"], "deploy": ["log", "END"], "log": ["deploy"]}
)
REVIEWED = never("deploy", before="review")


def effects(found: Difference) -> list[tuple[str, str]]:
    """Return what is said about temporal rules."""
    return [(one.effect, one.message) for one in found.verdict if one.subject == "GL12"]


@pytest.mark.parametrize(
    ("rule", "broken"),
    [
        (REVIEWED, "`deploy` becomes reachable without `review`: "),
        (only_after("deploy", "review"), "`deploy` becomes reachable without `review`: "),
        (at_most_once("deploy"), "`deploy` can happen more than once: "),
        (at_most("deploy", 2, per="review"), "`deploy` can happen more than 2 times per `review`"),
        (always_followed_by("deploy", "log"), "a run can end after `deploy` without `log`: "),
        (
            only_after("deploy", "review", since="a"),
            "`deploy` becomes reachable without `review` since the last `a`: ",
        ),
    ],
    ids=str,
)
def test_a_rule_that_was_proven_and_can_be_broken_is_weaker_with_a_way(
    rule: Rules, broken: str
) -> None:
    """The sentence that a reviewer has to read, and the way that shows it."""
    found = difference(SAFE, LED_PAST, rule)
    (one,) = [each for each in found.verdict if each.subject == "GL12"]

    assert found.weaker
    assert "weaker" == one.effect
    assert one.message.startswith(broken)
    assert one.message.endswith("was proven, and can be broken now")
    lines = {(edge.source, edge.outcome, edge.target) for edge in LED_PAST.edges}
    assert one.witness[0] == LED_PAST.start
    assert set(zip(one.witness, one.outcomes, one.witness[1:], strict=False)) <= lines


def test_what_never_was_and_can_be_now_is_weaker() -> None:
    """Not before anything: not at all."""
    before = build({"a": ["END"], "pay": ["END"]})
    found = difference(before, build({"a": ["pay"], "pay": ["END"]}), never("pay"))

    assert (
        "weaker",
        "`pay` becomes reachable: the rule 'never pay' was proven, and can be broken now",
    ) in effects(found)


def test_a_rule_that_holds_again_is_stronger() -> None:
    """Mending is told, too."""
    assert [
        ("stronger", "the rule 'never deploy before review' is proven, and could be broken")
    ] == effects(difference(LED_PAST, SAFE, REVIEWED))


def test_a_rule_that_both_keep_is_not_told() -> None:
    """A verdict on what stayed would be a report."""
    assert [] == effects(difference(SAFE, SAFE, REVIEWED))
    assert [] == effects(difference(LED_PAST, LED_PAST, REVIEWED))


def test_a_rule_that_is_dropped_is_weaker_unless_it_holds_all_the_same() -> None:
    """Nobody keeps a run to it any more."""
    still = difference(SAFE, SAFE, rules_before=REVIEWED)
    gone = difference(SAFE, LED_PAST, rules_before=REVIEWED)

    assert not still.weaker
    assert "is not given any more, and still holds" in str(still)
    assert "- rule never deploy before review" in str(still)
    assert gone.weaker
    ((_, said),) = effects(gone)
    assert said.startswith("`deploy` becomes reachable without `review`: ")
    assert ("rule 'never deploy before review' is not given any more, and was proven") in said
    assert [] == effects(difference(LED_PAST, LED_PAST, rules_before=REVIEWED))


def test_a_new_rule_is_stronger_if_it_is_kept_and_no_verdict_on_what_was_never_promised() -> None:
    """A rule that could always be broken was not broken by this change."""
    assert [("stronger", "the rule 'never deploy before review' is new, and is proven")] == effects(
        difference(SAFE, SAFE, REVIEWED, rules_before=())
    )
    assert [
        ("changed", "the rule 'never deploy before review' is new, and can be broken")
    ] == effects(difference(LED_PAST, LED_PAST, REVIEWED, rules_before=()))
    assert difference(SAFE, LED_PAST, REVIEWED, rules_before=()).weaker


def test_a_rule_whose_node_is_gone_means_nothing_any_more() -> None:
    """It is told, and nothing fails."""
    bare = build({"a": ["deploy"], "deploy": ["END"]})

    ((effect, said),) = effects(difference(SAFE, bare, REVIEWED))
    assert "weaker" == effect
    assert "means nothing any more" in said
    assert "'review'" in said
    ((effect, said),) = effects(difference(bare, SAFE, REVIEWED))
    assert ("changed", "meant nothing, and is proven now") == (effect, said[-32:])
    ((effect, said),) = effects(difference(SAFE, bare, rules_before=REVIEWED))
    assert "weaker" == effect
    ((effect, said),) = effects(difference(SAFE, bare, REVIEWED, rules_before=()))
    assert ("changed", True) == (effect, "is new, and means nothing" in said)
    assert [] == effects(difference(bare, bare, REVIEWED))


def test_what_only_the_monitor_can_keep_is_weaker_than_what_was_proven() -> None:
    """With the way on which the tool may run."""
    limit = Limit(1)
    before: Graph[None] = Graph("g", limit, {limit: {Go: END, ...: END}})
    after = build({"limit": ["gate"], "gate": ["END"]}, {"gate": "gate"})
    found = difference(before, after, never("tool:pay"))
    (one,) = [each for each in found.verdict if each.subject == "GL12"]

    assert "weaker" == one.effect
    assert "cannot be proven any more: which tools run is not in the graph" in one.message
    assert ("stronger", "the rule 'never tool:pay' is new, and is kept by the monitor") in effects(
        difference(after, after, never("tool:pay"), rules_before=())
    )


def test_rules_are_listed_as_added_removed_and_changed() -> None:
    """Those about the same happening as one line."""
    added, removed, changed = rule_changes(
        at_most("pay", 1) & never("a") & never("b"), at_most("pay", 5) & never("c") & never("b")
    )

    assert (("never c",), ("never a",)) == (added, removed)
    assert ["pay at most 5 times (was pay at most once)"] == [str(one) for one in changed]


def test_the_rules_of_a_file_are_read_and_told_as_json() -> None:
    """By Graph.diff, too."""
    file = """
    graphloop: 1
    name: g
    start: first
    rules: [RULE]
    nodes: {first: {use: limit, times: 1}, second: {use: limit, times: 1}}
    edges: {first: {go: second, else: END}, second: {else: END}}
    """
    before = load(file.replace("RULE", "{never: second, before: first}"))
    after = load(file.replace("RULE", "{at_most_once: second}"))
    found = before.diff(after)
    data = json.loads(found.to_json())

    assert found.weaker is False
    assert ["second at most once"] == data["changes"]["rules_added"]
    assert ["never second before first"] == data["changes"]["rules_removed"]
    assert before.diff(before).none
    assert before.diff(after, rules=never("second", before="first")).weaker is False


def test_a_stricter_rule_in_the_place_of_one_is_stronger() -> None:
    """Who tightens a rule has lost nothing, and who rewords a reason neither."""
    tools = build({"a": ["gate"], "gate": ["END"]}, {"gate": "gate"})
    five, three = at_most("tool:pay", 5), at_most("tool:pay", 3)

    assert [
        ("stronger", "the rule 'tool:pay at most 3 times' is new, and is kept by the monitor")
    ] == effects(difference(tools, tools, three, rules_before=five))
    ((effect, said),) = effects(difference(tools, tools, five, rules_before=three))
    assert ("weaker", True) == (effect, "can happen more than 3 times" in said)
    a, b = (never("tool:pay", reason=reason) for reason in "ab")
    assert [("changed", "the rule 'never tool:pay (a)' has another reason")] == effects(
        difference(tools, tools, b, rules_before=a)
    )


def test_a_rule_whose_words_mean_something_else_is_weaker() -> None:
    """A person's node becomes a tool of that name, which the model calls when it likes."""
    before, after = SAFE, build({"a": ["deploy"], "deploy": ["log"], "log": ["END"]})
    after.tool_names = ("review",)
    found = effects(difference(before, after, REVIEWED))

    assert [
        (
            "weaker",
            "the rule 'never deploy before review' means 'never node:deploy before tool:review' "
            "now, and meant 'never node:deploy before node:review'",
        )
    ] == found


def test_a_rule_that_means_nothing_on_either_graph_is_refused() -> None:
    """One whose word is gone, or is new, guards something."""
    later = build({"a": ["deploy"], "deploy": ["END"]})
    with pytest.raises(ConfigError, match="nosuch"):
        refuse_unknown(SAFE, later, never("nosuch"))

    assert "weaker" in [effect for effect, _ in effects(difference(SAFE, later, REVIEWED))]
    refuse_unknown(SAFE, later, REVIEWED)
    refuse_unknown(later, SAFE, REVIEWED)
