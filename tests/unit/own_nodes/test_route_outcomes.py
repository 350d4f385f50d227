"""route_outcomes: types made of names are as good as types that were written down."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from graphloop.errors import ConfigError
from graphloop.outcomes import LIBRARY_OUTCOMES, Outcome, outcome_name
from graphloop.own_nodes import route_outcomes as module
from graphloop.own_nodes.route_outcomes import route_outcome, route_outcomes


def test_equal_names_give_the_identical_type() -> None:
    """A table that was loaded twice is the same table."""
    billing, technical = route_outcomes(["billing", "technical_support"])

    assert billing is route_outcome("billing")
    assert ("Billing", "TechnicalSupport") == (billing.__name__, technical.__name__)
    assert issubclass(billing, Outcome)
    assert billing() == billing()
    assert billing() != technical()


@given(st.from_regex(r"[a-z][a-z0-9]+(_[a-z][a-z0-9]+){0,3}", fullmatch=True))
def test_a_type_keeps_its_name_and_survives_pickle(name: str) -> None:
    """In any process: it is found again where it says that it is."""
    assume(name not in LIBRARY_OUTCOMES)
    outcome = route_outcome(name)

    assert name == outcome_name(outcome)
    assert outcome is pickle.loads(pickle.dumps(outcome))  # noqa: S301 - our own bytes
    assert outcome() == pickle.loads(pickle.dumps(outcome()))  # noqa: S301
    assert outcome() == copy.deepcopy(outcome())


@pytest.mark.parametrize("name", ["", "Billing", "a b", "1st", "_x", "x_", "x__y", "plan_b_c"])
def test_a_name_that_no_table_can_show_is_refused(name: str) -> None:
    """Two names must never fall together."""
    with pytest.raises(ConfigError, match="route"):
        route_outcome(name)


@pytest.mark.parametrize("name", sorted(LIBRARY_OUTCOMES))
def test_no_route_is_named_like_an_outcome_of_the_library(name: str) -> None:
    """That would say what no router can know: that calls have verdicts, or results."""
    with pytest.raises(ConfigError, match=f"'{name}' is an outcome of graphloop's"):
        route_outcome(name)


def test_a_name_that_stands_there_twice_is_refused() -> None:
    """It would be one route with two descriptions."""
    with pytest.raises(ConfigError, match="found one, one"):
        route_outcomes(["one", "one"])


def test_the_module_has_no_other_attributes() -> None:
    """A misspelt import is still a mistake."""
    with pytest.raises(AttributeError, match="no attribute 'route_outcom'"):
        getattr(module, "route_outcom")  # noqa: B009 - a checker must not know better
