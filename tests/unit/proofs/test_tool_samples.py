"""tool_samples: a name for each set of patterns that can match one."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.proofs.tool_samples import tool_samples

ALPHABET = "abx-"

patterns = st.lists(
    st.one_of(
        st.text("ab*?", min_size=1, max_size=4),
        st.sampled_from(["[ab]*", "[!a]", "a[b-x]", "[", "[]a]", "[!]a]b", "a[", "[a", "*]"]),
    ),
    min_size=1,
    max_size=4,
)


def matched(name: str, given_patterns: list[str]) -> tuple[bool, ...]:
    """Return which patterns match a name."""
    return tuple(fnmatchcase(name, one) for one in given_patterns)


@given(patterns)
def test_each_set_of_patterns_that_can_match_has_a_name(some: list[str]) -> None:
    """None is left out, as all names of a few letters show."""
    names = tool_samples(some)
    assert names is not None
    short = ["".join(one) for size in range(1, 6) for one in product(ALPHABET, repeat=size)]
    plain = [one for one in some if not set("*?[") & set(one)]
    wild = [one for one in some if one not in plain]

    found = {matched(one, wild) for one in names}
    assert found >= {matched(one, wild) for one in short if one not in plain}
    assert not set(names) & set(plain)
    assert len(names) == len(found)


def test_the_names_are_short_and_could_be_those_of_tools() -> None:
    """A reader sees one of them, where something is let through."""
    assert ("x", "a_", "_b", "a_b") == tool_samples(["a_*", "*_b"])
    assert ("x",) == tool_samples(["pay", "*"])
    assert ("x",) == tool_samples(["pay"])
    assert ("x", "ax") == tool_samples(["pay", "a", "a*"])


@pytest.mark.parametrize("pattern", ["a.b", "ä", "a b"])
def test_what_no_tool_is_named_is_matched_by_no_name(pattern: str) -> None:
    """A rule for it decides nothing."""
    assert ("x",) == tool_samples([pattern, f"{pattern}?"])


def test_what_would_take_for_ever_is_given_up() -> None:
    """So that nobody waits for it."""
    assert tool_samples([f"*a{'?' * 20}"]) is None
    assert tool_samples([f"tool_{one}" for one in range(300)]) is not None
