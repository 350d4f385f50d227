"""A chart of costs against lengths, both on logarithmic scales, as an SVG file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Final
from xml.sax.saxutils import escape

__all__ = ["Line", "chart"]

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 50, 50
COLOURS: Final = ("#888888", "#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b")
LABEL_PX: Final = 16
"""How far the names beside the lines are apart at least."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the chart: its name, and a cost for each length."""

    name: str
    points: Mapping[int, float]


def chart(title: str, lines: Sequence[Line]) -> str:
    """Return the lines as an SVG picture, the name of each at its end."""
    lengths = sorted({length for line in lines for length in line.points})
    costs = [cost for line in lines for cost in line.points.values()]
    low, high = floor(log10(min(costs))), ceil(log10(max(costs)))
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    first, last = log10(lengths[0]), log10(lengths[-1])

    def x(length: int) -> float:
        return LEFT + (right - LEFT) * (log10(length) - first) / ((last - first) or 1)

    def y(cost: float) -> float:
        return bottom - (bottom - TOP) * (log10(cost) - low) / ((high - low) or 1)

    drawn = [_text(LEFT, TOP - 25, title, weight="bold")]
    for power in range(low, high + 1):
        at = y(10.0**power)
        drawn += [_stroke(LEFT, at, right, at), _text(LEFT - 8, at + 4, f"{10.0**power:,g}", "end")]
    for length in lengths:
        at = x(length)
        drawn += [_stroke(at, TOP, at, bottom), _text(at, bottom + 20, f"N = {length}", "middle")]
    labels: list[tuple[float, str]] = []
    for number, line in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        places = [(x(length), y(line.points[length])) for length in sorted(line.points)]
        path = " ".join(f"{across:.1f},{down:.1f}" for across, down in places)
        drawn.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>'
        )
        drawn += [
            f'<circle cx="{at:.1f}" cy="{down:.1f}" r="3" fill="{colour}"/>' for at, down in places
        ]
        name = f'<tspan fill="{colour}">{escape(line.name)}</tspan>'
        labels.append((places[-1][1], name))
    down = float(TOP) - LABEL_PX
    for wanted, name in sorted(labels):
        down = max(wanted, down + LABEL_PX)
        drawn.append(f'<text x="{right + 14}" y="{down + 4:.1f}">{name}</text>')
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'font-family="sans-serif" font-size="13">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            *drawn,
            "</svg>\n",
        )
    )


def _stroke(left: float, top: float, right: float, bottom: float) -> str:
    ends = f'x1="{left:.1f}" y1="{top:.1f}" x2="{right:.1f}" y2="{bottom:.1f}"'
    return f'<line {ends} stroke="#dddddd"/>'


def _text(
    across: float, down: float, text: str, anchor: str = "start", weight: str = "normal"
) -> str:
    place = f'x="{across:.1f}" y="{down:.1f}"'
    return f'<text {place} text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>'
