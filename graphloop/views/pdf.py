"""pdf: converts an SVG to a PDF page, for machines without Graphviz's `dot`.

The page keeps vector graphics and text. The built-in fonts of a PDF have only Latin-1 letters, so a
graph with other letters is shown by its PNG image. `render` imports this module only to draw a PDF,
because the extra `pdf` installs 45 MB.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Final

from fpdf import FPDF
from fpdf.svg import SVGObject

__all__ = ["pdf_of"]

_UNDRAWN: Final = re.compile(rb"<title>.*?</title>|</?a\b[^>]*>", re.DOTALL)
"""Matches tooltips and links, which are removed because fpdf2 warns about them."""


def pdf_of(svg: bytes, png: bytes) -> bytes:
    """Return a one-page PDF of the SVG; it shows `png` if the SVG has letters beyond Latin-1."""
    svg = svg.replace("→".encode(), b"-&gt;")  # The badge's arrow is beyond Latin-1.
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
