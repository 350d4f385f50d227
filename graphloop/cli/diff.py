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

from ..proofs import compare
from ..topology import registry, rules_of_texts
from ..views import THEMES, changes_picture
from .errors import Status
from .options import Json, Registers, RuleTexts, Text, Themed, ThemeName
from .output import PICTURES, Destination, print_report, refuse_mixed
from .target import load_graph, register

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
    """Print how two graphs differ; failed if the later promises less."""
    register(registers)
    drawing = None if output is None else Destination.of("-o", output, PICTURES)
    refuse_mixed(drawing, as_json=as_json)
    own = rules_of_texts(rule or (), "--rule")
    # Both may register tools of the same names.
    with registry.set_back():
        old = load_graph(before)
    with registry.set_back():
        new = load_graph(after)
    found = compare(old, new, own)
    if drawing is not None:
        drawing.draw(changes_picture(old, new, found), THEMES[theme.value])
    print_report(f"{found}", found.to_json(), as_json=as_json, beside=drawing)
    return Status.FAILED if found.weaker else Status.OK
