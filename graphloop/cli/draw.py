"""`graphloop draw`: the diagram of a graph, printed from the table that runs."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Final

from ..errors import ConfigError, nearest
from ..front.graph import Graph
from ..front.journals import typed
from ..overlays.proof import proof_marks
from ..views.marks import Marks
from ..views.picture import picture
from ..views.render import save, save_picture, written
from ..views.sequence import sequence
from ..views.sequence_mermaid import sequence_mermaid
from ..views.sequence_text import sequence_text
from ..views.theme import THEMES, Theme
from ..views.trace import trace, trace_marks
from .journal import Journal, read
from .request import DrawRequest
from .status import Status
from .target import STANDARD, load_graph

__all__ = ["draw", "theme_of"]

STDOUT: Final = {"-": ".mmd", "-.mmd": ".mmd", "-.dot": ".dot", "-.txt": ".txt"}
"""What is printed instead of written to a file, and in which notation."""

EXPAND_MAX: Final = 16
"""How many graphs deep children are drawn."""


def draw(request: DrawRequest) -> Status:
    """Draw a graph into a file, or as text on stdout; without an output, as Mermaid.

    Raises:
        ConfigError: the target cannot be loaded, an option cannot work, there is no such run, or
            the file cannot be drawn.
        StoreError: a run's journal cannot be read.
        IllegalEvent: a run is of another graph, or of an earlier one.
    """
    request.refuse_useless()
    theme = theme_of(request.theme)
    journals = [asyncio.run(read(request.store, one)) for one in request.runs]
    graph = load_graph(_target(request.target, journals))
    output = request.output
    if output is None:
        output = "-.txt" if request.text else "-"
    elif request.text:
        raise ConfigError("--text prints to the terminal: for a file, name it with -o loop.txt.")
    if request.sequence:
        return _sequence(graph, journals[0], output)
    marks = _marks(graph, journals, check=request.check)
    if output not in STDOUT and marks is None and not request.expand and request.theme == "light":
        # The state machine notations have no marks; whatever else is drawn, they are drawn here.
        save(graph, output)
    else:
        drawn = picture(graph, marks or Marks(), expand=EXPAND_MAX if request.expand else 0)
        if output in STDOUT:
            sys.stdout.write(written(drawn, STDOUT[output], theme).rstrip("\n") + "\n")
            return Status.OK
        save_picture(drawn, output, theme)
    sys.stdout.write(
        f"{output}: graph {graph.name!r}, {len(graph.nodes)} nodes, {len(graph.edges)} edges\n"
    )
    return Status.OK


def theme_of(name: str) -> Theme:
    """Return the theme of that name.

    Raises:
        ConfigError: there is none.
    """
    if name not in THEMES:
        raise ConfigError(
            f"expected --theme to be {' or '.join(THEMES)}, found {name!r}.{nearest(name, THEMES)}"
        )
    return THEMES[name]


def _target(given: str | None, journals: list[Journal]) -> str:
    return given or (journals[0].target_or(None) if journals else STANDARD)


def _marks(graph: Graph[None], journals: list[Journal], *, check: bool) -> Marks | None:
    if check:
        return proof_marks(graph, graph.check())
    if journals:
        return trace_marks(graph, [trace(graph, typed(graph, one.events)) for one in journals])
    return None


def _sequence(graph: Graph[None], journal: Journal, output: str) -> Status:
    said = sequence(graph, typed(graph, journal.events))
    suffix = STDOUT[output] if output in STDOUT else Path(output).suffix
    if suffix not in {".mmd", ".txt"}:
        raise ConfigError(
            f"--sequence is drawn as Mermaid or as text: expected -o FILE.mmd or FILE.txt, "
            f"found {output!r}."
        )
    text = sequence_text(said) if suffix == ".txt" else sequence_mermaid(said)
    if output in STDOUT:
        sys.stdout.write(text)
        return Status.OK
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--output: {output!r} cannot be written: {error}") from error
    sys.stdout.write(f"{output}: run {journal.run_id}, {len(said)} messages\n")
    return Status.OK
