"""Outcomes by name."""

from __future__ import annotations

import pytest

from graphloop.outcomes import Failed, Outcome
from graphloop.route_outcomes import route_outcome
from graphloop.topology.forms import Unwritable
from graphloop.topology.outcome_forms import CapsForm, LeftByForm, OutcomeForm, RoutesForm
from tests.topology_forms import read, refusal, written


class Own(Outcome):
    """A class of one's own."""


def test_names_mean_the_librarys_outcomes_and_routes() -> None:
    """`failed` is the one `Failed`, and every other name one type."""
    assert Failed is read(OutcomeForm(), "failed")
    assert route_outcome("sales") is read(OutcomeForm(), "sales")
    assert "sales" == written(OutcomeForm(), route_outcome("sales"))
    assert "own" == written(LeftByForm(), Own)


def test_a_class_of_ones_own_has_no_name_in_a_file() -> None:
    """Another class would be read for it."""
    with pytest.raises(Unwritable, match="a class of your own"):
        written(OutcomeForm(), Own)


def test_routes_and_caps_are_mappings_of_names() -> None:
    """And each wrong name or value is told."""
    routes = {route_outcome("sales"): "to buy"}

    assert routes == read(RoutesForm(), "{sales: to buy}")
    assert {"sales": "to buy"} == written(RoutesForm(), routes)
    assert ((Failed, 3),) == read(CapsForm(), "{failed: 3}")
    assert {"failed": 3} == written(CapsForm(), ((Failed, 3),))
    assert 2 == len(refusal(RoutesForm(), "{Sales: x, other: ''}").splitlines())
    assert "1:2" in refusal(RoutesForm(), "{settled: x}")
    assert "at least 0" in refusal(CapsForm(), "{failed: -1}")


def test_no_outcome_is_named_as_the_rest_of_a_row() -> None:
    """A row could not say which of the two it means, and the graph could not be written."""
    for form, text in (
        (RoutesForm(), "{else: the rest}"),
        (OutcomeForm(), "else"),
        (CapsForm(), "{else: 2}"),
    ):
        assert "stands for the rest" in refusal(form, text)
