"""Pictures on terminals that have no box drawing: readable, and aligned."""

from __future__ import annotations

import pytest

from graphloop.views.marks import Marks
from graphloop.views.picture import picture
from graphloop.views.plain_signs import PLAIN, in_signs_of
from graphloop.views.text import text, text_of
from tests.graphs import KINDS, agent, build

EVERY_KIND = build({kind: ["END"] for kind in KINDS}, {kind: kind for kind in KINDS})


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437", "latin-1"])
def test_every_line_keeps_its_columns(encoding: str) -> None:
    """A sign stands for a sign: what was below each other stays so."""
    whole = text(agent())
    shown = in_signs_of(whole, encoding)

    assert [len(line) for line in whole.splitlines()] == [len(line) for line in shown.splitlines()]
    assert "?" not in shown
    assert shown.encode(encoding).decode(encoding) == shown


def test_a_picture_can_be_read_in_plain_ascii() -> None:
    """Thick, thin and dashed lines are told apart, and kinds by their signs."""
    graph = build({"ask": ["b", "b", "b", "END", "END"], "b": ["ask", "END"]}, {"ask": "model"})
    shown = in_signs_of(text(graph), "ascii")

    assert "* start => ask\n" in shown
    assert "# ask  (model)\n" in shown
    assert "+=== calls, answered, answered_calls ===> b v\n" in shown
    assert "+... failed, aborted ...................> END v\n" in shown
    assert "+=== calls =============================> ask ^\n" in shown
    assert "+--- answered --------------------------> END v\n" in shown


def test_every_sign_of_a_kind_or_of_a_mark_has_a_plain_one() -> None:
    """A kind or a mark added to the pictures must not become a question mark."""
    marks = Marks(
        node_tones={"model": "lit", "gate": "weak"},
        way_tones={("model", "calls"): "weak"},
        shaded=frozenset({"gate"}),
    )
    shown = in_signs_of(text_of(picture(EVERY_KIND, marks)), "ascii")

    assert shown.isascii()
    assert "?" not in shown


def test_what_fits_is_left_alone() -> None:
    """Also where nobody knows the encoding: in memory, text stays text."""
    assert "● ä" == in_signs_of("● ä", "utf-8") == in_signs_of("● ä", None)
    assert "* ä" == in_signs_of("● ä", "cp1252")
    assert "* ?" == in_signs_of("● ä", "ascii")


def test_a_plain_sign_is_one_sign() -> None:
    """Else columns would move."""
    assert all(len(sign) == len(plain) == 1 and plain.isascii() for sign, plain in PLAIN.items())
