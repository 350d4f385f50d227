"""Draw a graph from the table that runs; without -o, print it as Mermaid.

  graphloop draw agent -o loop.svg
  graphloop draw examples/custom_topology -o topology.png
  graphloop draw my_package.desk:graph --text --level phase
  graphloop draw --run 4f2a -o did.svg --store runs.db
  graphloop draw --run 4f2a --sequence --text
  graphloop draw my_package.desk:graph --check -o proof.svg

Without TARGET, the standard loop is drawn, or the graph of --run. The file's suffix is the format:
svg, png, pdf, mmd (Mermaid), dot, txt, scxml, xstate.json; a --sequence is mmd or txt only. `-` is
stdout, and -.txt, -.dot, -.svg and so on are stdout in that format.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer
from msgspec.structs import replace

from ..agent import Agent, Graph, Tools, graph_of, path_key, split_tools
from ..effects import AskHuman, CallTool
from ..errors import ConfigError
from ..run import Run
from ..stores import Store, root_of, typed
from ..views import (
    THEMES,
    Marks,
    RunTrace,
    is_machine,
    machine,
    picture,
    proof_marks,
    run_trace,
    sequence,
    sequence_mermaid,
    sequence_text,
    trace_marks,
)
from .errors import Status
from .modules import register
from .options import TARGET, Level, Near, Registers, StorePath, Text, Themed, ThemeName
from .output import MACHINES, PICTURES, Destination
from .stored import Journal, answers_text, child_journals, opened, read
from .target import STANDARD, Loop, load_target, refuse_options

__all__ = ["draw_command", "graph_with_tools"]

SEQUENCES: Final = (".mmd", ".txt")
"""The file formats for a sequence diagram."""

Output: TypeAlias = Annotated[
    Text,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="svg, png, pdf, mmd, dot or txt; - is stdout, as is -.txt or -.dot.",
    ),
]
AsText: TypeAlias = Annotated[bool, typer.Option("--text", help="Print it for a terminal.")]
Expand: TypeAlias = Annotated[bool, typer.Option("--expand", help="Draw the child graphs, too.")]
Check: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--check", help="Draw the findings: gated nodes are shaded, a run to a fault is numbered."
    ),
]
Runs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--run", metavar="RUN", help="Draw the path of this run; repeatable."),
]
InOrder: TypeAlias = Annotated[
    bool, typer.Option("--sequence", help="Draw the messages of one --run in their order.")
]


def draw_command(  # noqa: PLR0913 - the options of a command are its parameters
    target: Annotated[Text, TARGET] = None,
    output: Output = None,
    *,
    text: AsText = False,
    theme: Themed = ThemeName.LIGHT,
    level: Near = Level.NODE,
    expand: Expand = False,
    check: Check = False,
    run: Runs = None,
    store: StorePath = None,
    in_order: InOrder = False,
    registers: Registers = None,
) -> Status:
    """Draw a graph to a file, or to stdout as text."""
    register(registers)
    nears: dict[str, object] = {
        "--expand": expand,
        "--level": None if level is Level.NODE else level,
    }
    looks: dict[str, object] = {
        "--check": check,
        "--run": run,
        "--theme": None if theme.value == "light" else theme,
    }
    if run:
        refuse_options({"--check": check}, "a picture shows a proof or runs, not both")
    if in_order:
        refuse_options(nears | {"--check": check}, "a sequence shows no nodes")
        if len(run or ()) != 1:
            raise ConfigError(f"--sequence: expected one --run, found {len(run or ())}.")
    if text and output is not None:
        raise ConfigError("--text prints to the terminal. Fix: for a file, write -o loop.txt.")
    output = output or ("-.txt" if text else "-")
    journals = _load_journals(run or (), store)
    loaded = load_target(target or (journals[0].target(None) if journals else STANDARD))
    graph = graph_with_tools(loaded.loop(), loaded.tools)
    if in_order:
        return _draw_sequence(graph, journals[0], output)
    file = Destination.of("-o", output, (*PICTURES, *MACHINES))
    if is_machine(output):
        refuse_options(nears | looks, f"{output} is a state machine, of all nodes")
        is_file = file.write(machine(graph, output))
    else:
        marks = Marks()
        if check:
            marks = proof_marks(graph, graph.check().findings)
        elif journals:
            marks = trace_marks(graph, asyncio.run(_load_traces(graph, journals, store)))
        is_file = file.draw(picture(graph, marks, level.value, expand=expand), THEMES[theme.value])
    if is_file:
        sys.stdout.write(
            f"{output}: graph {graph.name!r}, {len(graph.nodes)} nodes, {len(graph.edges)} edges\n"
        )
    return Status.OK


def _load_journals(names: Sequence[str], store: str | None) -> list[Journal]:
    journals = [asyncio.run(read(store, name)) for name in dict.fromkeys(names)]
    if len({journal.run_id for journal in journals}) < len(names):
        raise ConfigError("--run names a run twice, and it would count as two. Fix: name it once.")
    return journals


def graph_with_tools(loop: Loop, tools: Tools = ()) -> Graph[None]:
    """Return an agent's graph, or a copy of a graph with the agents among `tools` added."""
    if isinstance(loop, Agent):
        return loop.graph
    _, agents = split_tools(tools)
    graph = copy(loop)
    known = loop.surroundings
    given = {name: graph_of(plan.opener) for name, plan in agents.items()}
    graph.surroundings = replace(
        known, agents=given | {**known.agents}, called=known.called | {*agents}
    )
    return graph


async def _load_traces(
    graph: Graph[None], journals: Sequence[Journal], where: str | None
) -> list[RunTrace]:
    async with opened(where) as store:
        return [await _load_trace(graph, journal, store) for journal in journals]


async def _load_trace(graph: Graph[None], journal: Journal, store: Store) -> RunTrace:
    """Return the trace of a run, including stored answers that are not in a journal yet."""
    answers = await answers_text(store, root_of(journal.run_id, "")[0])
    children = await child_journals(store, journal.run_id)

    def answered(run: Run[Any], ask: AskHuman | CallTool) -> str:
        return answers.get(path_key(run, ask), "")

    return run_trace(graph, journal.events, children, typed=typed, answered=answered)


def _draw_sequence(graph: Graph[None], journal: Journal, output: str) -> Status:
    messages = sequence(graph, typed(graph, journal.events))
    file = Destination.of("-o", output, SEQUENCES)
    suffix = file.suffix or Path(output).suffix
    if suffix not in SEQUENCES:
        raise ConfigError(
            f"--sequence: expected -o FILE.mmd or FILE.txt, found {output!r}: a sequence is "
            "Mermaid or text."
        )
    if file.write((sequence_text if suffix == ".txt" else sequence_mermaid)(messages)):
        sys.stdout.write(f"{output}: run {journal.run_id}, {len(messages)} messages\n")
    return Status.OK
