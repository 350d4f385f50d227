"""Theme: the colours of a diagram on a light page and on a dark page.

A theme changes only colours. Shapes, line styles and words show the same facts without colour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from .drawing import Look
from .marks import Tone

__all__ = ["DARK", "LIGHT", "THEMES", "Theme"]

Fill: TypeAlias = tuple[str, str]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """The colours of a diagram, each as a hex code or a name that Graphviz knows.

    Attributes:
        page: the background of the page.
        paper: the fill of END, and of pale and removed shapes.
        ink: the text on a filled shape.
        line: the edges and their labels.
        lit: the fill of a node that a run is at now.
        shade: the fill of shaded nodes.
        faint: the text of pale nodes and edges.
        tones: maps each tone to the colour of its outlines and edges.
        palette: maps each look to its fill and its outline, in the order of the legend.
    """

    page: str
    paper: str
    ink: str
    line: str
    lit: str
    shade: str
    faint: str
    tones: Mapping[Tone, str]
    palette: Mapping[Look, Fill]


LIGHT: Final = Theme(
    page="white",
    paper="#ffffff",
    ink="#1f2933",
    line="#6f8297",  # Also readable on a dark page, because GitHub shows Mermaid on both.
    lit="#ffe08a",
    shade="#a6dcb6",
    faint="#74818e",
    tones={
        "weak": "#b8c2cc",
        "strong": "#1f2933",
        "lit": "#b45f06",
        "added": "#1a7f3c",
        "removed": "#c62f3b",
        "alarm": "#c62f3b",
    },
    palette={
        "prepare": ("#e9eef3", "#7d92a8"),
        "model": ("#dbe8fa", "#4d7cb8"),
        "gate": ("#fcedc9", "#bd8f2f"),
        "execute": ("#fbdfd4", "#c26e4e"),
        "append": ("#dcefe3", "#56976f"),
        "check": ("#eae0f5", "#8a69b0"),
        "stop": ("#f8dde5", "#b65f7d"),
        "human": ("#fdf4bf", "#a8911f"),
        "graph": ("#dbf0f1", "#45908f"),
        "act": ("#f9d9d9", "#b84a4a"),
        "pure": ("#efefec", "#86867f"),
        "loop": ("#e8eafb", "#5b67b5"),
    },
)

DARK: Final = Theme(
    page="#10161d",
    paper="#10161d",
    ink="#e8edf2",
    line="#93a4b5",
    lit="#6b4c00",
    shade="#2c6b40",
    faint="#7d8b99",
    tones={
        "weak": "#4a5866",
        "strong": "#f4f7fa",
        "lit": "#ffb020",
        "added": "#5fd38a",
        "removed": "#ff7b85",
        "alarm": "#ff7b85",
    },
    palette={
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
)

THEMES: Final[Mapping[str, Theme]] = {"light": LIGHT, "dark": DARK}
