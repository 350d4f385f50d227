"""Arguments: checks of the values that callers pass to `check` and `bound`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar, cast

from ..errors import ConfigError, nearest
from ..graph import NodeGraph
from ..policy import Named
from .report import PROPERTIES

__all__ = ["codes", "graph_given", "reasons", "tool_names"]

S = TypeVar("S")


def graph_given(asking: str, graph: NodeGraph[S]) -> NodeGraph[S]:
    """Return `graph` unchanged after a check of its type; callers often pass an Agent by mistake.

    Raises:
        ConfigError: `graph` is not a graph. The message begins with `asking`, the function's name.
    """
    value = cast("object", graph)
    if isinstance(value, NodeGraph):
        return graph
    has_graph = isinstance(getattr(value, "graph", None), NodeGraph)
    fix = "pass its `graph`" if has_graph else "pass a Graph, or the `graph` of an Agent"
    raise ConfigError(f"{asking}: expected a Graph, found {value!r:.80}. Fix: {fix}")


def reasons(ignore: Mapping[tuple[str, str], str] | None) -> dict[tuple[str, str], str]:
    """Return a copy of the `ignore` argument: reasons for suppressing findings, by node and code.

    Raises:
        ConfigError: a key is not a pair of a node's name and a property code.
    """
    for key in ignore or {}:
        if not isinstance(key, tuple) or len(key) != 2:  # pyright: ignore[reportUnnecessaryIsInstance, reportUnnecessaryComparison]
            form = 'ignore={("node", "GL6"): "reason"}'
            raise ConfigError(
                f"ignore: expected a node and a code as key, found {key!r:.80}. Fix: {form}"
            )
    return dict(ignore or {})


def codes(asking: str, given: Iterable[str]) -> tuple[str, ...]:
    """Return property codes such as "GL6" as a tuple; a single code may be given as text.

    Raises:
        ConfigError: a code is unknown. The message begins with `asking`, the option's name.
    """
    # A type checker accepts a single text too, since it is an iterable of letters.
    listed = (given,) if isinstance(given, str) else tuple(given)
    for code in listed:
        if code not in PROPERTIES:
            known = ", ".join(PROPERTIES)
            raise ConfigError(
                f"{asking}: there is no property {code!r}; there are {known}."
                f"{nearest(code, PROPERTIES)}"
            )
    return listed


def tool_names(asking: str, given: Iterable[str | Named]) -> tuple[str, ...]:
    """Return the names of tools that are given as objects or as names.

    Raises:
        ConfigError: `given` is a single text. The message begins with `asking`, the option's name.
    """
    if isinstance(given, str):
        raise ConfigError(
            f"{asking}: expected tools or their names, found {given!r:.80}. Fix: tools=[...]"
        )
    return tuple(tool if isinstance(tool, str) else tool.name for tool in given)
