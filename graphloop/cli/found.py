"""A graph drawn with what a command has found laid over it."""

from __future__ import annotations

from typing import TypeVar

from ..errors import ConfigError
from ..graph import Graph
from ..views.marks import Marks
from ..views.render import is_machine, save

__all__ = ["draw_found", "refuse_machine"]

S = TypeVar("S")


def refuse_machine(path: str | None) -> None:
    """Refuse a file in which nothing that was found could be seen.

    Raises:
        ConfigError: its name is that of a state machine.
    """
    if path is not None and is_machine(path):
        raise ConfigError(
            f"--draw {path}: a state machine shows nothing of what was found. Fix: choose .svg, "
            ".png, .pdf, .mmd, .dot or .txt; graphloop draw writes state machines."
        )


def draw_found(graph: Graph[S], path: str, marks: Marks) -> None:
    """Draw a graph with these marks.

    Raises:
        ConfigError: the file cannot be drawn or written.
    """
    try:
        save(graph, path, marks)
    except OSError as error:
        raise ConfigError(f"--draw: {path!r} cannot be written: {error}") from error
