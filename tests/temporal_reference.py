"""What temporal rules mean, over whole traces and with no automaton in sight; and rules to try."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import permutations
from typing import assert_never

from hypothesis import strategies as st

from graphloop.rules import (
    AtMost,
    Followed,
    Never,
    OnlyAfter,
    Rules,
    TemporalRule,
    words_of,
)
from graphloop.rules.automata import (
    Happening,
    approved_call,
    earlier,
    entered,
    past_call,
    ran,
    returned,
    taken,
)
from graphloop.values import evolve

__all__ = ["PASTS", "all_rules", "breaches", "happenings", "owes", "rule_lists", "rules_over"]


def breaches(rule: TemporalRule, trace: Sequence[Happening]) -> list[int]:
    """Return every place of a trace where a rule forbids what happens there.

    What a rule restrains happens when a tool is let through; what it waits for, when one has
    returned well; what undoes that, at both. What is past breaks nothing.
    """
    what, second, third = words_of(rule)
    places = [at for at, one in enumerate(trace) if is_now(what, one)]
    counts = [not is_apart(rule, one) for one in trace]
    waited = [is_done(second, one) and counts[at] for at, one in enumerate(trace)]
    match rule:
        case Never(before=""):
            return places
        case Never() | OnlyAfter(since=""):
            return [at for at in places if not any(waited[:at])]
        case OnlyAfter():
            undone = [is_undone(third, one) for one in trace]
            began = [second in one.words and counts[at] for at, one in enumerate(trace)]
            valid = enabling(began, waited, undone)
            return [
                at for at in places if not any(not any(undone[v + 1 : at]) for v in valid if v < at)
            ]
        case AtMost(times=times):
            counted = [what in one.words or was_earlier(what, one) for one in trace]
            if not rule.per:
                return [at for at in places if sum(counted[:at]) >= times]
            # Up to and with the last `per` before it, everything is forgotten.
            lasts = {at: max((p for p in range(at) if waited[p]), default=-1) for at in places}
            return [
                at for at in places if lasts[at] < 0 or sum(counted[lasts[at] + 1 : at]) >= times
            ]
        case Followed():
            return []
        case _:
            assert_never(rule)


def enabling(began: Sequence[bool], done: Sequence[bool], undone: Sequence[bool]) -> list[int]:
    """Return where something is done that had begun, or was done, since it was undone."""
    valid: list[int] = []
    for at in range(len(done)):
        since = [*[been for been in range(at + 1) if began[been]], *valid]
        if done[at] and any(not any(undone[been + 1 : at]) for been in since):
            valid.append(at)
    return valid


@cache
def is_apart(rule: TemporalRule, one: Happening) -> bool:
    """Whether what happens is x or z of a rule by a narrower word than the one by which it is y."""
    what, second, third = words_of(rule)
    return any(is_narrower(word, second) and is_undone(word, one) for word in (what, third))


def is_narrower(word: str, other: str) -> bool:
    """Whether all that is meant by a word is meant by another, and not the other way round."""
    if word == other or "" in {word, other}:
        return False
    if other in {"tool:*", "approval:*"}:
        return word.startswith(other.removesuffix("*"))
    return word.startswith("outcome:") and f"outcome:{word.rpartition('.')[2]}" == other


def is_now(word: str, one: Happening) -> bool:
    return word in one.words and not one.past


@cache
def is_done(word: str, one: Happening) -> bool:
    return (
        f"{'well' if word.startswith('tool:') else word.partition(':')[0]}:{rest(word)}"
        in one.words
    )


def is_undone(word: str, one: Happening) -> bool:
    return word in one.words or was_earlier(word, one) or has_ended(word, one)


def was_earlier(word: str, one: Happening) -> bool:
    return word.startswith("tool:") and f"earlier:{rest(word)}" in one.words


def has_ended(word: str, one: Happening) -> bool:
    return word.startswith("tool:") and f"ended:{rest(word)}" in one.words


def rest(word: str) -> str:
    return word.partition(":")[2]


def owes(rule: TemporalRule, trace: Sequence[Happening]) -> bool:
    """Whether a run with this trace must not end yet: nothing began and was done after the last."""
    if not isinstance(rule, Followed):
        return False
    what, by, _ = words_of(rule)
    caused = [at for at, one in enumerate(trace) if what in one.words or has_ended(what, one)]
    if not caused:
        return False
    return not any(
        is_done(by, trace[done])
        and any(by in trace[at].words for at in range(caused[-1] + 1, done + 1))
        for done in range(caused[-1] + 1, len(trace))
    )


def all_rules(words: Sequence[str], *, most: int = 3) -> list[TemporalRule]:
    """Return every rule over these words that counts so far at most."""
    pairs, triples = [*permutations(words, 2)], [*permutations(words, 3)]
    return [
        *[Never(one) for one in words],
        *[AtMost(one, times) for one in words for times in range(1, most + 1)],
        *[AtMost(one, times, per) for one, per in pairs for times in range(1, most + 1)],
        *[form(one, two) for form in (Never, OnlyAfter, Followed) for one, two in pairs],
        *[OnlyAfter(one, two, three) for one, two, three in triples],
    ]


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


def _past(one: Happening) -> Happening:
    return evolve(one, past=True)


happenings: st.SearchStrategy[Happening] = st.one_of(
    st.sampled_from("ab").map(entered),
    st.builds(taken, st.sampled_from("ab"), st.sampled_from(["calls", "done"])),
    st.sampled_from("xy").map(ran),
    st.sampled_from("xy").map(approved_call),
    st.builds(returned, st.sampled_from("xy"), well=st.booleans()),
    st.sampled_from("xy").map(earlier),
    st.sampled_from([ran("x"), returned("x", well=True), ran("y")]).map(_past),
)
"""Happenings of a small world, some of which are two words at once."""

PASTS: tuple[tuple[Happening, ...], ...] = (
    (),
    *((earlier(name),) for name in "xz"),
    *(past_call(name, well=well) for name in "xz" for well in (True, False)),
    (*past_call("z", well=True), *past_call("x", well=True)),
)
"""What a conversation that is handed in may say."""
