"""ends: one END for each node that leads to it, where so many do that their lines hide the rest.

The same END, drawn several times, for the notations that are laid out: a hundred lines that all run
to one place push everything else apart. Where the main path ends, there stays the one END that
tells what is known of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from .picture import Picture, Shape

__all__ = ["ENDS_MAX", "with_ends"]

ENDS_MAX: Final = 12
"""How many lines may lead to one END."""

_LAST: Final = frozenset({"main", "leaving"})


def with_ends(drawn: Picture) -> Picture:
    """Return a picture with an END of its own for each node, if there are too many for one."""
    end = drawn.shapes[-1]
    into = [one for one in drawn.strokes if one.target == end.id and one.role not in _LAST]
    if len(into) <= ENDS_MAX:
        return drawn
    own = {one.source: f"{end.id}_{number}" for number, one in enumerate(into)}
    strokes = [
        replace(one, target=own[one.source])
        if one.target == end.id and one.role not in _LAST
        else one
        for one in drawn.strokes
    ]
    ends = [Shape(place, end.words[:1], None) for place in own.values()]
    return replace(drawn, shapes=(*drawn.shapes[:-1], *ends, end), strokes=tuple(strokes))
