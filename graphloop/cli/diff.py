"""`graphloop diff`: what was changed in a graph, and whether it promises less now."""

from __future__ import annotations

from collections.abc import Sequence

from ..front.agent import Agent
from ..front.graph import Graph
from ..overlays.changes import changes_picture
from ..proofs.compare import compare
from ..topology.registration import registry
from ..topology.temporal_form import rules_of_texts
from ..views.render import save_picture, written
from .draw import theme_of
from .lines import safe_json
from .output import PICTURES, printed, put, refuse_mixed, tell_found
from .request import refuse_blanks
from .status import Status
from .target import load_loop

__all__ = ["diff"]


def diff(
    before: str,
    after: str,
    *,
    as_json: bool = False,
    output: str | None = None,
    theme: str = "light",
    rules: Sequence[str] = (),
) -> Status:
    """Print how the graph `after` differs from the graph `before`; failed if it promises less.

    Args:
        before: the earlier graph, as a target.
        after: the later graph.
        as_json: whether the comparison is printed as JSON.
        output: a file to draw it into; on stdout, and the comparison is told on stderr then.
        theme: the name of the drawing's theme.
        rules: temporal rules that are decided on both graphs, each a text.

    Raises:
        ConfigError: a target cannot be loaded, the file cannot be drawn, or an option cannot work.
        GraphError: one of the graphs has no correct table.
    """
    refuse_blanks({"BEFORE": before, "AFTER": after, "--output": output})
    refuse_blanks({f"--rule {at}": one for at, one in enumerate(rules, 1)})
    colours = theme_of(theme)
    drawn = printed("-o", output, PICTURES)
    refuse_mixed({"--json": as_json, "-o": drawn is not None})
    own = rules_of_texts(rules, "--rule")
    old, new = _loaded(before), _loaded(after)
    found = compare(old, new, own)
    if output is not None:
        shown = changes_picture(old, new, found)
        if drawn is None:
            save_picture(shown, output, colours)
        else:
            put(written(shown, drawn, colours), drawn)
    tell_found(safe_json(found.to_json()) if as_json else f"{found}", beside=drawn)
    return Status.FAILED if found.weaker else Status.OK


def _loaded(text: str) -> Graph[None]:
    # Both targets may register tools of the same names.
    with registry.set_back():
        loop = load_loop(text)
    return loop.graph if isinstance(loop, Agent) else loop
