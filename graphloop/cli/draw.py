"""Draw a graph from the table that runs; without -o, print it as Mermaid.

  graphloop draw agent -o loop.svg
  graphloop draw examples/custom_topology -o topology.png
  graphloop draw my_package.desk:graph --text --level phase
  graphloop draw --run 4f2a -o did.svg --store runs.db
  graphloop draw --run 4f2a --sequence --text
  graphloop draw my_package.desk:graph --check -o proof.svg

Without TARGET, the standard loop is drawn, or the graph of --run. A file's suffix says how it is
drawn: svg, png, pdf, mmd (Mermaid), dot, txt, scxml, xstate.json; a --sequence is mmd or txt only.
`-` is stdout; -.txt, -.dot, -.svg and so on say in which notation.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from ..agent import (
    Agent,
    Graph,
    Plan,
    Tools,
    carried_by,
    graph_of,
    path_key,
    root_of,
    split_tools,
    typed,
)
from ..effects import AskHuman, CallTool
from ..errors import ConfigError
from ..graph import Graph as KernelGraph
from ..run import Run
from ..views import (
    THEMES,
    Family,
    Marks,
    RunTrace,
    family_trace,
    is_machine,
    known_family,
    level_picture,
    machine,
    proof_marks,
    sequence,
    sequence_mermaid,
    sequence_text,
    trace_marks,
)
from .errors import Status
from .options import TARGET, Level, Near, Registers, StorePath, Text, Themed, ThemeName
from .output import MACHINES, PICTURES, Destination
from .stored import Journal, answers_text, opened, read
from .target import STANDARD, load_target, refuse_options, register

__all__ = ["draw_command", "family_of"]

SEQUENCES: Final = (".mmd", ".txt")
"""The notations of a sequence."""

Output: TypeAlias = Annotated[
    Text,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="svg, png, pdf, mmd, dot or txt; - is stdout, -.txt or -.dot say how.",
    ),
]
AsText: TypeAlias = Annotated[bool, typer.Option("--text", help="Print it for a terminal.")]
Expand: TypeAlias = Annotated[
    bool, typer.Option("--expand", help="Draw the graphs that nodes run, too.")
]
Check: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--check", help="Draw what check finds: gated nodes shaded, a way to a fault numbered."
    ),
]
Runs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--run", metavar="RUN", help="Draw what this run did; may be repeated."),
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
    """Draw a graph into a file, or as text on stdout."""
    register(registers)
    _refuse_both({"--check": check, "--run": bool(run)}, "they would lie upon each other")
    nears = {"--expand": expand, "--level": level is not Level.NODE}
    if in_order:
        for name, is_given in nears.items():
            _refuse_both({name: is_given, "--sequence": True}, "a sequence shows no nodes")
        if len(run or ()) != 1:
            raise ConfigError(f"--sequence: expected one --run, found {len(run or ())}.")
    if text and output is not None:
        raise ConfigError("--text prints to the terminal. Fix: for a file, write -o loop.txt.")
    output = output or ("-.txt" if text else "-")
    journals = [asyncio.run(read(store, name)) for name in dict.fromkeys(run or ())]
    if len({journal.run_id for journal in journals}) < len(run or ()):
        raise ConfigError("--run names a run twice, and it would count as two. Fix: name it once.")
    named = target or (journals[0].target(None) if journals else STANDARD)
    found = load_target(named)
    loop = found.loop()
    graph = loop.graph if isinstance(loop, Agent) else loop
    if in_order:
        return _draw_sequence(graph, journals[0], output)
    file = Destination.of("-o", output, (*PICTURES, *MACHINES))
    assert file is not None, "without an output, it is stdout"
    if is_machine(output):
        looks = {"--theme": theme is not ThemeName.LIGHT, "--check": check, "--run": bool(run)}
        given = {name: True for name, is_given in (nears | looks).items() if is_given}
        refuse_options(given, f"{output} is a state machine, of all nodes")
        is_file = file.write(machine(graph, output))
    else:
        family = family_of(loop, found.tools)
        marks = _marks(family, journals, store, check=check)
        drawn = level_picture(family, level.value, marks, expand=expand)
        is_file = file.draw(drawn, THEMES[theme.value])
    if is_file:
        sys.stdout.write(
            f"{output}: graph {graph.name!r}, {len(graph.nodes)} nodes, {len(graph.edges)} edges\n"
        )
    return Status.OK


def _refuse_both(given: dict[str, bool], why: str) -> None:
    """Refuse two options that do not go together."""
    if all(given.values()):
        raise ConfigError(f"{' and '.join(given)}: expected one of them, found both: {why}.")


def _marks(family: Family, journals: Sequence[Journal], store: str | None, *, check: bool) -> Marks:
    graph = family.graph
    if check:
        assert isinstance(graph, Graph), "a loop's graph can be checked"
        return proof_marks(graph, graph.check(), family=family)
    if not journals:
        return Marks()
    traces = [asyncio.run(_trace(family, journal, store)) for journal in journals]
    return trace_marks(graph, traces, family)


async def _trace(family: Family, journal: Journal, where: str | None) -> RunTrace:
    """Return the trace of a run, with the answers since it was driven."""
    within = f"{journal.run_id}/"
    async with opened(where) as store:
        answers = await answers_text(store, root_of(journal.run_id, "")[0])
        known = [run_id for run_id in await store.runs() if run_id.startswith(within)]
        children = {run_id.removeprefix(within): await store.load(run_id) for run_id in known}

    def answered(run: Run[Any], ask: AskHuman | CallTool) -> str:
        return answers.get(path_key(run, ask), "")

    return family_trace(family, journal.events, children, typed, answered)


def _draw_sequence(graph: Graph[None], journal: Journal, output: str) -> Status:
    said = sequence(graph, typed(graph, journal.events))
    file = Destination.of("-o", output, SEQUENCES)
    assert file is not None, "without an output, it is stdout"
    suffix = file.suffix or Path(output).suffix
    if suffix not in SEQUENCES:
        raise ConfigError(
            f"--sequence: expected -o FILE.mmd or FILE.txt, found {output!r}: it is drawn as "
            "Mermaid or as text."
        )
    if file.write(sequence_text(said) if suffix == ".txt" else sequence_mermaid(said)):
        sys.stdout.write(f"{output}: run {journal.run_id}, {len(said)} messages\n")
    return Status.OK


def family_of(loop: Agent | KernelGraph[Any], tools: Tools = ()) -> Family:
    """Return a loop's graph with its agents, and those among `tools`."""
    if isinstance(loop, Agent):
        return known_family(loop.graph)
    _, given = split_tools(tools)
    known, brought = known_family(loop), carried_by(loop.nodes.values()).agents
    return Family(loop, {**known.tools, **_families(given)}, {**_families(brought), **known.agents})


def _families(plans: Mapping[str, Plan]) -> dict[str, Family]:
    found = {name: graph_of(plan.opener) for name, plan in plans.items()}
    return {name: known_family(graph) for name, graph in found.items() if graph is not None}
