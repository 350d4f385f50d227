"""Theme: the colours of a diagram, on a light page or on a dark one.

Colours only: shapes, places and words are the same in every theme, and none of them says what only
a colour tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from .drawing import INK, LINE, PALETTE, Look
from .marks import TONES, Tone

__all__ = ["DARK", "LIGHT", "THEMES", "Theme"]

Fill: TypeAlias = tuple[str, str]


@final
@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a diagram.

    Attributes:
        page: what is drawn on, as Graphviz knows it.
        paper: the fill of what is drawn empty.
        ink: text on a filled shape.
        line: lines and their labels.
        palette: the fill and the outline of each look.
        tones: the colour of each tone.
        lit: the fill of where a run stands.
        shade: the fill of a region.
        faint: text at what is pale, which can still be read.
    """

    page: str
    paper: str
    ink: str
    line: str
    palette: Mapping[Look, Fill]
    tones: Mapping[Tone, str]
    lit: str
    shade: str
    faint: str


LIGHT: Final = Theme("white", "#ffffff", INK, LINE, PALETTE, TONES, "#ffe08a", "#a6dcb6", "#74818e")

DARK: Final = Theme(
    "#10161d",
    "#10161d",
    "#e8edf2",
    "#93a4b5",
    {
        "prepare": ("#2a3642", "#8ba0b5"),
        "model": ("#1f3a5c", "#7aa7e0"),
        "gate": ("#4a3a12", "#e0b354"),
        "execute": ("#50301f", "#e39674"),
        "append": ("#1f4030", "#74bd92"),
        "check": ("#3a2d50", "#b295d8"),
        "stop": ("#4d2635", "#dd8aa5"),
        "human": ("#45400f", "#d6c04a"),
        "graph": ("#163f40", "#67b8b7"),
        "act": ("#542424", "#e88080"),
        "pure": ("#333331", "#a8a8a0"),
        "loop": ("#2a2f57", "#97a3ec"),
    },
    {
        "weak": "#4a5866",
        "strong": "#f4f7fa",
        "alarm": "#ff7b85",
        "lit": "#ffb020",
        "added": "#5fd38a",
        "removed": "#ff7b85",
    },
    "#6b4c00",
    "#2c6b40",
    "#7d8b99",
)

THEMES: Final[Mapping[str, Theme]] = {"light": LIGHT, "dark": DARK}
