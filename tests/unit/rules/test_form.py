"""Temporal rules as data: read strictly, written as read."""

from __future__ import annotations

import jsonschema
import pytest
from hypothesis import given

from graphloop.errors import ConfigError
from graphloop.rules import (
    Rules,
    always_followed_by,
    at_most,
    at_most_once,
    never,
    only_after,
)
from graphloop.rules.form import RuleData, rule_schema, rules_from_data, rules_to_data
from tests.temporal_reference import rule_lists

DATA: list[RuleData] = [
    {"never": "x"},
    {"never": "deploy", "before": "review", "reason": "a person looks first"},
    {"at_most_once": "refund", "per": "approval"},
    {"at_most": "search", "times": 5},
    {"only": "merge", "after": "test", "since": "edit"},
    {"always": "deploy", "followed_by": "verify"},
]


def test_each_form_of_data_is_the_rule_it_reads_as() -> None:
    """A file and a line of Python say the same."""
    expected = (
        never("x")
        & never("deploy", before="review", reason="a person looks first")
        & at_most_once("refund", per="approval")
        & at_most("search", 5)
        & only_after("merge", "test", since="edit")
        & always_followed_by("deploy", "verify")
    )

    assert expected == rules_from_data(DATA)
    assert DATA == rules_to_data(expected)


@given(rule_lists(("deploy", "review", "tool:x", "review.accepted")))
def test_what_is_written_is_read_as_the_same_rules(rules: Rules) -> None:
    """A dumped topology is the topology, and its schema knows it."""
    data = rules_to_data(rules)

    assert rules == rules_from_data(data)
    for one in data:
        jsonschema.validate(one, rule_schema())


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("never x", r"rules\[0\]: expected a mapping, found 'never x'"),
        ({}, "found nothing"),
        ({"nevr": "x"}, "Did you mean 'never'"),
        ({"never": "x", "only": "y", "after": "z"}, "found 'never', 'only'. Fix: write 2 rules"),
        ({"never": "x", "befor": "y"}, "has no key 'befor'. Did you mean 'before'"),
        ({"at_most": "x"}, "needs the key 'times'"),
        ({"only": "x"}, "needs the key 'after'"),
        ({"always": "x"}, "needs the key 'followed_by'"),
        ({"never": 3}, "`never`: expected text, found 3"),
        ({"never": "x", "before": None}, "`before`: expected text, found None"),
        ({"never": "x", "before": ""}, "`before`: expected text, found ''"),
        ({"at_most": "x", "times": "5"}, "found '5'"),
        ({"at_most": "x", "times": True}, "found True"),
        ({"never": "x", True: "y"}, "has no key True"),
        ({"never": "x", "before": "x"}, "expected different happenings"),
    ],
)
def test_data_that_is_no_rule_is_refused_with_its_place(entry: object, message: str) -> None:
    """A key that is not understood is a rule that is not kept."""
    with pytest.raises(ConfigError, match=message):
        rules_from_data([entry])


def test_rules_that_are_not_a_list_are_refused() -> None:
    """The commonest slip in YAML: a missing dash."""
    with pytest.raises(ConfigError, match="rules: expected a list of rules"):
        rules_from_data({"never": "x"})
