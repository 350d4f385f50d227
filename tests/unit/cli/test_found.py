"""A graph drawn with what was found."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop.cli.found import draw_found, refuse_machine
from graphloop.errors import ConfigError
from graphloop.views.marks import Marks
from tests.unit.fuzz.planted import table


def test_a_picture_that_shows_nothing_of_it_is_refused() -> None:
    """Before anything is searched or proven."""
    for path in ("found.scxml", "found.xstate.json"):
        with pytest.raises(ConfigError, match="shows nothing of what was found"):
            refuse_machine(path)

    refuse_machine("found.svg")
    refuse_machine(None)


def test_a_file_that_cannot_be_written_is_told_in_words(tmp_path: Path) -> None:
    """Nothing is wrong with the graph, and nobody is to think so."""
    draw_found(table(), str(tmp_path / "found.mmd"), Marks())
    assert (tmp_path / "found.mmd").read_text(encoding="utf-8")

    with pytest.raises(ConfigError, match="cannot be written"):
        draw_found(table(), "/proc/found.mmd", Marks())
