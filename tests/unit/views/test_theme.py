"""Themes: other colours, and nothing else."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from graphloop.views.dot import dot
from graphloop.views.marks import Marks, Tone
from graphloop.views.mermaid import mermaid
from graphloop.views.theme import DARK, LIGHT, THEMES, Theme
from tests.graphs import KINDS, agent

COLOUR = re.compile(r'(?<=bgcolor=)\S+|"?#[0-9a-f]{6}"?')


@pytest.mark.parametrize("draw", [dot, mermaid])
def test_a_dark_diagram_differs_in_its_colours_alone(draw: object) -> None:
    """The same layout: a reader finds everything where it was."""
    marks = Marks(node_tones={"gate": "lit", "append": "removed"}, shaded={"execute"})
    write = dot if draw is dot else mermaid
    light, dark = (write(agent(), marks, theme=theme) for theme in (LIGHT, DARK))

    assert light != dark
    assert COLOUR.sub("", light) == COLOUR.sub("", dark)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_a_theme_has_a_colour_for_everything(theme: Theme) -> None:
    """A kind or a tone that is added must be drawable in all of them the same day."""
    assert {*KINDS, "loop"} == set(theme.palette)
    assert set(get_args(Tone)) == set(theme.tones)


def _light(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return sum(part * one for part, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_text_can_be_read_on_every_fill(theme: Theme) -> None:
    """4.5 to 1 is what WCAG asks for (1.4.3)."""
    fills = [fill for fill, _ in theme.palette.values()] + [theme.lit, theme.shade]
    for fill in fills:
        low, high = sorted((_light(theme.ink), _light(fill)))
        assert (high + 0.05) / (low + 0.05) >= 4.5


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_what_is_pale_can_still_be_read(theme: Theme) -> None:
    """3 to 1, and paler than what was done."""
    page = "#ffffff" if theme.page == "white" else theme.page
    high, low = sorted((_light(theme.faint), _light(page)), reverse=True)
    assert (high + 0.05) / (low + 0.05) >= 3
