"""Tell how a graph differs from an earlier one, and what that means.

  graphloop diff old.yaml new.yaml
  graphloop diff old/desk.py desk.py -o changes.svg
  graphloop diff old.yaml new.yaml --rule '{never: pay, before: review}'

It lists rows and parameters, and what the later graph promises less: a guard that can be passed
by, a gate that lets through more, a bound that grew, a rule that is gone or can be broken, an act,
a tool or an agent that is new. A renamed node is another node; the code of functions is not
compared.

Exit status: 0 nothing got weaker, 1 something did, 2 wrong usage.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from ..agent import Agent, Graph
from ..proofs import compare
from ..topology import registry, rules_of_texts
from ..views import THEMES, changes_picture, rendered, save_picture
from .errors import Status
from .options import Json, Registers, RuleTexts, Text, Themed, ThemeName
from .output import PICTURES, print_file, print_report, refuse_mixed, stdout_suffix
from .target import load_loop, register
from .text import safe_json

__all__ = ["diff"]

Before: TypeAlias = Annotated[
    str, typer.Argument(metavar="BEFORE", help="A TARGET; Python is executed.")
]
After: TypeAlias = Annotated[str, typer.Argument(metavar="AFTER", help="The later graph.")]
Output: TypeAlias = Annotated[
    Text, typer.Option("-o", "--output", metavar="FILE", help="Draw it: svg, png, pdf, mmd, dot.")
]


def diff(  # noqa: PLR0913 - the options of a command are its parameters
    before: Before,
    after: After,
    *,
    output: Output = None,
    theme: Themed = ThemeName.LIGHT,
    rule: RuleTexts = None,
    registers: Registers = None,
    as_json: Json = False,
) -> Status:
    """Print how the graph `after` differs from the graph `before`; failed if it promises less.

    Raises:
        ConfigError: a target cannot be loaded, the file cannot be drawn, or an option cannot work.
        GraphError: one of the graphs has no correct table.
    """
    register(registers)
    drawn = stdout_suffix("-o", output, PICTURES)
    refuse_mixed({"--json": as_json, "-o": drawn is not None})
    own = rules_of_texts(rule or (), "--rule")
    # Both may register tools of the same names.
    with registry.set_back():
        old = _loaded(before)
    with registry.set_back():
        new = _loaded(after)
    found = compare(old, new, own)
    if output is not None:
        shown = changes_picture(old, new, found)
        if drawn is None:
            save_picture(shown, output, THEMES[theme])
        else:
            print_file(rendered(shown, drawn, THEMES[theme]), drawn)
    if as_json:
        print_file(safe_json(found.to_json()))
    else:
        print_report(f"{found}", beside=drawn)
    return Status.FAILED if found.weaker else Status.OK


def _loaded(text: str) -> Graph[None]:
    loop = load_loop(text)
    return loop.graph if isinstance(loop, Agent) else loop
