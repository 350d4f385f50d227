"""Data: state that is read, written, and kept by journals (GL6, GL11).

A field whose default is None is unwritten when a run starts, every other is written. The value
of a field at the end is the run's result: a write is in vain only if another one always replaces it
before any node reads it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Final, TypeAlias, TypeVar, cast

from msgspec import Struct, structs
from pydantic import BaseModel
from pydantic.errors import PydanticUserError

from ..contract import Contract
from ..outcomes import Aborted, Failed
from ..stores import Codec
from .proof_graph import (
    END,
    Arc,
    ProofGraph,
    TablePath,
    breadth_first,
    quote_names,
    shortest_path,
)
from .report import Finding, Unknown
from .run_search import Exclusions
from .sample_answers import sample
from .written import named_type, unsure, unwritten

__all__ = ["find_field_faults", "find_state_faults", "unwritten_at_first"]

S = TypeVar("S")

Fields: TypeAlias = Mapping[str, frozenset[str]]
"""For every node that runs arrive at, fields of the state."""

NONE: Final[frozenset[str]] = frozenset()
BADLY: Final = frozenset({Aborted, Failed})


def find_field_faults(ground: ProofGraph[S]) -> Iterator[Finding | Unknown]:
    """Yield what is read too early and what is written in vain, or why that is unknown."""
    state_type = cast("object", getattr(ground.node_graph, "state_type", None))
    if state_type is None:
        return
    reached, contracts = ground.reached, ground.contracts
    dark = tuple(
        name
        for name in reached
        if (one := contracts[name]) is None or one.reads is None or one.writes is None
    )
    if dark:
        reason = f"the fields of the state that {quote_names(dark)} reads and writes are not known."
        yield Unknown("GL6", reason)
        return
    known = {name: one for name in reached if (one := contracts[name]) is not None}
    reads = {name: one.reads or NONE for name, one in known.items()}
    writes = {name: one.fields_written for name, one in known.items()}
    first = unwritten_at_first(state_type) if isinstance(state_type, type) else ()
    for field in first:
        if any(field in one for one in reads.values()):
            yield from _too_early(ground, field, reads, known)
    for name in reached:
        for field in sorted(writes[name]):
            if _is_in_vain(ground, name, field, reads, known):
                yield _vain(ground, name, field)


def unwritten_at_first(state_type: type[object]) -> tuple[str, ...]:
    """Return the fields of a state type whose default is None."""
    if issubclass(state_type, BaseModel):
        return tuple(
            name
            for name, one in state_type.model_fields.items()
            if not one.is_required() and one.get_default() is None
        )
    if is_dataclass(state_type):
        return tuple(
            one.name
            for one in fields(state_type)
            if one.default is None and one.default_factory is MISSING
        )
    if issubclass(state_type, Struct):
        return tuple(one.name for one in structs.fields(state_type) if one.default is None)
    return ()


def _too_early(
    ground: ProofGraph[S], field: str, reads: Fields, known: Mapping[str, Contract]
) -> Iterator[Finding | Unknown]:
    def steps(name: str) -> list[tuple[Arc, str]]:
        return [(arc, arc.target) for arc in _unwritten(ground, name, field, known)]

    starts = [ground.start]
    for reader in breadth_first(starts, steps):
        if reader == END or field not in reads[reader]:
            continue

        def found(barred: Exclusions, reader: str = reader) -> TablePath | None:
            return shortest_path(starts, steps, lambda name, _: name == reader, barred)

        def tell(path: TablePath, reader: str = reader) -> Finding:
            return ground.finding(
                "GL6",
                f"reads {field!r} of the state, which nothing has written on this way.",
                f"write {field!r} on the way to {reader!r}, or give it a default other than None.",
                node=reader,
                path=path,
            )

        yield ground.confirmed(found, tell)


def _unwritten(
    ground: ProofGraph[S], name: str, field: str, known: Mapping[str, Contract]
) -> list[Arc]:
    """Return the ways from a node by which a run may leave without having written a field."""
    arcs = ground.arcs.get(name, ())
    return [arc for arc in arcs if field not in known[name].written(arc.outcome)]


def _is_in_vain(
    ground: ProofGraph[S], name: str, field: str, reads: Fields, known: Mapping[str, Contract]
) -> bool:
    """Whether what a node writes is always overwritten before it is read, or the run's result."""
    failed = {one for one in _unwritten(ground, name, field, known) if one.outcome in BADLY}
    todo = deque(arc.target for arc in ground.arcs.get(name, ()) if arc not in failed)
    seen: set[str] = set()
    while todo:
        here = todo.popleft()
        if here == END or field in reads[here]:
            return False
        if here in seen:
            continue
        seen.add(here)
        # A run that failed has no result.
        arcs = _unwritten(ground, here, field, known)
        if field in known[here].fields_written:
            arcs = [arc for arc in arcs if arc.target != END or arc.outcome not in BADLY]
        todo += [arc.target for arc in arcs]
    return True


def _vain(ground: ProofGraph[S], name: str, field: str) -> Finding:
    return ground.finding(
        "GL6",
        f"what it writes to {field!r} of the state is always overwritten before it is read.",
        f"do not write {field!r} here, or read it before it is written again.",
        node=name,
        severity="warning",
    )


def find_state_faults(ground: ProofGraph[S]) -> Iterator[Finding | Unknown]:
    """Yield what of the state no journal can hold, and what may not come back as it was."""
    state_type = cast("object", getattr(ground.node_graph, "state_type", None))
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
