"""What temporal rules mean, over whole traces and with no automaton in sight; and rules to try."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from hypothesis import strategies as st

from graphloop.temporal import (
    AtMost,
    Followed,
    Never,
    OnlyAfter,
    Rules,
    TemporalRule,
    words_of,
)
from graphloop.temporal_automata import Happening, approval_of, entered, ran, taken

__all__ = ["breaches", "happenings", "owes", "rule_lists", "rules_over"]


def breaches(rule: TemporalRule, trace: Sequence[Happening]) -> list[int]:
    """Return every place of a trace where a rule forbids what happens there."""
    what, second, third = ([word in one.words for one in trace] for word in words_of(rule))
    places = [at for at, is_what in enumerate(what) if is_what]
    match rule:
        case Never(before=""):
            return places
        case Never():
            return [at for at in places if not any(second[:at])]
        case OnlyAfter(since=""):
            return [at for at in places if not any(second[:at])]
        case OnlyAfter():
            return [
                at
                for at in places
                if not any(second[one] and not any(third[one + 1 : at]) for one in range(at))
            ]
        case AtMost(times=times, per=""):
            return places[times:]
        case AtMost(times=times):
            # Up to and with the last `per` before it, everything is forgotten.
            lasts = {at: max((p for p in range(at) if second[p]), default=-1) for at in places}
            return [at for at in places if lasts[at] < 0 or sum(what[lasts[at] + 1 : at]) >= times]
        case Followed():
            return []
        case _:
            assert_never(rule)


def owes(rule: TemporalRule, trace: Sequence[Happening]) -> bool:
    """Whether a run with this trace must not end yet."""
    if not isinstance(rule, Followed):
        return False
    what, by, _ = ([word in one.words for one in trace] for word in words_of(rule))
    return any(is_what and not any(by[at + 1 :]) for at, is_what in enumerate(what))


def rules_over(words: Sequence[str], *, most: int = 3) -> st.SearchStrategy[TemporalRule]:
    """Return rules of every form over these words, whose first one may be about anything."""
    word = st.sampled_from(words)

    def forms(said: list[str]) -> st.SearchStrategy[TemporalRule]:
        one, two, three = said
        counts = st.integers(1, most)
        return st.one_of(
            st.just(Never(one)),
            st.just(Never(one, two)),
            counts.map(lambda times: AtMost(one, times)),
            counts.map(lambda times: AtMost(one, times, two)),
            st.just(OnlyAfter(one, two)),
            st.just(OnlyAfter(one, two, three)),
            st.just(Followed(one, two)),
        )

    return st.lists(word, min_size=3, max_size=3, unique=True).flatmap(forms)


def rule_lists(words: Sequence[str]) -> st.SearchStrategy[Rules]:
    """Return a few rules over these words."""
    some = st.lists(rules_over(words), min_size=1, max_size=4, unique=True)
    return some.map(lambda rules: Rules(tuple(rules)))


happenings: st.SearchStrategy[Happening] = st.one_of(
    st.sampled_from("ab").map(entered),
    st.builds(taken, st.sampled_from("ab"), st.sampled_from(["calls", "done"])),
    st.sampled_from("xy").map(ran),
    st.sampled_from("xy").map(approval_of),
)
"""Happenings of a small world, some of which are two words at once."""
