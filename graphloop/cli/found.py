"""A graph drawn with what a command has found laid over it."""

from __future__ import annotations

from typing import TypeVar

from ..errors import ConfigError
from ..graph import Graph
from ..views.marks import Marks
from ..views.picture import picture
from ..views.render import is_machine, save, written
from .output import PICTURES, printed, put

__all__ = ["draw_found", "drawn_to"]

S = TypeVar("S")


def drawn_to(path: str | None) -> str | None:
    """Return the suffix of a picture that goes to stdout; None for a file, and for none.

    Raises:
        ConfigError: nothing that was found could be seen in it, or stdout cannot take it.
    """
    if path is not None and is_machine(path):
        raise ConfigError(
            f"--draw {path}: a state machine shows nothing of what was found. Fix: choose .svg, "
            ".png, .pdf, .mmd, .dot or .txt; graphloop draw writes state machines."
        )
    return printed("--draw", path, PICTURES)


def draw_found(graph: Graph[S], path: str, marks: Marks) -> None:
    """Draw a graph with these marks, into a file or on stdout.

    Raises:
        ConfigError: the file cannot be drawn or written.
    """
    suffix = drawn_to(path)
    if suffix is not None:
        put(written(picture(graph, marks), suffix), suffix)
        return
    try:
        save(graph, path, marks)
    except OSError as error:
        raise ConfigError(f"--draw: {path!r} cannot be written: {error}") from error
