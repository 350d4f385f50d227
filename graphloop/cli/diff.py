"""Compare a graph with an earlier one; fail if it promises less.

  graphloop diff old.yaml new.yaml
  graphloop diff old/desk.py desk.py -o changes.svg
  graphloop diff old.yaml new.yaml --rule '{never: pay, before: review}'

It lists changed rows and parameters, and each lost promise: a guard that runs can avoid, a gate
that lets more calls run, a larger bound, a removed rule or a rule that can be broken, a new act,
tool or agent. A renamed node is another node. The code of functions is not compared.

Exit status: 0 the later graph is not weaker, 1 it is weaker, 2 wrong usage.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from ..proofs import compare
from ..topology import registry, rules_of_texts
from ..views import THEMES, changes_picture
from .errors import Status
from .modules import register
from .options import Json, Registers, RuleTexts, Text, Themed, ThemeName
from .output import PICTURES, Destination, print_report, refuse_mixed
from .target import load_graph

__all__ = ["diff_command"]

Before: TypeAlias = Annotated[
    str, typer.Argument(metavar="BEFORE", help="A TARGET; Python is executed.")
]
After: TypeAlias = Annotated[str, typer.Argument(metavar="AFTER", help="The later graph.")]
Output: TypeAlias = Annotated[
    Text, typer.Option("-o", "--output", metavar="FILE", help="Draw it: svg, png, pdf, mmd, dot.")
]


def diff_command(  # noqa: PLR0913 - the options of a command are its parameters
    before: Before,
    after: After,
    *,
    output: Output = None,
    theme: Themed = ThemeName.LIGHT,
    rule: RuleTexts = None,
    registers: Registers = None,
    as_json: Json = False,
) -> Status:
    """Compare two graphs, and print their differences."""
    register(registers)
    drawing = None if output is None else Destination.of("-o", output, PICTURES)
    refuse_mixed(drawing, as_json=as_json)
    rules = rules_of_texts(rule or (), "--rule")
    # Undo the registrations of each file, because both files may register the same names.
    with registry.set_back():
        old = load_graph(before)
    with registry.set_back():
        new = load_graph(after)
    comparison = compare(old, new, rules)
    if drawing is not None:
        drawing.draw(changes_picture(old, new, comparison), THEMES[theme.value])
    print_report(f"{comparison}", comparison.to_json(), as_json=as_json, beside=drawing)
    return Status.FAILED if comparison.weaker else Status.OK
