"""Sequences on a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graphloop.views.sequence import Party, Said
from graphloop.views.sequence_text import sequence_text

YOU, LOOP, TOOL = Party("you", "you"), Party("loop", "agent"), Party("tool", "pay")


def test_arrows_lead_from_who_speaks_to_who_is_told() -> None:
    """Past whoever stands between."""
    said = (
        Said(0, YOU, LOOP, "Pay."),
        Said(1, LOOP, TOOL, "{}"),
        Said(2.5, TOOL, YOU, "paid", answers=True),
        Said(3, LOOP, LOOP, "hm"),
    )

    assert sequence_text(said).splitlines() == [
        "A  you",
        "B  loop agent",
        "C  tool pay",
        "",
        "A   B   C",
        "├──▶┤   │      0.00  Pay.",
        "│   ├──▶┤      1.00  {}",
        "├◀──┼───┤      2.50  paid",
        "│   ●   │      3.00  hm",
    ]


@given(st.lists(st.tuples(st.text(min_size=1), st.text()), max_size=12))
def test_nothing_is_wider_than_the_terminal_and_nothing_breaks_a_line(
    pairs: list[tuple[str, str]],
) -> None:
    """Whatever a tool is called, and whatever it returns."""
    said = [Said(0, LOOP, Party("tool", name), words) for name, words in pairs]
    lines = sequence_text(said).split("\n")

    assert max(map(len, lines)) <= 80
    parties = len({party for one in said for party in (one.source, one.target)})
    assert len(lines) == parties + 2 + len(said) + 1
