"""Limits: when a run stops, and which calls it may still start.

Owns stop conditions, the budget that remains for the calls of a turn, and the caller's own prices.
Refuses a limit that could bound nothing. Budgets themselves are the kernel's: `spending`.
Start with `stop`.
"""

from . import stop

__all__ = ["stop"]
