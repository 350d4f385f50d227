"""`graphloop convert`: documents of Open Agent Spec as topologies, and the other way round."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..errors import ConfigError
from ..front.topology import dump_agent_spec
from ..topology import TopologyError
from ..topology.agent_spec import AgentSpecReport, read_agent_spec
from ..topology.registration import Names
from ..topology.writer import data_of, yaml_of
from .lines import clean
from .output import printed
from .request import Notation
from .status import Status, put_file, tell
from .target import execute, load_graph

__all__ = ["convert"]

PIPE_WIDTH = 400
SUFFIXES: Final = {Notation.TOPOLOGY: (".yaml", ".yml"), Notation.AGENT_SPEC: (".json",)}
"""What can be said of a document that is printed."""
COLORS = {"exact": "green", "approximated": "yellow", "refused": "red"}


def convert(
    source: str,
    *,
    to: Notation,
    output: str | None = None,
    registers: str | None = None,
    allow_refused: bool = False,
) -> Status:
    """Convert a file, and print what became of its parts.

    Args:
        source: the file of a document; or what is to be written as one: a target.
        to: what to write.
        output: the file; stdout if it is None or `-`, and then the report goes to stderr.
        registers: a .py file that registers what the file names; without one, the tools of a
            document need not be registered, unless a topology travels along in its metadata.
        allow_refused: whether what has no counterpart is left out.

    Raises:
        ConfigError: the file is wrong, or cannot be written.
    """
    to_stdout = output is None or printed("-o", output, SUFFIXES[to]) is not None
    if registers is not None:
        execute(Path(registers))
    try:
        text, report = _converted(source, to, unregistered=registers is None)
    except TopologyError as error:
        if registers is None and any(" is registered as " in one.found for one in error.problems):
            tell("--with FILE.py names the file that registers what it names")
        raise
    _print(report, sys.stderr if to_stdout else sys.stdout)
    if report.refused and not allow_refused:
        tell(f"nothing was written: --allow-refused {_meaning(report, to)}")
        return Status.FAILED
    if to_stdout:
        put_file(text)
        return Status.OK
    try:
        Path(str(output)).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{output!r} cannot be written: {error}") from error
    return Status.OK


def _converted(source: str, to: Notation, *, unregistered: bool) -> tuple[str, AgentSpecReport]:
    if to is Notation.AGENT_SPEC:
        return dump_agent_spec(load_graph(source))
    read = read_agent_spec(Path(source), Names(), allow_refused=True, unregistered=unregistered)
    return yaml_of(data_of(read.document, read.names)), read.report


def _meaning(report: AgentSpecReport, to: Notation) -> str:
    """Return what it means to allow what is refused."""
    if to is Notation.TOPOLOGY and report.is_carried:
        return "takes the topology in the metadata as it stands, with what the rest does not show"
    return "leaves out what is refused"


def _print(report: AgentSpecReport, to: TextIO) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("verdict", "what", "name", "what became of it"):
        table.add_column(name, overflow="fold")
    for one in report:
        cells = (one.verdict, one.kind, one.name, one.said)
        told = [Text(clean(cell)) for cell in cells]
        told[0].stylize(COLORS[one.verdict])
        table.add_row(*told)
    width = None if to.isatty() else PIPE_WIDTH
    console = Console(file=to, width=width, highlight=False, markup=False)
    console.print(table)
    counts = [f"{len(report.of(one))} {one}" for one in ("exact", "approximated", "refused")]
    console.print(Text(", ".join(counts)))
