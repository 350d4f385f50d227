"""`graphloop check`: what is proven of a graph, and what is wrong with it."""

from __future__ import annotations

import sys
from pathlib import Path

from ..errors import ConfigError, GraphError
from ..front.agent import Agent
from ..overlays.proof import proof_marks
from ..proofs.report import Report
from ..proofs.sarif import to_sarif
from ..views.render import save
from .status import Status
from .target import load_loop

__all__ = ["check"]


def check(
    target: str, *, as_json: bool, sarif: str | None = None, draw: str | None = None
) -> Status:
    """Print the report on `target`; a graph that cannot even be built has one, too.

    Args:
        target: what to check.
        as_json: whether the report is JSON.
        sarif: a file for the report as SARIF; `-` prints it in place of the report.
        draw: a file for the graph with the report laid over it.

    Raises:
        ConfigError: the target cannot be loaded for another reason than its graph's table, or the
            file cannot be written.
    """
    try:
        loop = load_loop(target)
        graph, rules = (
            (loop.graph, loop.options.get("rules", ())) if isinstance(loop, Agent) else (loop, ())
        )
        report = graph.check(rules=rules)
        if draw is not None:
            save(graph, draw, proof_marks(graph, report))
    except GraphError as error:
        # There is no graph to draw.
        report = Report.from_error(error)
    if sarif is not None and sarif != "-":
        _write(Path(sarif), to_sarif([report]))
    text = to_sarif([report]) if sarif == "-" else report.to_json() if as_json else str(report)
    sys.stdout.write(f"{text}\n")
    return Status.OK if report.ok else Status.FAILED


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--sarif: {str(path)!r} cannot be written: {error}") from error
