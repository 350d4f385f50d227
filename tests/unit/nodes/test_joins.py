"""joins: what to wait for, and one answer made of many, whatever order they came in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.errors import ConfigError
from graphloop.nodes.joins import (
    JOIN_FORMS,
    JOINS,
    BranchJoin,
    JoinForm,
    check_join,
    is_decided,
    joined,
)
from graphloop.turn import BranchRun
from graphloop.values import ResultStatus


def branches(*contents: str | None, failing: tuple[int, ...] = ()) -> tuple[BranchRun, ...]:
    """Return branches with these answers; None for one that has not ended."""

    def status(place: int, content: str | None) -> ResultStatus | None:
        return None if content is None else "error" if place in failing else "ok"

    return tuple(
        BranchRun(f"b{at}", "a", effect=at + 1, status=status(at, one), content=one or "")
        for at, one in enumerate(contents)
    )


@pytest.mark.parametrize(
    ("join", "some", "decided"),
    [
        ("collect", branches("x", "x", None), False),
        ("fail_fast", branches("x", None), False),
        ("fail_fast", branches("x", None, failing=(0,)), True),
        ("first", branches("x", None, failing=(0,)), False),
        ("first", branches(None, "x"), True),
        ("majority", branches("x", "X ", None), True),
        ("majority", branches("x", "x", None, None), False),
        ("majority", branches("x", "x", None, failing=(1,)), False),
        ("majority", branches("x", "y", "x"), True),
    ],
)
def test_what_still_runs_is_waited_for_as_long_as_it_can_matter(
    join: BranchJoin, some: tuple[BranchRun, ...], decided: bool
) -> None:
    """A branch that cannot change anything costs money for nothing."""
    assert decided == is_decided(some, join)


@pytest.mark.parametrize(
    ("reducer", "some", "text"),
    [
        ("concat", branches("x", "y"), "## b0\n\nx\n\n## b1\n\ny"),
        (
            "concat",
            branches("broke", "y", failing=(0,)),
            "## b0\n\n(no answer: broke)\n\n## b1\n\ny",
        ),
        ("first", branches("broke", "y", "z", failing=(0,)), "y"),
        ("majority", branches("x", "Yes,  sir", "yes, SIR"), "Yes,  sir"),
        ("majority", branches("x", "y"), "x"),
        ("majority", branches("x", "x", "y", failing=(0, 1)), "y"),
        ("majority", branches("x", "y", "y", "x"), "x"),
    ],
)
def test_answers_become_one(reducer: JoinForm, some: tuple[BranchRun, ...], text: str) -> None:
    """In the order of the branches; failures have no vote, ties go to the earliest."""
    assert text == joined(some, reducer)


@given(
    st.lists(st.sampled_from(["a", "A ", "b", "c"]), min_size=1, max_size=7),
    st.sampled_from(JOIN_FORMS),
)
def test_a_reducer_always_gives_an_answer_that_was_given(
    texts: list[str], reducer: JoinForm
) -> None:
    """It makes nothing up."""
    answer = joined(branches(*texts), reducer)

    assert answer in texts or all(text in answer for text in texts)


@given(st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=7), st.data())
def test_an_early_majority_is_the_majority(texts: list[str], data: st.DataObject) -> None:
    """Whoever stops early must not hear another answer than who waits."""
    heard = data.draw(st.sets(st.integers(0, len(texts) - 1)))
    some = branches(*[text if at in heard else None for at, text in enumerate(texts)])

    if is_decided(some, "majority"):
        assert joined(branches(*texts), "majority") == joined(some, "majority")


@pytest.mark.parametrize(
    ("join", "reducer", "callback", "found"),
    [
        ("al", "", "", "`join` to be one of collect, fail_fast, first, majority, found 'al'"),
        ("colect", "", "", "Did you mean 'collect'"),
        ("collect", "concatt", "", "Did you mean 'concat'"),
        ("collect", "concat", "mine", "by the reducer 'concat' or by the function 'mine'"),
    ],
)
def test_a_join_that_cannot_work_is_refused(
    join: str, reducer: str, callback: str, found: str
) -> None:
    """Before anything has run."""
    with pytest.raises(ConfigError, match=found):
        check_join(join, reducer, callback)


def test_each_join_has_a_reducer_of_its_own() -> None:
    """Nobody has to name what is clear."""
    chosen = [check_join(join, "", "") for join in JOINS]

    assert ["concat", "concat", "first", "majority"] == chosen
    assert "majority" == check_join("collect", "majority", "")
