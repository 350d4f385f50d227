"""Plain words as values."""

from __future__ import annotations

import pytest

from graphloop.topology.scalars import Plain, is_text, plain_value, shown


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("true", True), ("FALSE", False), ("~", None), ("", None), ("0x1F", 31), ("0o17", 15),
        ("-3", -3), ("1e3", 1000.0), (".5", 0.5), ("yes", "yes"), ("No", "No"), ("on", "on"),
        ("1_000", "1_000"), ("0.30000000000000004", 0.30000000000000004),
        ("-2.2250738585072014e-308", -2.2250738585072014e-308), ("1.0e+22", 1e22),
        ("9" * 18, 10**18 - 1), ("12:30:00", "12:30:00"),
        ("2020-01-01", "2020-01-01"), ("0b1", "0b1"),
    ],
)  # fmt: skip
def test_words_mean_what_yaml_1_2_says(word: str, value: Plain) -> None:
    """`no` is the domain of Norway, and no boolean."""
    found = plain_value(word)

    assert (type(value), value) == (type(found), found)
    assert isinstance(value, str) == is_text(word)


@pytest.mark.parametrize(
    "word", ["010", "-00", ".inf", "-.INF", ".nan", "9" * 5000, "9" * 19, "0." + "1" * 40, "1e999"]
)
def test_numbers_that_mean_two_things_or_bound_nothing_are_refused(word: str) -> None:
    """Versions of YAML read 010 as 8 and as 10."""
    with pytest.raises(ValueError, match=r"quote|zeros"):
        plain_value(word)

    assert not is_text(word)


def test_values_are_shown_as_what_they_are() -> None:
    """`1.0` and `'1'` look alike in a message that only prints them."""
    assert "the text '1'" == shown("1", "1")
    assert "the number 1.0" == shown(1.0, "1.0")
    assert "the boolean TRUE" == shown(True, "TRUE")
    assert "nothing" == shown(None, "")
    assert "null (~)" == shown(None, "~")
