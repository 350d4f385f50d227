"""What may be a name, and how odd text is shown."""

from __future__ import annotations

import pytest

from graphloop.node_protocol import (
    NAME_MAX,
    control_in,
    escaped,
    flaw_of,
    node_flaw_of,
    turns_direction,
)


@pytest.mark.parametrize(
    "name", ["a", "prepare step", "é", "😀", "👩‍👧", "yes", "a" * NAME_MAX, "END"]
)
def test_a_word_of_any_language_is_a_name(name: str) -> None:
    """What is reserved is the business of whoever reserves it."""
    assert flaw_of(name) is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "says nothing"),
        (" \n", "says nothing"),
        (" a", "begins or ends with white space"),
        ("a\xa0", "begins or ends with white space"),
        ("a\x1b[2J", "the control character '\\x1b'"),
        ("a\nb", "the control character '\\n'"),
        ("a\x85b", "the control character '\\x85'"),
        ("a\u2028b", "the control character '\\u2028'"),
        ("a\ud800b", "the control character '\\ud800'"),
        ("a/b", "a slash leads from a child to its nodes"),
        ("a" * (NAME_MAX + 1), "has more than 200 characters"),
    ],
)
def test_what_no_line_of_text_can_hold_is_no_name(name: str, said: str) -> None:
    """It would drive a terminal, or look like another name."""
    assert said in str(flaw_of(name))


@pytest.mark.parametrize("name", ["c0", "c12", "c-1"])
def test_no_node_is_called_as_the_calls_of_a_turn_are(name: str) -> None:
    """Answers and runs go by keys: those of a node and those of calls must not be the same."""
    assert flaw_of(name) is None
    assert "the calls of a turn have such keys" in str(node_flaw_of(name))


@pytest.mark.parametrize("name", ["c", "c0.1", "xc0", "c0x", "C0", "c--1"])
def test_what_only_looks_like_a_call_is_a_node_s_name(name: str) -> None:
    """A key has a number after it, so these are told apart."""
    assert node_flaw_of(name) is None
    assert "says nothing" in str(node_flaw_of(""))


def test_a_control_character_is_found_or_not() -> None:
    """The first of them is told."""
    assert "\x07" == control_in("a\x07\x1b")
    assert control_in("a b") is None


def test_what_is_shown_drives_no_terminal() -> None:
    """Escapes stand for what cannot be seen."""
    assert "a\\x1b[2J\\n\\u202eb é" == escaped("a\x1b[2J\n\u202eb é")


def test_what_turns_the_direction_of_a_line_is_known() -> None:
    """Marks and joiners stay: names are written with them, and the line stays as it is."""
    turning = [chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))]

    assert all(map(turns_direction, turning))
    assert not any(map(turns_direction, "aé\u200d\u200f\n"))
