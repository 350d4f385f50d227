"""Arguments: the values that `check` and `bound` are given, looked at first."""

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
    """Return the graph, if it is one.

    Args:
        asking: what is given it, for messages.
        graph: what is given; types can be ignored.

    Raises:
        ConfigError: it is none.
    """
    given = cast("object", graph)
    if isinstance(given, NodeGraph):
        return graph
    has_one = isinstance(getattr(given, "graph", None), NodeGraph)
    fix = "pass its `graph`" if has_one else "pass a Graph, or the `graph` of an Agent"
    raise ConfigError(f"{asking}: expected a Graph, found {given!r:.80}. Fix: {fix}")


def reasons(ignore: Mapping[tuple[str, str], str] | None) -> dict[tuple[str, str], str]:
    """Return why findings are set aside, by node and code; nothing for None.

    Raises:
        ConfigError: a key is no node with a code, or a reason is no text.
    """
    form = 'ignore={("node", "GL6"): "reason"}'
    given = cast("object", ignore)
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"ignore: expected reasons by node and code, found {given!r:.80}. Fix: {form}"
        )
    told: dict[tuple[str, str], str] = {}
    for key, why in cast("Mapping[object, object]", given).items():
        match key:
            case (str(node), str(code)):
                pass
            case _:
                raise ConfigError(
                    f"ignore: expected a node and a code as key, found {key!r:.80}. Fix: {form}"
                )
        if not isinstance(why, str):
            raise ConfigError(
                f"ignore[{node!r}, {code!r}]: expected the reason as text, found {why!r:.80}. "
                f"Fix: {form}"
            )
        told[node, code] = why
    return told


def codes(asking: str, given: Iterable[str]) -> tuple[str, ...]:
    """Return codes of properties.

    Raises:
        ConfigError: one is of no property.
    """
    found = cast("object", given)
    if isinstance(found, str):
        raise ConfigError(f"{asking}: expected codes, found the text {found!r}. Fix: ({found!r},)")
    if not isinstance(found, Iterable):
        raise ConfigError(f"{asking}: expected codes, such as ('GL2',); found {found!r:.80}")
    told = tuple(given)
    for one in told:
        if not isinstance(one, str) or one not in PROPERTIES:  # pyright: ignore[reportUnnecessaryIsInstance] - users are not checked.
            known = ", ".join(PROPERTIES)
            raise ConfigError(
                f"{asking}: there is no property {one!r}; there are {known}."
                f"{nearest(str(one), PROPERTIES)}"
            )
    return told


def tool_names(asking: str, given: Iterable[str | Named]) -> tuple[str, ...]:
    """Return the names of tools that are given as such, or as tools.

    Raises:
        ConfigError: it is one text, or one of them has no name.
    """
    found = cast("object", given)
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise ConfigError(
            f"{asking}: expected tools or their names, found {found!r:.80}. Fix: tools=[...]"
        )
    told: list[str] = []
    for one in given:
        name = one if isinstance(one, str) else getattr(cast("object", one), "name", None)
        if not isinstance(name, str):
            raise ConfigError(
                f"{asking}: expected a tool or its name, found {one!r:.80}. Fix: tools=[...]"
            )
        told.append(name)
    return tuple(told)
