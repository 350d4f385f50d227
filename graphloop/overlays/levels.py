"""levels: one graph from far, from near, and with all that is known of it.

From far (`phase`), loops and agents are boxes, or the phases of a loop are; near by (`node`) stand
the nodes of the table; `detail` tells what each of them promises, and draws what they run. Whatever
is laid over a graph lies over it at every level.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, Final, Literal, TypeAlias, get_args

from ..errors import ConfigError, nearest
from ..graph import Graph
from ..views.details import detailed_picture
from ..views.family import Family
from ..views.folded import folded_picture
from ..views.marks import Marks
from ..views.picture import Draw, Picture, family_picture, node_picture
from ..views.render import is_machine, save, save_picture
from ..views.theme import LIGHT, Theme
from .phases import phases

__all__ = ["DRAWS", "EXPAND_MAX", "LEVELS", "Level", "draw", "level_of", "level_picture"]

Level: TypeAlias = Literal["phase", "node", "detail"]
"""How near a graph is seen."""

LEVELS: Final[tuple[Level, ...]] = get_args(Level)

EXPAND_MAX: Final = 16
"""How many graphs deep children are drawn."""

_PLAIN: Final = Marks()


def level_of(name: str) -> Level:
    """Return the level of that name.

    Raises:
        ConfigError: there is none.
    """
    for level in LEVELS:
        if level == name:
            return level
    raise ConfigError(
        f"expected a level of {', '.join(LEVELS)}, found {name!r}.{nearest(name, LEVELS)}"
    )


def level_picture(
    graph: Graph[Any] | Family,
    level: Level = "node",
    marks: Marks = _PLAIN,
    *,
    expand: bool = False,
) -> Picture:
    """Return what a diagram of a graph shows at a level.

    Args:
        graph: the graph; with its agents, where they are known.
        level: how near it is seen.
        marks: what is laid over it.
        expand: whether the graphs that its nodes run are drawn too; at `detail` they always are.
    """
    family = Family(graph) if isinstance(graph, Graph) else graph
    deep = EXPAND_MAX if expand or level == "detail" else 0
    return family_picture(family, marks, expand=deep, draw=DRAWS[level])


def draw(
    graph: Graph[Any],
    path: str | PathLike[str],
    *,
    level: Level = "node",
    theme: Theme = LIGHT,
    expand: bool = False,
) -> None:
    """Write the diagram of a graph at a level to a file, by its suffix; see `render.save`.

    Raises:
        ConfigError: as `save`; there is no such level; or the suffix is that of a state machine,
            which has all nodes and no other level.
    """
    seen = level_of(level)
    if is_machine(path):
        if seen != "node" or expand:
            raise ConfigError(
                f"expected level='node' for a state machine, which has all nodes and no agents of "
                f"theirs, found {seen!r}{' with agents' if expand else ''}: leave it out."
            )
        save(graph, path)
    else:
        save_picture(level_picture(graph, seen, expand=expand), path, theme)


def _phase_picture(
    graph: Graph[Any], marks: Marks, prefix: str
) -> tuple[Picture, Mapping[str, str]]:
    return folded_picture(graph, phases(graph), marks, prefix)


DRAWS: Final[Mapping[Level, Draw]] = {
    "phase": _phase_picture,
    "node": node_picture,
    "detail": detailed_picture,
}
"""What draws one graph at each level."""
