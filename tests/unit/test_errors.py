"""Errors: whom to blame, and what to do."""

from __future__ import annotations

import inspect
import pickle

import pytest

from graphloop import errors
from graphloop.errors import (
    ConfigError,
    GraphError,
    GraphloopError,
    Problem,
    ProviderTimeout,
    known_name,
)

EVERY = [
    one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, Exception)
]


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
def test_every_error_of_ours_has_one_root_and_a_meaning(kind: type[Exception]) -> None:
    """Whoever catches the root has caught them all."""
    assert issubclass(kind, GraphloopError)
    assert kind.__doc__


def test_the_drawing_names_every_error() -> None:
    """The module's docstring is where people look."""
    assert errors.__doc__ is not None
    for kind in EVERY:
        assert kind.__name__ in errors.__doc__


@pytest.mark.parametrize(
    "error",
    [
        errors.RateLimited("x", status=429),
        ProviderTimeout("slow", layer="silence"),
        GraphError("g", [Problem("a", "b", "c")]),
    ],
    ids=["rate", "timeout", "graph"],
)
def test_errors_survive_being_sent_to_another_process(error: GraphloopError) -> None:
    """Process pools pickle what a worker raised."""
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes

    assert (type(error), str(error), error.__dict__) == (type(again), str(again), again.__dict__)


def test_a_mistake_of_any_kind_has_a_name_that_is_known() -> None:
    """The nearest; what is no mistake keeps its own."""
    other = type("Other", (GraphError,), {})

    assert "GraphError" == known_name(other("g", ()))
    assert "ConfigError" == known_name(type("Mine", (ConfigError,), {})("x"))
    assert "KeyError" == known_name(KeyError("x"))


@pytest.mark.parametrize("name", ["ConfigError", "GraphError", "OutputInvalid", "Overloaded"])
def test_a_foreign_error_that_bears_a_name_of_ours_is_told_from_it(name: str) -> None:
    """A graph database has a `GraphError` that is no mistake of the developer's."""
    foreign = type(name, (Exception,), {"__module__": "graph_db.errors"})
    inner = type(name, (Exception,), {"__module__": "db", "__qualname__": f"Client.{name}"})

    assert f"graph_db.errors.{name}" == known_name(foreign("try again"))
    assert f"db.Client.{name}" == known_name(inner("try again"))


def test_our_own_errors_keep_their_names_below_somebody_s_own() -> None:
    """What inherits from ours, and is called alike, is one of ours."""
    mine = type("Overloaded", (errors.Overloaded,), {"__module__": "mine"})

    assert ["Overloaded", "Overloaded"] == [
        known_name(errors.Overloaded("x")),
        known_name(mine("x")),
    ]
