"""`graphloop draw`: the diagram of a graph, printed from the table that runs."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any, Final

from ..effects import AskHuman, CallTool
from ..errors import ConfigError, nearest
from ..front.agent import Agent
from ..front.answers import path_key
from ..front.family import family_of
from ..front.graph import Graph
from ..front.journals import typed
from ..overlays.levels import level_of, level_picture
from ..overlays.proof import proof_marks
from ..providers.script import ScriptedModel
from ..run import Run
from ..views.family import Family
from ..views.marks import Marks
from ..views.render import is_machine, machine, save, save_picture, written
from ..views.sequence import sequence, sequence_mermaid, sequence_text
from ..views.theme import THEMES, Theme
from ..views.trace import Trace, family_trace, trace_marks
from .journal import Journal, read, read_answers, read_below
from .output import MACHINES, PICTURES, printed, put
from .request import DrawRequest, refuse_twice
from .status import Status
from .target import STANDARD, load_target, standard_target

__all__ = ["draw", "theme_of"]

SEQUENCES: Final = (".mmd", ".txt")
"""The notations of a sequence."""


def draw(request: DrawRequest) -> Status:
    """Draw a graph into a file, or as text on stdout; without an output, as Mermaid.

    Raises:
        ConfigError: the target cannot be loaded, an option cannot work, there is no such run, or
            the file cannot be drawn.
        StoreError: a run's journal cannot be read.
        IllegalEvent: a run is of another graph, or of an earlier one.
    """
    request.refuse_useless()
    theme, level = theme_of(request.theme), level_of(request.level)
    journals = [asyncio.run(read(request.store, one)) for one in request.runs]
    refuse_twice([one.run_id for one in journals])
    graph, family = _loaded(_target(request.target, journals))
    output = request.output
    if output is None:
        output = "-.txt" if request.text else "-"
    elif request.text:
        raise ConfigError("--text prints to the terminal: for a file, name it with -o loop.txt.")
    if request.sequence:
        return _sequence(graph, journals[0], output)
    suffix = printed("-o", output, (*PICTURES, *MACHINES))
    if is_machine(output):
        _refuse_looks(request, output)
        if suffix is not None:
            put(machine(graph, output), suffix)
            return Status.OK
        save(graph, output)
    else:
        marks = _marks(graph, family, journals, request)
        drawn = level_picture(family, level, marks or Marks(), expand=request.expand)
        if suffix is not None:
            put(written(drawn, suffix, theme), suffix)
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


def _loaded(text: str) -> tuple[Graph[None], Family]:
    """Load the graph that `text` names, and the agents that it may run."""
    model = ScriptedModel(())
    target = standard_target() if text == STANDARD else load_target(text, (STANDARD,))
    loop = target.loop(model)
    graph = loop.graph if isinstance(loop, Agent) else loop
    return graph, family_of(loop, target.tools)


def _marks(
    graph: Graph[None], family: Family, journals: list[Journal], request: DrawRequest
) -> Marks | None:
    if request.check:
        return proof_marks(graph, graph.check(), family=family)
    if not journals:
        return None
    traces = [asyncio.run(_trace(family, one, request.store)) for one in journals]
    return trace_marks(graph, traces, family)


async def _trace(family: Family, journal: Journal, store: str | None) -> Trace:
    """Return what a run has done, with what was answered since it was driven."""
    below = await read_below(store, journal.run_id)
    answers = await read_answers(store, journal.run_id)

    def answered(run: Run[Any], ask: AskHuman | CallTool) -> str:
        return answers.get(path_key(run, ask), "")

    return family_trace(family, journal.events, below, typed, answered)


def _refuse_looks(request: DrawRequest, output: str) -> None:
    """Refuse what a state machine cannot show, rather than leaving it out."""
    looks = {
        "--level": request.level != "node",
        "--expand": request.expand,
        "--theme": request.theme != "light",
        "--check": request.check,
        "--run": bool(request.runs),
    }
    if given := [name for name, is_given in looks.items() if is_given]:
        raise ConfigError(
            f"{' and '.join(given)} would have no effect: {output!r} is a state machine, which has "
            "all nodes and nothing else. Leave it out, or draw a picture."
        )


def _sequence(graph: Graph[None], journal: Journal, output: str) -> Status:
    said = sequence(graph, typed(graph, journal.events))
    to_stdout = printed("-o", output, SEQUENCES)
    suffix = to_stdout or Path(output).suffix
    if suffix not in SEQUENCES:
        raise ConfigError(
            f"--sequence is drawn as Mermaid or as text: expected -o FILE.mmd or FILE.txt, "
            f"found {output!r}."
        )
    text = sequence_text(said) if suffix == ".txt" else sequence_mermaid(said)
    if to_stdout is not None:
        put(text, to_stdout)
        return Status.OK
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--output: {output!r} cannot be written: {error}") from error
    sys.stdout.write(f"{output}: run {journal.run_id}, {len(said)} messages\n")
    return Status.OK
