"""Joins: when branches that ran side by side are answered, and how their answers become one.

A reducer is a pure function of the answers in the order of the branches, never of the order they
came in, so two runs with the same answers join them to the same text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, assert_never, get_args

from .errors import ConfigError, nearest
from .turn import BranchRun

__all__ = ["JOINS", "REDUCERS", "BranchJoin", "Reducer", "check_join", "is_decided", "joined"]

BranchJoin: TypeAlias = Literal["collect", "fail_fast", "first", "majority"]
"""What to wait for.

`collect`: all branches, whatever becomes of them. `fail_fast`: all of them, but no longer than
until one fails. `first`: the first good answer. `majority`: until more than half of the branches
agree, or all have answered.
"""

Reducer: TypeAlias = Literal["concat", "majority", "first"]
"""How answers become one.

`concat`: all, each under its branch's name; what failed says so. `majority`: the one that most
branches gave, but for white space and case; of a tie the earliest branch's. `first`: that of the
earliest branch that has one.
"""

JOINS: Final[tuple[BranchJoin, ...]] = get_args(BranchJoin)
REDUCERS: Final[tuple[Reducer, ...]] = get_args(Reducer)

BY_JOIN: Final[dict[BranchJoin, Reducer]] = {
    "collect": "concat",
    "fail_fast": "concat",
    "first": "first",
    "majority": "majority",
}


def check_join(join: str, reducer: str, callback: str) -> Reducer:
    """Return the reducer that was chosen, or the one that goes with the join.

    Raises:
        ConfigError: there is no such join or reducer, or there are two ways to make one answer.
    """
    if join not in JOINS:
        raise ConfigError(f"`join` is one of {', '.join(JOINS)}; {_found(join, JOINS)}")
    if reducer and reducer not in REDUCERS:
        raise ConfigError(f"`reducer` is one of {', '.join(REDUCERS)}; {_found(reducer, REDUCERS)}")
    if reducer and callback:
        raise ConfigError(
            f"answers are joined by the reducer {reducer!r} or by the function {callback!r}: "
            "name one of them"
        )
    return reducer or BY_JOIN[join]


def is_decided(branches: Sequence[BranchRun], join: BranchJoin) -> bool:
    """Whether what the branches that still run will say cannot matter any more."""
    match join:
        case "collect":
            return False
        case "fail_fast":
            return any(one.status not in {None, "ok"} for one in branches)
        case "first":
            return any(one.status == "ok" for one in branches)
        case "majority":
            votes = Counter(_vote(one) for one in branches if one.status == "ok")
            return any(2 * count > len(branches) for count in votes.values())
        case _:
            assert_never(join)


def joined(branches: Sequence[BranchRun], reducer: Reducer) -> str:
    """Return the one answer of branches of which at least one has answered well."""
    good = [one for one in branches if one.status == "ok"]
    assert good, "without an answer there is nothing to join"
    match reducer:
        case "concat":
            return "\n\n".join(_section(one) for one in branches)
        case "first":
            return good[0].content
        case "majority":
            # Of equal counts `max` keeps the earliest, and so does the counter its votes.
            votes = Counter(_vote(one) for one in good)
            most = max(votes, key=lambda vote: votes[vote])
            return next(one.content for one in good if _vote(one) == most)
        case _:
            assert_never(reducer)


def _section(branch: BranchRun) -> str:
    text = branch.content if branch.status == "ok" else f"(no answer: {branch.content})"
    return f"## {branch.name}\n\n{text}"


def _vote(branch: BranchRun) -> str:
    return " ".join(branch.content.split()).casefold()


def _found(word: str, known: Sequence[str]) -> str:
    return f"found {word!r}.{nearest(str(word), known)}"
