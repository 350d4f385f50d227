"""pdf: a drawn SVG as a PDF page, for machines whose Graphviz cannot write PDF itself.

Lines stay lines and text stays text. The built-in fonts of a PDF know Latin-1 only, so a graph
with other letters becomes a page that holds its PNG. This module needs the extra `pdf` and is
imported only when a PDF is drawn: fpdf2 and its dependencies weigh 45 MB.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Final

from fpdf import FPDF
from fpdf.svg import SVGObject

__all__ = ["pdf_of"]

_UNDRAWN: Final = re.compile(rb"<title>.*?</title>|</?a\b[^>]*>", re.DOTALL)
"""Tooltips and links: a page shows none of them, and fpdf2 would warn of each."""


def pdf_of(svg: bytes, png: bytes) -> bytes:
    """Return a PDF of one page, of the picture's size, that shows `svg`, or else `png`."""
    drawing = SVGObject(_UNDRAWN.sub(b"", svg).decode())
    page = FPDF(unit="pt")
    page.set_margin(0)
    page.set_auto_page_break(auto=False)
    page.add_page(format=(drawing.width or 0.0, drawing.height or 0.0))
    if _is_printable(svg):
        drawing.draw_to_page(page)
    else:
        page.image(png, 0, 0, page.w, page.h)
    return bytes(page.output())


def _is_printable(svg: bytes) -> bool:
    try:
        unescape(svg.decode()).encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True
