"""Data: reads and writes of state fields (GL6), and journals of the state (GL11).

When a run starts, a field is unwritten if its default is None; every other field is written. END
counts as a read of each field, since the state is part of the run's result. A write is in vain if,
on every path, another write replaces the value before a node reads it.
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
from ..states import reduced_fields
from ..stores import Codec
from .proof_graph import END, Arc, ProofGraph, TablePath, breadth_first, quote_names, shortest_path
from .report import Finding, Unknown
from .run_search import Exclusions
from .sample_answers import sample
from .state_types import type_name, unsafe_parts, unserialisable

__all__ = ["find_field_faults", "find_state_faults", "initially_unwritten"]

S = TypeVar("S")

_Contracts: TypeAlias = Mapping[str, Contract]
"""The contract of each reachable node, by the node's name."""

FAILURES: Final = frozenset({Aborted, Failed})


def find_field_faults(graph: ProofGraph[S]) -> Iterator[Finding | Unknown]:
    """Yield a finding or unknown for each early read or useless write of a field (GL6)."""
    state_type = _state_type(graph)
    if state_type is None:
        return
    reduced = reduced_fields(state_type)
    known = {name: _with_reducer_reads(graph.contracts[name], reduced) for name in graph.reached}
    contracts = {
        name: contract
        for name, contract in known.items()
        if contract is not None and contract.reads is not None and contract.writes is not None
    }
    silent = tuple(name for name in known if name not in contracts)
    if silent:
        reason = (
            f"the fields of the state that {quote_names(silent)} read and write are unknown: give "
            "`reads=` and `writes=`."
        )
        yield Unknown("GL6", reason)
        return
    for field in initially_unwritten(state_type) if isinstance(state_type, type) else ():
        yield from _early_reads(graph, field, contracts)
    for name in graph.reached:
        for field in sorted(contracts[name].fields_written):
            if _is_in_vain(graph, name, field, contracts):
                yield graph.finding(
                    "GL6",
                    f"what it writes to {field!r} of the state is always overwritten before it is "
                    "read.",
                    f"do not write {field!r} here, or read it before it is written again.",
                    node=name,
                    severity="warning",
                )


def _with_reducer_reads(contract: Contract | None, reduced: frozenset[str]) -> Contract | None:
    """Return a contract that also reads the fields whose old value its writes are combined with."""
    if contract is None or contract.reads is None:
        return contract
    combined = contract.fields_written & reduced if contract.children else frozenset[str]()
    return replace(contract, reads=contract.reads | combined) if combined else contract


def _state_type(graph: ProofGraph[S]) -> object:
    """Return the type of the user's state; None if the graph declares no state type."""
    return cast("object", getattr(graph.node_graph, "state_type", None))


def initially_unwritten(state_type: type[object]) -> tuple[str, ...]:
    """Return the names of the fields of a state type whose default is None."""
    if issubclass(state_type, BaseModel):
        infos = state_type.model_fields.items()
        defaults = [(n, info.get_default()) for n, info in infos if not info.is_required()]
    elif is_dataclass(state_type):
        plain = [field for field in fields(state_type) if field.default_factory is MISSING]
        defaults = [(field.name, field.default) for field in plain]
    elif issubclass(state_type, Struct):
        defaults = [(field.name, field.default) for field in structs.fields(state_type)]
    else:
        defaults = []
    return tuple(name for name, default in defaults if default is None)


def _early_reads(
    graph: ProofGraph[S], field: str, contracts: _Contracts
) -> Iterator[Finding | Unknown]:
    """Yield a finding or unknown for each node that may read `field` before a write (GL6)."""

    def arcs_from(name: str) -> list[tuple[Arc, str]]:
        return [(arc, arc.target) for arc in _arcs_without_write(graph, name, field, contracts)]

    for node in breadth_first([graph.start], arcs_from):
        if node == END or field not in (contracts[node].reads or ()):
            continue

        def path_without(excluded: Exclusions, node: str = node) -> TablePath | None:
            return shortest_path([graph.start], arcs_from, lambda name, _: name == node, excluded)

        def finding_of(path: TablePath, node: str = node) -> Finding:
            return graph.finding(
                "GL6",
                f"reads {field!r} of the state, which nothing has written on this way.",
                f"write {field!r} on the way to {node!r}, or give it a default other than None.",
                node=node,
                path=path,
            )

        yield graph.confirmed(path_without, finding_of)


def _arcs_without_write(
    graph: ProofGraph[S], name: str, field: str, contracts: _Contracts
) -> list[Arc]:
    """Return the transitions out of a node that may leave `field` unwritten."""
    arcs = graph.arcs.get(name, ())
    return [arc for arc in arcs if field not in contracts[name].written(arc.outcome)]


def _is_in_vain(graph: ProofGraph[S], name: str, field: str, contracts: _Contracts) -> bool:
    """Return whether every path from node `name` overwrites its write to `field` before a read."""
    unwritten = _arcs_without_write(graph, name, field, contracts)
    failed = {arc for arc in unwritten if arc.outcome in FAILURES}
    queue = deque(arc.target for arc in graph.arcs.get(name, ()) if arc not in failed)
    seen: set[str] = set()
    while queue:
        node = queue.popleft()
        if node == END or field in (contracts[node].reads or ()):
            return False
        if node in seen:
            continue
        seen.add(node)
        arcs = _arcs_without_write(graph, node, field, contracts)
        if field in contracts[node].fields_written:
            # A failed run returns no result, so END reads no field after a failure.
            arcs = [arc for arc in arcs if arc.target != END or arc.outcome not in FAILURES]
        queue += [arc.target for arc in arcs]
    return True


def find_state_faults(graph: ProofGraph[S]) -> Iterator[Finding | Unknown]:
    """Yield a finding or unknown for each part of the state that a journal may change (GL11)."""
    state_type = _state_type(graph)
    if state_type is None:
        return
    place = type_name(state_type)
    problems = list(dict.fromkeys(unsafe_parts(state_type, place)))
    yield from problems
    if not any(isinstance(problem, Finding) for problem in problems):
        yield from _round_trip(state_type, place, safe=not problems)


def _round_trip(state_type: object, place: str, *, safe: bool) -> Iterator[Finding | Unknown]:
    """Yield a fault if a sample of the state changes when a journal writes and reads it (GL11).

    `safe` says that the state type has no other fault; only then is a missing sample reported.
    """
    try:
        codec = Codec(cast("type[object]", state_type))
    except PydanticUserError as error:
        yield unserialisable(place, f"has no written form: {error.message}")
        return
    try:
        state = _sample_state(state_type)
    except Exception as error:  # noqa: BLE001 - the class is the user's
        if safe:
            yield Unknown(
                "GL11",
                f"no {place} could be made, to be written and read once ({error}): give its fields "
                "defaults, or let it take what its types allow.",
            )
        return
    problem, _, fix = codec.misfit(state).partition(". Fix: ")
    if problem:
        yield replace(unserialisable(place, f"{problem}."), fix=f"{fix}.")


def _sample_state(state_type: object) -> object:
    """Return a state made without arguments, or else one with sample values."""
    if isinstance(state_type, type):
        try:
            return cast("Callable[[], object]", state_type)()
        except Exception:  # noqa: BLE001 - the class needs arguments, or fails without
            return sample(state_type)
    return sample(state_type)
