"""`graphloop draw`: the diagram of a graph, printed from the table that runs."""

from __future__ import annotations

import sys

from .status import Status
from .target import load_graph

__all__ = ["draw"]


def draw(target: str, output: str | None) -> Status:
    """Draw `target` into the file `output`; as Mermaid on stdout if that is None or `-`.

    Raises:
        ConfigError: the target cannot be loaded, or the file cannot be drawn.
    """
    graph = load_graph(target)
    if output is None or output == "-":
        sys.stdout.write(graph.mermaid().rstrip("\n") + "\n")
        return Status.OK
    path = graph.save(output)
    sys.stdout.write(
        f"{path}: graph {graph.name!r}, {len(graph.nodes)} nodes, {len(graph.edges)} edges\n"
    )
    return Status.OK
