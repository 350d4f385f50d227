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
from ..providers import ScriptedModel
from ..rules import rules_of
from ..tools import Toolbox
from ..topology import rules_of_texts
from ..views import proof_marks
from .errors import Status, tell_error
from .options import Json, Registers, RuleTexts, TargetArgument, Text
from .output import (
    draw_findings,
    findings_suffix,
    print_file,
    print_report,
    refuse_mixed,
    stdout_suffix,
    write_file,
)
from .target import Loop, load_target, register
from .text import safe_json

__all__ = ["check"]

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


def check(  # noqa: PLR0913 - the options of a command are its parameters
    target: TargetArgument,
    *,
    sarif: Sarif = None,
    draw: Draw = None,
    proven: Proven = None,
    rule: RuleTexts = None,
    registers: Registers = None,
    as_json: Json = False,
) -> Status:
    """Print the report on `target`; a graph that cannot even be built has one, too.

    Raises:
        ConfigError: the target cannot be loaded for another reason than its graph's table, or the
            file cannot be written.
    """
    register(registers)
    drawn, printed = findings_suffix(draw), stdout_suffix("--sarif", sarif, SARIF_SUFFIXES)
    refuse_mixed({"--json": as_json, "--sarif": printed is not None, "--draw": drawn is not None})
    wanted = _wanted(proven)
    own = rules_of_texts(rule or (), "--rule")
    try:
        loop, tools = _loaded(target)
        graph = loop.graph if isinstance(loop, Agent) else loop
        rules = rules_of(loop.options.get("rules", ())) & own if isinstance(loop, Agent) else own
        report = graph.check(rules=rules, tools=tools)
        if draw is not None:
            draw_findings(graph, draw, proof_marks(graph, report))
    except GraphError as error:
        # There is no graph to draw.
        report = Report.from_error(error)
    if sarif is not None and printed is None:
        write_file("--sarif", sarif, to_sarif([report]))
    if printed is not None or as_json:
        print_file(safe_json(report.to_json() if as_json else to_sarif([report])))
    else:
        print_report(f"{report}", beside=drawn)
    lacking = [code for code in wanted if code not in report.proven]
    if lacking:
        tell_error(f"--proven: expected {', '.join(lacking)} to be proven, found no proof.")
    return Status.OK if report.ok and not lacking else Status.FAILED


def _loaded(text: str) -> tuple[Loop, tuple[str, ...]]:
    """Load what `text` names, and the tools that runs of a graph may call; none if unknown."""
    target = load_target(text)
    loop = target.loop(ScriptedModel(()))
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
