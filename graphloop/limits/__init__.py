"""Limits: when a run stops, and what it may still begin.

Owns stop conditions, what a budget leaves for the calls of a turn, and prices of one's own.
Refuses a limit that could bound nothing. Budgets themselves are the kernel's: `spending.py`.
Start with `stop.py`.
"""

from . import stop

__all__ = ["stop"]
