"""gates: a run is held to what its journal has, with the functions that the process knows."""

from __future__ import annotations

import pytest

from graphloop.drivers.gates import gates_of
from graphloop.errors import ConfigError
from graphloop.policy import allow, deny


def much(arguments: object, context: object) -> bool:
    """Whether it is much."""
    return True


def more(arguments: object, context: object) -> bool:
    """Whether it is more."""
    return False


STRICT = deny("pay", when=much) | allow("*")
LENIENT = allow("*")


def test_functions_are_found_by_the_rules() -> None:
    """Whatever stands before them; what the journal does not have is added."""
    assert ((STRICT,), (LENIENT,)) == gates_of([STRICT.rules], [LENIENT, STRICT])
    assert ((LENIENT, STRICT), ()) == gates_of([LENIENT.rules, STRICT.rules], [STRICT, LENIENT])


def test_of_two_gates_that_say_the_same_each_has_its_own_function() -> None:
    """Two conditions may be named alike, and each gate is looked at once."""
    more.__name__ = "much"
    other = deny("pay", when=more) | allow("*")
    assert other.rules == STRICT.rules

    (first, second), added = gates_of([STRICT.rules] * 2, [other, STRICT])

    assert other.conditions is first.conditions
    assert STRICT.conditions is second.conditions
    assert () == added


def test_a_condition_that_nobody_knows_cannot_be_told() -> None:
    """So it counts against the call."""
    (gate,), _ = gates_of([STRICT.rules], [LENIENT])

    assert STRICT.rules == gate.rules
    with pytest.raises(ConfigError, match="nobody knows"):
        gate.conditions["much"]({}, None)
