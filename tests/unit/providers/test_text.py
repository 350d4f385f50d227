"""Text of a stream: no half characters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graphloop.providers.text import TextJoiner, whole_text
from tests.transcripts import any_text


@given(st.lists(any_text))
def test_pieces_join_to_the_whole_text_however_they_are_cut(pieces: list[str]) -> None:
    """Where a server cuts is chance; what is stored must not depend on it."""
    joiner = TextJoiner()

    shown = [joiner.push(piece) for piece in pieces] + [joiner.flush()]

    assert whole_text("".join(pieces)) == "".join(shown) == joiner.text
    for piece in shown:
        piece.encode()


def test_a_half_left_alone_becomes_the_replacement_character() -> None:
    """Text that cannot be encoded fails far from where it came from."""
    joiner = TextJoiner()

    assert joiner.push("\udc69\ud83d") == "\ufffd"
    assert joiner.flush() == "\ufffd"
    assert joiner.flush() == ""
    assert joiner.text == "\ufffd\ufffd"


def test_pieces_after_a_flush_are_a_new_beginning() -> None:
    """A block may be stopped and still get a delta; the half before must not join it."""
    joiner = TextJoiner()
    joiner.push("\ud83d")
    joiner.flush()

    assert joiner.push("\udc69") == "\ufffd"
