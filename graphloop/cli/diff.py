"""`graphloop diff`: what was changed in a graph, and whether it promises less now."""

from __future__ import annotations

import sys

from ..front.agent import Agent
from ..front.graph import Graph
from ..overlays.changes import changes_picture
from ..proofs.difference import difference
from ..temporal import Rules, rules_of
from ..topology.registration import registry
from ..views.render import save_picture
from .draw import theme_of
from .request import refuse_blanks
from .status import Status
from .target import load_loop

__all__ = ["diff"]


def diff(
    before: str, after: str, *, as_json: bool = False, output: str | None = None, theme: str
) -> Status:
    """Print how the graph `after` differs from the graph `before`; failed if it promises less.

    Args:
        before: the earlier graph, as a target.
        after: the later one.
        as_json: whether the difference is printed as JSON.
        output: a file to draw it into.
        theme: the name of the drawing's theme.

    Raises:
        ConfigError: a target cannot be loaded, or the file cannot be drawn.
        GraphError: one of the graphs has no correct table.
    """
    refuse_blanks({"BEFORE": before, "AFTER": after, "--output": output})
    colours = theme_of(theme)
    # Both may register tools of the same names.
    with registry.set_back():
        old, rules_before = _loaded(before)
    with registry.set_back():
        new, rules = _loaded(after)
    found = difference(old, new, rules, rules_before=rules_before)
    if output is not None:
        save_picture(changes_picture(old, new, found), output, colours)
    sys.stdout.write(f"{found.to_json() if as_json else found}\n")
    return Status.FAILED if found.weaker else Status.OK


def _loaded(text: str) -> tuple[Graph[None], Rules]:
    """Load what `text` names, with the temporal rules that an agent has among its options."""
    loop = load_loop(text)
    if isinstance(loop, Agent):
        return loop.graph, rules_of(loop.options.get("rules", ()))
    return loop, Rules()
