"""levels: one graph as boxes (`phase`), as its table (`node`), or with all details (`detail`).

`detail` draws each node as a box with all that its contract says, on which the proofs rest, and
draws the child graphs. Marks lie over a graph at every level.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from os import PathLike
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

from ..contract import ChildContract, Contract, contract_of
from ..errors import ConfigError, nearest
from ..graph import NodeGraph
from ..node_protocol import Node
from ..outcomes import Outcome, outcome_name
from .drawing import notes
from .family import Family, known_family
from .marks import Marks
from .phases import phase_picture
from .pictures import Draw, Picture, family_picture, node_picture
from .render import is_machine, save, save_picture
from .theme import LIGHT, Theme

__all__ = ["DRAWS", "LEVELS", "Level", "details", "draw", "level_of", "level_picture"]

S = TypeVar("S")

Level: TypeAlias = Literal["phase", "node", "detail"]
"""How much of a graph is drawn."""

LEVELS: Final[tuple[Level, ...]] = get_args(Level)

_EXPAND_MAX: Final = 16
"""How many graphs deep children are drawn."""

_WIDTH: Final = 44
"""How many characters a line in a node has before it is broken at a comma."""

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
        f"level: expected {', '.join(LEVELS)}, found {name!r}.{nearest(name, LEVELS)}"
    )


def level_picture(
    graph: NodeGraph[Any] | Family,
    level: Level = "node",
    marks: Marks = _PLAIN,
    *,
    expand: bool = False,
) -> Picture:
    """Return the diagram of a graph at a level.

    Args:
        graph: the graph, or the graph with its agents.
        level: how much of it is drawn.
        marks: the overlay.
        expand: whether child graphs are drawn too; `detail` always draws them.
    """
    family = known_family(graph) if isinstance(graph, NodeGraph) else graph
    deep = _EXPAND_MAX if expand or level == "detail" else 0
    return family_picture(family, marks, expand=deep, draw=DRAWS[level])


def draw(
    graph: NodeGraph[Any],
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
    if not is_machine(path):
        save_picture(level_picture(graph, seen, expand=expand), path, theme)
        return
    if seen != "node" or expand:
        raise ConfigError(
            f"level: expected 'node' for a state machine, which has all nodes and no agents of "
            f"theirs, found {seen!r}{' with agents' if expand else ''}. Fix: leave it out."
        )
    save(graph, path)


def details(node: Node[S, Outcome]) -> Iterator[str]:
    """Yield the facts about a node: its kind, its contract, the fields of its outcomes."""
    yield f"{node.kind}: {type(node).__name__}"
    contract = contract_of(node)
    if contract is None:
        yield "promises nothing"
    else:
        for line in (*_effects(contract), *_data(contract), *_caps(contract)):
            yield from _broken(line)
        for child in contract.children:
            yield from _broken(_child(child))
    for note in notes(node):
        yield from _broken(note)
    for outcome in sorted(node.outcomes, key=outcome_name):
        if carried := _fields(outcome):
            yield from _broken(f"{outcome_name(outcome)}({carried})")


def _detailed_picture(
    graph: NodeGraph[Any], marks: Marks, prefix: str
) -> tuple[Picture, Mapping[str, str]]:
    drawn, ids = node_picture(graph, marks, prefix)
    names = {place: name for name, place in ids.items()}
    shapes = [
        shape
        if shape.kind is None
        else replace(shape, notes=(), details=tuple(details(graph.nodes[names[shape.id]])))
        for shape in drawn.shapes
    ]
    return replace(drawn, shapes=tuple(shapes)), ids


DRAWS: Final[Mapping[Level, Draw]] = {
    "phase": phase_picture,
    "node": node_picture,
    "detail": _detailed_picture,
}
"""The function that draws one graph at each level."""


def _effects(contract: Contract) -> Iterator[str]:
    if contract.model_calls is None:
        yield "may ask models any number of times"
    elif contract.model_calls:
        times = "once" if contract.model_calls == 1 else f"{contract.model_calls:,} times"
        yield f"asks a model {times} at most"
    if contract.tools:
        yield "runs tools"
    if contract.asks:
        yield "may wait for a person"


def _data(contract: Contract) -> Iterator[str]:
    written = None if contract.writes is None else contract.fields_written
    for word, touched in (("reads", contract.reads), ("writes", written)):
        if touched is None:
            yield f"{word} anything of the state"
        elif touched:
            yield f"{word} {', '.join(sorted(touched))}"


def _caps(contract: Contract) -> Iterator[str]:
    for outcome, cap in sorted(contract.caps.items(), key=lambda item: outcome_name(item[0])):
        times = "never" if cap.never else f"at most {cap.times:,}x"
        since = f" in a {'/'.join(sorted(cap.resets))}" if cap.resets and not cap.never else ""
        yield f"{outcome_name(outcome)} {times}{since}"


def _child(child: ChildContract) -> str:
    runs = "any number of times" if child.runs is None else f"{child.runs:,}x"
    words = [f"runs {child.name}" if child.runs == 1 else f"runs {child.name} {runs} at most"]
    if child.many:
        words.append("side by side")
    if child.budget is not None:
        words.append("on a budget of its own")
    if child.gate_rules is not None:
        words.append("by rules of its own")
    for word, touched in (("reads", child.reads), ("writes", child.writes)):
        if touched:
            words.append(f"{word} {' '.join(sorted(touched))}")
    return ", ".join(words)


def _fields(outcome: type[Outcome]) -> str:
    """Return the fields of an outcome with their annotations."""
    if not is_dataclass(outcome):
        return ""
    return ", ".join(f"{each.name}: {_type(each.type)}" for each in fields(outcome))


def _type(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _broken(line: str) -> Iterator[str]:
    """Yield a line in pieces that are short enough, as far as it has commas."""
    row = ""
    for word in line.split(", "):
        joined = f"{row}, {word}" if row else word
        if row and len(joined) > _WIDTH:
            yield f"{row},"
            joined = f"  {word}"
        row = joined
    yield row
