"""GL11: the user's state can be written to a journal, and read again as what it was.

Events are graphloop's own and are written with a version. The state's type is walked: what no
file can hold is an error, and only what is known to come back as it was is proven. Then a state is
made, written and read once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar, cast

from pydantic.errors import PydanticUserError

from ..stores import Codec
from .ground import Ground
from .report import Finding, Unknown
from .samples import sample
from .written import named_type, unsure, unwritten

__all__ = ["unwritable"]

S = TypeVar("S")


def unwritable(ground: Ground[S]) -> Iterator[Finding | Unknown]:
    """Yield what of the state no journal can hold, and what may not come back as it was."""
    state_type = cast("object", getattr(ground.graph, "state_type", None))
    if state_type is None:
        return
    place = named_type(state_type)
    problems = list(dict.fromkeys(unsure(state_type, place)))
    yield from problems
    if not any(isinstance(one, Finding) for one in problems):
        yield from _round_trip(state_type, place, known=not problems)


def _round_trip(state_type: object, place: str, *, known: bool) -> Iterator[Finding | Unknown]:
    try:
        codec = Codec(cast("type[object]", state_type))
    except PydanticUserError as error:
        yield unwritten(place, f"has no written form: {error.message}")
        return
    try:
        state = _made(state_type)
    except Exception as error:  # noqa: BLE001 - whatever the user's own class raises.
        if known:
            yield Unknown(
                "GL11",
                f"no {place} could be made, to be written and read once ({error}): give its fields "
                "defaults, or let it take what its types allow.",
            )
        return
    problem, _, fix = codec.misfit(state).partition(". Fix: ")
    if problem:
        yield replace(unwritten(place, f"{problem}."), fix=f"{fix}.")


def _made(state_type: object) -> object:
    if isinstance(state_type, type):
        make = cast("Callable[[], object]", state_type)
        try:
            return make()
        except Exception:  # noqa: BLE001 - it needs arguments, or fails without.
            return sample(state_type)
    return sample(state_type)
