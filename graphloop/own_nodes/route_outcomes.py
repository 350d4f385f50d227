"""Outcome types made from route names, so that a topology file can define routes without Python.

Equal names give the identical type in every module of a process. Each type is an attribute of this
module under its class name, so that pickle can find the type in another process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from ..errors import ConfigError
from ..outcomes import LIBRARY_OUTCOMES, Outcome, outcome_name

__all__ = ["route_outcome", "route_outcomes"]

NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z][a-z0-9]*)*")
CLASS_NAME: Final = re.compile(r"(?:[A-Z][a-z0-9]*)+")


def route_outcomes(names: Iterable[str]) -> tuple[type[Outcome], ...]:
    """Return one outcome type for each name, in order.

    Raises:
        ConfigError: a name is invalid (see `route_outcome`) or occurs twice.
    """
    types = tuple([route_outcome(name) for name in names])
    if len(set(types)) < len(types):
        words = ", ".join(map(outcome_name, types))
        raise ConfigError(f"expected a different name for each route, found {words}")
    return types


def route_outcome(name: str) -> type[Outcome]:
    """Return the outcome type with this name; equal names give the same type.

    Raises:
        ConfigError: the name is not in snake case, so tables and diagrams could not show it; or it
            is the name of an outcome of the library, which means more than a chosen route.
    """
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"expected a route in snake case, like 'technical_support', found {name!r}"
        )
    if name in LIBRARY_OUTCOMES:
        raise ConfigError(
            f"{name!r} is an outcome of graphloop's own nodes, no route: name it otherwise"
        )
    outcome = _make_outcome("".join(part.capitalize() for part in name.split("_")))
    if outcome_name(outcome) != name:
        raise ConfigError(f"a word of one letter is lost in the route {name!r}: write it out")
    return outcome


def __getattr__(name: str) -> type[Outcome]:
    """Return the outcome type with this class name, so that pickle can import it."""
    if not CLASS_NAME.fullmatch(name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _make_outcome(name)


@cache
def _make_outcome(class_name: str) -> type[Outcome]:
    doc = f"The route {class_name!r} was chosen."
    return type(class_name, (Outcome,), {"__doc__": doc, "__module__": __name__})
