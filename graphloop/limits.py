"""Limits: the numbers that bound a run, refused where they could not bound anything."""

from __future__ import annotations

from math import isfinite
from typing import TypeGuard, TypeVar

from .errors import ConfigError

__all__ = ["is_number", "is_whole", "positive_number", "stricter", "whole_number"]

N = TypeVar("N", int, float)


def whole_number(name: str, value: object, least: int = 1) -> int:
    """Return a limit that counts something.

    Raises:
        ConfigError: it is not a whole number of at least `least`; 0 never means "no limit".
    """
    if not is_whole(value) or value < least:
        raise ConfigError(f"`{name}` is a whole number of at least {least}; found {value!r}")
    return value


def positive_number(name: str, value: object) -> float:
    """Return a limit that measures something.

    Raises:
        ConfigError: it is not a finite number above 0.
    """
    if not is_number(value) or value <= 0:
        raise ConfigError(f"`{name}` is a finite number above 0; found {value!r}")
    return value


def stricter(one: N | None, other: N | None) -> N | None:
    """Return the smaller of two limits, of which either may be none."""
    return other if one is None else one if other is None else min(one, other)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number; `True` is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a finite number; NaN is none."""
    return is_whole(value) or (isinstance(value, float) and isfinite(value))
