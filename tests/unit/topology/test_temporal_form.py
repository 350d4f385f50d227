"""Temporal rules in a file, and on a command line."""

from __future__ import annotations

import pytest

from graphloop.rules import Rules, at_most, never
from graphloop.topology.compose import compose
from graphloop.topology.conditions import read_rules, rules_of_texts
from graphloop.topology.diagnostics import Diagnostics, TopologyError


def test_a_rule_is_one_text_in_yaml_or_json() -> None:
    """As it would stand in a file."""
    texts = ("{never: 'tool:pay', before: review}", '{"at_most": "search", "times": 5}')

    assert never("tool:pay", before="review") & at_most("search", 5) == rules_of_texts(texts, "-r")
    assert Rules() == rules_of_texts((), "-r")


def test_every_problem_of_every_text_is_told_with_its_place() -> None:
    """Nobody has to try one after the other."""
    texts = ("{never: a, never: b}", "{at_most: x, times: 010}", "{never: [x]}", "{never: a")

    with pytest.raises(TopologyError) as caught:
        rules_of_texts(texts, "--rule")

    places = [one.place for one in caught.value.problems]
    assert ["--rule 1:1:12", "--rule 2:1:21", "--rule 3:1:1"] == places[:3]
    assert places[3].startswith("--rule 4:1:")


def test_what_is_no_rule_is_noted_and_the_others_are_read() -> None:
    """A file has other problems, too, and all of them are told at once."""
    diagnostics = Diagnostics("file")
    tree = compose("{never: deploy}", diagnostics)
    odd = compose("deploy", diagnostics)

    assert never("deploy") == read_rules([tree, odd], diagnostics)
    (problem,) = diagnostics.problems
    assert "rule 2: expected a mapping, found 'deploy'" in problem.found
    assert "write `{never: deploy, before: review}`" in problem.fix
