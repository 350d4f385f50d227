"""Tell how a graph differs from an earlier one, and what that means.

  graphloop diff old.yaml new.yaml
  graphloop diff old/desk.py desk.py -o changes.svg --level phase
  graphloop diff old.yaml new.yaml --rule '{never: pay, before: review}'

The proofs of both decide: what can be reached without what it always came after, which cycle has
lost its bound, how far the worst case has moved, which rules let through more; and whether a --rule
that held can be broken now. Names are identity: a renamed node is another node.

Exit status: 0 nothing got weaker, 1 something did, 2 wrong usage.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from ..errors import ConfigError
from ..front.agent import Agent
from ..front.graph import Graph
from ..overlays.changes import changes_picture
from ..proofs.difference import difference
from ..proofs.rule_changes import refuse_unknown
from ..temporal import Rules, rules_of
from ..topology.registration import registry
from ..topology.temporal_form import rules_of_texts
from ..views.render import save_picture, written
from ..views.theme import THEMES
from .errors import Status
from .options import Json, Level, Near, Registers, RuleTexts, Text, Theme, Themed
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
    theme: Themed = Theme.LIGHT,
    level: Near = Level.NODE,
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
    if output is None and level is not Level.NODE:
        raise ConfigError(
            "--level would have no effect without a picture. Fix: name a file with -o."
        )
    drawn = stdout_suffix("-o", output, PICTURES)
    refuse_mixed({"--json": as_json, "-o": drawn is not None})
    own = rules_of_texts(rule or (), "--rule")
    # Both may register tools of the same names.
    with registry.set_back():
        old, of_old = _loaded(before)
    with registry.set_back():
        new, of_new = _loaded(after)
    refuse_unknown(old, new, own)
    found = difference(old, new, of_new & own, rules_before=of_old & own)
    if output is not None:
        shown = changes_picture(old, new, found, level.value)
        if drawn is None:
            save_picture(shown, output, THEMES[theme])
        else:
            print_file(written(shown, drawn, THEMES[theme]), drawn)
    if as_json:
        print_file(safe_json(found.to_json()))
    else:
        print_report(f"{found}", beside=drawn)
    return Status.FAILED if found.weaker else Status.OK


def _loaded(text: str) -> tuple[Graph[None], Rules]:
    """Load what `text` names, with the temporal rules that an agent has among its options."""
    loop = load_loop(text)
    if isinstance(loop, Agent):
        return loop.graph, rules_of(loop.options.get("rules", ()))
    return loop, Rules()
