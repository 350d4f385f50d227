"""A graph drawn with what was found."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop.cli.found import draw_found, drawn_to
from graphloop.errors import ConfigError
from graphloop.views.marks import Marks
from tests.unit.fuzz.planted import table


def test_a_picture_that_shows_nothing_of_it_is_refused() -> None:
    """Before anything is searched or proven."""
    for path in ("found.scxml", "found.xstate.json"):
        with pytest.raises(ConfigError, match="shows nothing of what was found"):
            drawn_to(path)

    assert drawn_to("found.svg") is None
    assert drawn_to(None) is None


def test_a_picture_for_stdout_is_printed(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In every notation that is text; a file called `-.txt` could hardly be removed."""
    for name, start in (("-", "flowchart"), ("-.dot", "digraph"), ("-.svg", "<?xml")):
        assert drawn_to(name) is not None
        draw_found(table(), name, Marks(title="proven"))
        assert capsys.readouterr().out.startswith(start)
    with pytest.raises(ConfigError, match="--draw"):
        drawn_to("-.png")
    assert not any(one.name.startswith("-") for one in desk.iterdir())


def test_a_file_that_cannot_be_written_is_told_in_words(tmp_path: Path) -> None:
    """Nothing is wrong with the graph, and nobody is to think so."""
    draw_found(table(), str(tmp_path / "found.mmd"), Marks())
    assert (tmp_path / "found.mmd").read_text(encoding="utf-8")

    with pytest.raises(ConfigError, match="cannot be written"):
        draw_found(table(), "/proc/found.mmd", Marks())
