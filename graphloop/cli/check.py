"""Prove what can be proven of a graph, and tell what is wrong with it.

  graphloop check examples/custom_topology
  graphloop check my_package.desk:graph --json
  graphloop check my_package.desk:graph --draw proof.svg
  graphloop check desk.yaml --with desk.py --proven GL2,GL3
  graphloop check desk.yaml --rule '{never: deploy, before: review}'

What cannot be decided is unknown, and no error: with --proven these codes have to be proven; all
are GL1 to GL13, but for GL12 (about your rules).

Exit status: 0 nothing is wrong, 1 something is, or is not proven that has to be, 2 wrong usage.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import typer

from ..agent import Agent, split_tools
from ..errors import GraphError
from ..proofs import PROPERTIES, Report, codes, to_sarif
from ..rules import rules_of
from ..tools import Toolbox
from ..topology import rules_of_texts
from ..views import picture, proof_marks
from .errors import Status, tell_error
from .options import Json, Registers, RuleTexts, TargetArgument, Text
from .output import Destination, findings_file, print_report, refuse_mixed
from .target import Loop, load_target, register
from .text import safe_json

__all__ = ["check_command"]

SARIF_SUFFIXES: Final = (".sarif", ".sarif.json", ".json")

Sarif: TypeAlias = Annotated[
    Text, typer.Option(metavar="FILE", help="Write SARIF as well; - is stdout.")
]
Draw: TypeAlias = Annotated[
    Text, typer.Option(metavar="FILE", help="Draw what was found as well; -.txt is stdout.")
]
Proven: TypeAlias = Annotated[
    Text, typer.Option(metavar="CODES", help="Fail unless these are proven: GL2,GL3, or all.")
]


def check_command(  # noqa: PLR0913 - the options of a command are its parameters
    target: TargetArgument,
    *,
    sarif: Sarif = None,
    draw: Draw = None,
    proven: Proven = None,
    rule: RuleTexts = None,
    registers: Registers = None,
    as_json: Json = False,
) -> Status:
    """Print the report on `target`, also if it cannot be built."""
    register(registers)
    drawing = findings_file(draw)
    sarif_file = None if sarif is None else Destination.of("--sarif", sarif, SARIF_SUFFIXES)
    refuse_mixed(sarif_file, drawing, as_json=as_json)
    wanted = _wanted(proven)
    own = rules_of_texts(rule or (), "--rule")
    try:
        loop, tools = _loaded(target)
        graph = loop.graph if isinstance(loop, Agent) else loop
        rules = rules_of(loop.options.get("rules", ())) & own if isinstance(loop, Agent) else own
        report = graph.check(rules=rules, tools=tools)
        if drawing is not None:
            drawing.draw(picture(graph, proof_marks(graph, report.findings)))
    except GraphError as error:
        # There is no graph to draw.
        report = Report.from_error(error)
    if sarif_file is None or sarif_file.write(safe_json(to_sarif([report]))):
        print_report(f"{report}", report.to_json(), as_json=as_json, beside=drawing)
    lacking = [code for code in wanted if code not in report.proven]
    if lacking:
        tell_error(f"--proven: expected {', '.join(lacking)} to be proven, found no proof.")
    return Status.OK if report.ok and not lacking else Status.FAILED


def _loaded(text: str) -> tuple[Loop, tuple[str, ...]]:
    """Load the loop that `text` names, and its runs' known tools."""
    target = load_target(text)
    loop = target.loop()
    if isinstance(loop, Agent) or not target.tools:
        return loop, ()
    own, agents = split_tools(target.tools)
    children = [name for agent in agents.values() for name in agent.opener.terms.tool_names]
    known = [*[spec.name for spec in Toolbox(own).specs], *children, *(loop.tool_names or ())]
    return loop, tuple(dict.fromkeys(known))


def _wanted(proven: str | None) -> tuple[str, ...]:
    """Return the codes that must be proven."""
    if proven is None:
        return ()
    if proven == "all":
        return tuple([code for code in PROPERTIES if code != "GL12"])
    return codes("--proven", [code.strip() for code in proven.split(",")])
