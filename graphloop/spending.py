"""What a run has spent, and what it may spend: tokens, money, time and tool calls."""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct

from .limits import positive_number, whole_number
from .values import Usage

__all__ = ["Budget", "Spent", "budget"]

N = TypeVar("N", int, float)


class Spent(Struct, frozen=True, gc=False):
    """What a run has used so far, its child runs included.

    `unpriced_calls` counts model calls of unknown price. `seconds` are seconds of work, by the
    run's own events: waiting for people counts nothing, and child runs count each for itself.
    """

    model_calls: int = 0
    tool_calls: int = 0
    usage: Usage = Usage()
    cost_usd: float = 0.0
    unpriced_calls: int = 0
    seconds: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.model_calls + other.model_calls,
            self.tool_calls + other.tool_calls,
            self.usage + other.usage,
            self.cost_usd + other.cost_usd,
            self.unpriced_calls + other.unpriced_calls,
            self.seconds + other.seconds,
        )


class Budget(Struct, frozen=True, gc=False):
    """What a run may spend at most; None is no limit. A child run gets a share of what is left.

    Tokens, money and time are looked at between turns, so one turn can exceed them; the number of
    tool calls is never exceeded.
    """

    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None
    tool_calls: int | None = None

    def tripped(self, spent: Spent) -> tuple[str, ...]:
        """Return the names of the limits that are reached."""
        return tuple(
            [
                name
                for name, limit, used in (
                    ("budget.tokens", self.tokens, spent.usage.total_tokens),
                    ("budget.usd", self.usd, spent.cost_usd),
                    ("budget.seconds", self.seconds, spent.seconds),
                    ("budget.tool_calls", self.tool_calls, spent.tool_calls),
                )
                if limit is not None and used >= limit
            ]
        )

    def left(self, spent: Spent) -> Budget:
        """Return what is left of it, never less than nothing."""
        return Budget(
            None if self.tokens is None else max(0, self.tokens - spent.usage.total_tokens),
            None if self.usd is None else max(0.0, self.usd - spent.cost_usd),
            None if self.seconds is None else max(0.0, self.seconds - spent.seconds),
            None if self.tool_calls is None else max(0, self.tool_calls - spent.tool_calls),
        )

    def without(self, other: Budget) -> Budget:
        """Return what is left once `other` is set aside; a limit that `other` lacks stays."""
        return Budget(
            _less(self.tokens, other.tokens),
            _less(self.usd, other.usd),
            _less(self.seconds, other.seconds),
            _less(self.tool_calls, other.tool_calls),
        )

    def share(self, parts: int) -> Budget:
        """Return one of `parts` equal parts; what counts is rounded down."""
        return Budget(
            None if self.tokens is None else self.tokens // parts,
            None if self.usd is None else self.usd / parts,
            None if self.seconds is None else self.seconds / parts,
            None if self.tool_calls is None else self.tool_calls // parts,
        )

    def tightened(self, other: Budget) -> Budget:
        """Return the stricter of the two, limit by limit."""
        return Budget(
            _least(self.tokens, other.tokens),
            _least(self.usd, other.usd),
            _least(self.seconds, other.seconds),
            _least(self.tool_calls, other.tool_calls),
        )


def budget(
    *,
    tokens: int | None = None,
    usd: float | None = None,
    seconds: float | None = None,
    tool_calls: int | None = None,
) -> Budget:
    """Return a budget for a run and all its child runs.

    Args:
        tokens: input and output tokens of all model calls, as providers report them.
        usd: the cost in US dollars of all model calls of known price.
        seconds: seconds of work; waiting for people does not count.
        tool_calls: executions of tools.

    Raises:
        ConfigError: a limit is not above 0; leave it out for no limit.
    """
    return Budget(
        None if tokens is None else whole_number("budget.tokens", tokens),
        None if usd is None else positive_number("budget.usd", usd),
        None if seconds is None else positive_number("budget.seconds", seconds),
        None if tool_calls is None else whole_number("budget.tool_calls", tool_calls),
    )


def _less(limit: N | None, used: N | None) -> N | None:
    return limit if limit is None or used is None else max(limit - limit, limit - used)


def _least(one: N | None, other: N | None) -> N | None:
    return other if one is None else one if other is None else min(one, other)
