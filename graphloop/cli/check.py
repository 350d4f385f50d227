"""Prove the properties of a graph, and list its problems.

  graphloop check examples/custom_topology
  graphloop check my_package.desk:graph --json
  graphloop check my_package.desk:graph --draw proof.svg
  graphloop check desk.yaml --with desk.py --proven GL2,GL3
  graphloop check desk.yaml --rule '{never: deploy, before: review}'

A property that cannot be decided is unknown, which is no error. --proven names properties that must
be proven; `all` means GL1 to GL13 without GL12, which is about your rules.

Exit status: 0 no problem, 1 a problem, or a property of --proven is not proven, 2 wrong usage.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
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
from .modules import register
from .options import Json, Registers, RuleTexts, TargetArgument, Text
from .output import Destination, findings_file, print_report, refuse_mixed
from .target import Loop, load_target
from .text import safe_json

__all__ = ["check_command"]

SARIF_SUFFIXES: Final = (".sarif", ".sarif.json", ".json")

Sarif: TypeAlias = Annotated[
    Text, typer.Option(metavar="FILE", help="Write SARIF as well; - is stdout.")
]
Draw: TypeAlias = Annotated[
    Text, typer.Option(metavar="FILE", help="Draw the findings as well; -.txt is stdout.")
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
    """Check a graph and print the report, also if the graph's table is invalid."""
    modules = register(registers)
    drawing = findings_file(draw)
    sarif_file = None if sarif is None else Destination.of("--sarif", sarif, SARIF_SUFFIXES)
    refuse_mixed(sarif_file, drawing, as_json=as_json)
    wanted = _required_codes(proven)
    own_rules = rules_of_texts(rule or (), "--rule")
    try:
        loop, tools = _load_loop(target, modules)
        graph = loop.graph if isinstance(loop, Agent) else loop
        rules = own_rules
        if isinstance(loop, Agent):
            rules = rules_of(loop.options.get("rules", ())) & own_rules
        report = graph.check(rules=rules, tools=tools)
        if drawing is not None:
            drawing.draw(picture(graph, proof_marks(graph, report.findings)))
    except GraphError as error:
        report = Report.from_error(error)
    if sarif_file is None or sarif_file.write(safe_json(to_sarif([report]))):
        print_report(f"{report}", report.to_json(), as_json=as_json, beside=drawing)
    lacking = [code for code in wanted if code not in report.proven]
    if lacking:
        tell_error(f"--proven: expected {', '.join(lacking)} to be proven, found no proof.")
    return Status.OK if report.ok and not lacking else Status.FAILED


def _load_loop(text: str, modules: Sequence[ModuleType]) -> tuple[Loop, tuple[str, ...]]:
    """Return the agent or graph of a target, and the names of the known tools of its runs."""
    target = load_target(text, modules)
    loop = target.loop()
    if isinstance(loop, Agent) or not target.tools:
        return loop, ()
    own, agents = split_tools(target.tools)
    children = [name for agent in agents.values() for name in agent.opener.terms.tool_names]
    known = [
        *[spec.name for spec in Toolbox(own).specs],
        *children,
        *(loop.surroundings.tool_names or ()),
    ]
    return loop, tuple(dict.fromkeys(known))


def _required_codes(proven: str | None) -> tuple[str, ...]:
    """Return the property codes that the value of `--proven` requires."""
    if proven is None:
        return ()
    if proven == "all":
        return tuple([code for code in PROPERTIES if code != "GL12"])
    return codes("--proven", [code.strip() for code in proven.split(",")])
