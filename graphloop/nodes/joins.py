"""Joins: when a node stops waiting for parallel branches, and how it joins their answers.

A reducer is a pure function of the answers in branch order. The order of arrival has no influence,
so two runs with the same answers join them to the same text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, assert_never, get_args

from ..errors import ConfigError, nearest
from ..turn import BranchRun

__all__ = ["JOINS", "JOIN_FORMS", "BranchJoin", "JoinForm", "check_join", "is_decided", "joined"]

BranchJoin: TypeAlias = Literal["collect", "fail_fast", "first", "majority"]
"""The branches that a node waits for.

`collect`: all branches, even if some fail. `fail_fast`: all branches, or until one branch fails.
`first`: until one branch succeeds. `majority`: until more than half of the branches give the same
answer, or all branches have ended.
"""

JoinForm: TypeAlias = Literal["concat", "majority", "first"]
"""The rule that makes one text of the branches' answers.

`concat`: all answers, each under its branch's name; a failed branch is listed with its error.
`majority`: the most frequent answer, ignoring case and white space; on a tie, the earliest
branch's. `first`: the answer of the earliest branch that succeeded.
"""

JOINS: Final[tuple[BranchJoin, ...]] = get_args(BranchJoin)
JOIN_FORMS: Final[tuple[JoinForm, ...]] = get_args(JoinForm)

BY_JOIN: Final[dict[BranchJoin, JoinForm]] = {
    "collect": "concat",
    "fail_fast": "concat",
    "first": "first",
    "majority": "majority",
}


def check_join(join: str, reducer: str, callback: str) -> JoinForm:
    """Return the chosen reducer, or the join's default reducer if none is chosen.

    Raises:
        ConfigError: the join or reducer is unknown, or both a reducer and a callback are given.
    """
    if join not in JOINS:
        raise ConfigError(
            f"expected `join` to be one of {', '.join(JOINS)}, {_found_text(join, JOINS)}"
        )
    if reducer and reducer not in JOIN_FORMS:
        raise ConfigError(
            f"expected `reducer` to be one of {', '.join(JOIN_FORMS)}, "
            f"{_found_text(reducer, JOIN_FORMS)}"
        )
    if reducer and callback:
        raise ConfigError(
            f"answers are joined by the reducer {reducer!r} or by the function {callback!r}: "
            "name one of them"
        )
    return reducer or BY_JOIN[join]


def is_decided(branches: Sequence[BranchRun], join: BranchJoin) -> bool:
    """Whether the join's result is fixed, whatever the branches that still run will answer."""
    match join:
        case "collect":
            return False
        case "fail_fast":
            return any(one.status not in {None, "ok"} for one in branches)
        case "first":
            return any(one.status == "ok" for one in branches)
        case "majority":
            votes = Counter(_vote_of(one) for one in branches if one.status == "ok")
            return any(2 * count > len(branches) for count in votes.values())
        case _:
            assert_never(join)


def joined(branches: Sequence[BranchRun], reducer: JoinForm) -> str:
    """Return the reducer's text from the branches' answers; at least one branch has succeeded."""
    good = [one for one in branches if one.status == "ok"]
    assert good, "without an answer there is nothing to join"
    match reducer:
        case "concat":
            return "\n\n".join(_section(one) for one in branches)
        case "first":
            return good[0].content
        case "majority":
            # On a tie `max` returns the first vote, and the counter keeps votes in branch order.
            votes = Counter(_vote_of(one) for one in good)
            most = max(votes, key=lambda vote: votes[vote])
            return next(one.content for one in good if _vote_of(one) == most)
        case _:
            assert_never(reducer)


def _section(branch: BranchRun) -> str:
    text = branch.content if branch.status == "ok" else f"(no answer: {branch.content})"
    return f"## {branch.name}\n\n{text}"


def _vote_of(branch: BranchRun) -> str:
    return " ".join(branch.content.split()).casefold()


def _found_text(word: str, known: Sequence[str]) -> str:
    return f"found {word!r}.{nearest(str(word), known)}"
