"""`graphloop check`: what is proven of a graph, and what is wrong with it."""

from __future__ import annotations

import sys

from ..errors import GraphError
from ..proofs.report import Report
from .status import Status
from .target import load_graph

__all__ = ["check"]


def check(target: str, *, as_json: bool) -> Status:
    """Print the report on `target`; a graph that cannot even be built has one, too.

    Raises:
        ConfigError: the target cannot be loaded for another reason than its graph's table.
    """
    try:
        report = load_graph(target).check()
    except GraphError as error:
        report = Report.from_error(error)
    sys.stdout.write(f"{report.to_json() if as_json else report}\n")
    return Status.OK if report.ok else Status.FAILED
