"""A PDF for machines whose Graphviz has none: vectors where the fonts allow, else the picture."""

from __future__ import annotations

import pytest

from graphloop.views.dot import dot
from graphloop.views.pdf import pdf_of
from graphloop.views.render import render
from tests.graphs import agent


@pytest.fixture
def drawn() -> tuple[bytes, bytes]:
    return render(dot(agent()), "svg"), render(dot(agent()), "png")


def test_latin_text_stays_text_and_lines_stay_lines(drawn: tuple[bytes, bytes]) -> None:
    """A picture in a PDF cannot be searched, and is twenty times the size."""
    svg, png = drawn

    page = pdf_of(svg, png)

    assert page.startswith(b"%PDF-")
    assert b"/Subtype /Image" not in page


def test_other_letters_are_shown_as_the_picture(drawn: tuple[bytes, bytes]) -> None:
    """The built-in PDF fonts would refuse them, and a diagram must not fail over a name."""
    svg, png = drawn

    page = pdf_of(svg.replace(b"gate", "\u65e5\u672c".encode()), png)

    assert b"/Subtype /Image" in page


def test_nothing_is_said_about_tooltips(
    drawn: tuple[bytes, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    """The PDF library warns of each tag it leaves out; a user can do nothing about them."""
    pdf_of(*drawn)

    assert caplog.records == []
