"""The register of scenarios: each is a function of the world, kept under its name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from tests.golden.recorder import World

__all__ = ["SCENARIOS", "Scenario", "named", "scenario"]

Scenario: TypeAlias = Callable[[World], Awaitable[object]]

SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    """Keep a scenario under its name."""
    return named(function.__name__, function)


def named(name: str, function: Scenario) -> Scenario:
    """Keep a scenario under a name."""
    assert name not in SCENARIOS, f"two scenarios are named {name!r}"
    SCENARIOS[name] = function
    return function
