"""sequence_text: what was said in a run, for terminals: lifelines on the left, words beside them.

A line is as long as the terminal is wide; the arrow says who told whom.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from .drawing import visible
from .sequence import Said

__all__ = ["sequence_text"]

WIDTH: Final = 80
GAP: Final = 4
"""How far apart lifelines stand."""

LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def sequence_text(said: Sequence[Said], width: int = WIDTH) -> str:
    """Return a line a thing said, at most `width` columns where there is room for words at all."""
    return "".join(f"{line.rstrip()}\n" for line in _lines(said, width))


def _lines(said: Sequence[Said], width: int) -> Iterator[str]:
    parties = list(dict.fromkeys(party for one in said for party in (one.source, one.target)))
    places = {party: place for place, party in enumerate(parties)}
    for party, place in places.items():
        kind = "" if party.kind == party.name else f"{party.kind} "
        yield _cut(f"{_letter(place)}  {kind}{visible(party.name)}", width)
    yield ""
    yield "".join(f"{_letter(place):<{GAP}}" for place in places.values())
    room = max(16, width - GAP * len(parties) - 9)
    for one in said:
        arrow = _arrow(places[one.source], places[one.target], len(parties))
        yield f"{arrow}{one.at:7.2f}  {_cut(visible(one.words), room)}"


def _arrow(source: int, target: int, count: int) -> str:
    """Return the lifelines with an arrow from one to another; only a party may tell itself."""
    low, high = sorted((source * GAP, target * GAP))
    cells = [("│" if at % GAP == 0 else " ") for at in range(count * GAP)]
    for at in range(low, high + 1):
        cells[at] = "─" if at % GAP else "┼"
    cells[low], cells[high] = "├", "┤"
    if source < target:
        cells[high - 1] = "▶"
    elif target < source:
        cells[low + 1] = "◀"
    else:
        cells[low] = "●"
    return "".join(cells)


def _letter(place: int) -> str:
    """Return A to Z, then A1, B1 and so on."""
    again, letter = divmod(place, len(LETTERS))
    return f"{LETTERS[letter]}{again or ''}"


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"
