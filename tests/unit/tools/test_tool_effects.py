"""Which calls may run again unasked is one table (DURABLE §6.4)."""

from __future__ import annotations

import copy
import pickle
from typing import get_args

from graphloop.tools.repeats import NOT_DONE, REPEATABLE, UNKNOWN, EffectPolicy, Found


def test_only_what_says_so_may_run_again() -> None:
    """Whoever adds a policy decides on which side it stands."""
    assert set(get_args(EffectPolicy)) - REPEATABLE == {"at_most_once", "reconcile"}
    assert set(get_args(EffectPolicy)) > REPEATABLE


def test_answers_of_a_lookup_stay_what_they_are_in_a_copy() -> None:
    """They are told apart by identity, and a lookup may run in another process."""
    for answer in (NOT_DONE, UNKNOWN):
        assert copy.deepcopy(answer) is answer
        assert pickle.loads(pickle.dumps(answer)) is answer  # noqa: S301 - our own bytes.


def test_found_results_compare_by_what_was_found() -> None:
    """Users test their lookups."""
    assert Found({"id": 1}) == Found({"id": 1}) != Found({"id": 2})
