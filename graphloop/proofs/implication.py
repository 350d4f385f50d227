"""Implication: whether one temporal rule forbids all that another forbids, by their forms alone.

Only rules about the same happenings are compared; of all others nothing is claimed.
"""

from __future__ import annotations

from typing import assert_never

from ..temporal import AtMost, Followed, Never, OnlyAfter, TemporalRule
from ..values import evolve

__all__ = ["bare", "implies"]


def bare(rule: TemporalRule) -> TemporalRule:
    """Return a rule without its reason, which forbids nothing."""
    return evolve(rule, reason="") if rule.reason else rule


def implies(rule: TemporalRule, other: TemporalRule) -> bool:
    """Whether no run can break `other` that keeps `rule`; False if nobody has thought of it."""
    rule, other = bare(rule), bare(other)
    if rule == other:
        return True
    if rule.what != other.what or isinstance(other, Followed):
        return False
    match rule:
        case Never(before=""):
            return True
        case Never(before=first) | OnlyAfter(after=first):
            return _waits_for(other, first)
        case AtMost(times=times, per=per):
            fewer = isinstance(other, AtMost) and other.per == per and times <= other.times
            return fewer or (per != "" and _waits_for(other, per))
        case Followed():
            return False
        case _:
            assert_never(rule)


def _waits_for(rule: TemporalRule, first: str) -> bool:
    """Whether a rule only says that `first` has happened before."""
    match rule:
        case Never(before=word) | OnlyAfter(after=word, since=""):
            return word == first
        case _:
            return False
