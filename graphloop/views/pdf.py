"""pdf: an SVG as a PDF page, for machines without Graphviz's `dot`.

Lines stay lines, and text stays text. The built-in fonts of a PDF have Latin-1 letters only, so
the page of any other graph shows its PNG. `render` imports this module only to draw a PDF: the
extra `pdf` installs 45 MB.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Final

from fpdf import FPDF
from fpdf.svg import SVGObject

__all__ = ["pdf_of"]

_UNDRAWN: Final = re.compile(rb"<title>.*?</title>|</?a\b[^>]*>", re.DOTALL)
"""Tooltips and links; fpdf2 warns of each, and a page does not show them."""


def pdf_of(svg: bytes, png: bytes) -> bytes:
    """Return a PDF with one page of the picture's size that shows `svg`, or else `png`."""
    drawing = SVGObject(_UNDRAWN.sub(b"", svg).decode())
    page = FPDF(unit="pt")
    page.set_margin(0)
    page.set_auto_page_break(auto=False)
    page.add_page(format=(drawing.width or 0.0, drawing.height or 0.0))
    try:
        unescape(svg.decode()).encode("latin-1")
        drawing.draw_to_page(page)
    except UnicodeEncodeError:
        page.image(png, 0, 0, page.w, page.h)
    return bytes(page.output())
