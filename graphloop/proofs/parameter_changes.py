"""Parameter changes: the parameters whose text form differs between two graphs.

The text form of a function or class is its name; that of any other value has all its fields. So two
functions with the same name count as equal: the comparison does not read their code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast, final

from msgspec import Struct

from ..graph import NodeGraph
from ..limits import AllOf, Not
from ..node_protocol import Node
from ..nodes import Gate, Router
from ..outcomes import Outcome, outcome_name
from ..tools import Tool
from .proof_graph import TablePath, nodes_on
from .report import witness_text

__all__ = ["Change", "Effect", "is_guard", "node_changes", "value_changes", "written"]

S = TypeVar("S")

Effect: TypeAlias = Literal["weaker", "changed", "stronger"]

LIMITS: Final = {
    *("max_steps", "max_consecutive_tool_errors", "max_consecutive_denials", "max_pauses"),
    *("max_items", "max_tokens", "max_agent_depth", "times", "count", "tokens_max", "usd_max"),
    *("seconds_max", "ttl_s", "timeout_s", "step_timeout_s", "approval_ttl_s", "attempts_max"),
    *("tokens", "usd", "seconds", "tool_calls", "agent_calls", "retries", "caps"),
}
"""Limits: a higher value allows more, and None means no limit."""

GUARDING: Final = {
    *("active_tools", "approve_tool_call", "done_when", "hold", "needs_approval"),
    *("output_type", "price", "prices", "reconcile", "signed", "stop_when", "verify"),
}
"""Parameters that restrict a run; a change in any part of their value may weaken a guard."""

COLLECTED: Final = {"checks", "conditions", "stop_when"}
"""Parameters that are lists of restrictions: an added member only makes a graph stricter."""


@final
@dataclass(frozen=True, slots=True)
class Change:
    """A difference between two graphs.

    Attributes:
        effect: whether the later graph guarantees less (`weaker`) or more (`stronger`), or whether
            this is unclear (`changed`).
        subject: `guard`, `acts`, `gate`, `bound`, `rule`, `node`, `tool`, `given`, `agent`,
            `ignore`, `start`, or the code of a property of `check`.
        message: the difference in words.
        node: the node that differs; empty if the difference is about no single node.
        witness: the nodes of a shortest path in the later graph that shows the difference; empty
            for none.
        outcomes: the outcomes along the witness, one fewer than its nodes.
    """

    effect: Effect
    subject: str
    message: str
    node: str = ""
    witness: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()

    def along(self, path: TablePath) -> Change:
        """Return a copy of this change with `path` as its witness."""
        return replace(self, witness=nodes_on(path), outcomes=tuple(arc.word for arc in path))

    def __str__(self) -> str:
        path = witness_text(self.witness, self.outcomes) if self.outcomes else ""
        return f"{self.effect}: {self.message}" + (path and f"\n  witness: {path}")


def is_guard(node: Node[S, Outcome]) -> bool:
    """Return whether a node is a guard: of kind gate, check, human or stop, but no Router."""
    return node.kind in {"gate", "check", "human", "stop"} and not isinstance(node, Router)


def node_changes(old: Node[S, Outcome], new: Node[S, Outcome]) -> Iterator[Change]:
    """Yield the changes between two nodes with the same name, except changes of gate rules."""
    guards = is_guard(old) or is_guard(new)
    # Compare the inner nodes of wrappers that only add the graphs of agents.
    was, now = (
        node if {*(_parts_of(node) or {})} != {"node", "graphs"} else cast("Any", node).node
        for node in (old, new)
    )
    sorts = [f"{type(node).__qualname__} of kind {node.kind}" for node in (was, now)]
    if sorts[0] != sorts[1]:
        weaker = guards or now.kind in {"execute", "graph", "act"}
        said = f"`{new.name}` is a {sorts[1]}, and was a {sorts[0]}"
        yield Change("weaker" if weaker else "changed", "node", said, new.name)
        return
    parts, parts_now = (_parts_of(node) or getattr(node, "__dict__", {}) for node in (was, now))
    for name in dict.fromkeys((*parts, *parts_now)):
        if not (isinstance(now, Gate) and name == "rules"):
            values = parts.get(name), parts_now.get(name)
            changes = value_changes("node", f"`{new.name}`", name, *values, guards=guards)
            yield from (replace(change, node=new.name) for change in changes)


def value_changes(
    subject: str, owner: str, path: str, old: object, new: object, *, guards: bool = False
) -> Iterator[Change]:
    """Yield a change for each part of two values whose text forms differ.

    Args:
        subject: the `subject` of the changes.
        owner: the description of the node or tool that has the parameter, for messages.
        path: the parameter's name, with dots for nested fields.
        old: the value in the earlier graph.
        new: the value in the later graph.
        guards: whether `owner` is a guard, so that an unclear change counts as weaker.
    """
    was, now = written(old), written(new)
    if was == now:
        return
    name = path.rpartition(".")[2]
    guards = guards or name in GUARDING
    changes: list[Change] = []
    for key, *sides in _value_pairs(name, old, new):
        changes += value_changes(subject, owner, f"{path}{key}", *sides, guards=guards)
    said = f"{path} of {owner}: {was:.60} -> {now:.60}"
    yield from changes or [Change(_effect_of(name, old, new, guards=guards), subject, said)]


def _value_pairs(name: str, old: object, new: object) -> Iterator[tuple[str, object, object]]:
    """Yield the parts of two values to compare one by one: path suffix, old part and new part."""
    same = type(old).__qualname__ == type(new).__qualname__
    if not same or isinstance(old, AllOf | Not) or (name in COLLECTED and _has_all_of(new, old)):
        return
    parts, parts_now = _parts_of(old) or {}, _parts_of(new) or {}
    is_list = isinstance(old, list | tuple)
    keys = () if is_list and len(parts) != len(parts_now) else dict.fromkeys((*parts, *parts_now))
    for key in keys:
        yield "" if is_list else f".{key}", parts.get(key), parts_now.get(key)


def written(value: object) -> str:
    """Return a text form of a value that is the same in each process, without addresses."""
    parts, sort, plain = _parts_of(value), type(value).__qualname__, value
    if isinstance(value, NodeGraph):
        return f"graph {value.name!r}"
    if isinstance(value, type) and issubclass(value, Outcome):
        return outcome_name(value)
    if isinstance(value, list | tuple):
        return f"({', '.join(map(written, (parts or {}).values()))})"
    if isinstance(value, Set):
        return f"{{{', '.join(sorted(map(written, cast('Set[object]', value))))}}}"
    if parts is not None:
        said = [f"{name}={written(part)}" for name, part in parts.items()]
        return f"{sort}({', '.join(sorted(said) if isinstance(value, Mapping) else said)})"
    # The default `repr` contains an address, which differs in each process.
    other = sort if type(plain).__repr__ is object.__repr__ else repr(plain)
    return str(getattr(plain, "__qualname__", other))


def _parts_of(value: object) -> Mapping[str, object] | None:
    """Return the parts of a value by name, such as fields or items; None for a plain value."""
    match value:
        case Tool(spec=spec, policy=policy):
            return {**(_parts_of(spec) or {}), **(_parts_of(policy) or {})}
        case list() | tuple():
            return {f"{place}": part for place, part in enumerate(cast("Sequence[object]", value))}
        case Mapping():
            parts = cast("Mapping[object, object]", value).items()
            return {key if isinstance(key, str) else written(key): part for key, part in parts}
        case Struct():
            names = value.__struct_fields__
        case _ if is_dataclass(value) and not isinstance(value, type):
            names = tuple(field.name for field in fields(value) if field.compare)
        case _:
            return None
    return {name: getattr(value, name) for name in names}


def _has_all_of(value: object, part: object) -> bool:
    """Return whether list `value` has all members of list `part`, compared by their text forms."""
    sides: list[object] = [value, part]
    members, needed = (set(map(written, (_parts_of(side) or {}).values())) for side in sides)
    return all(isinstance(side, list | tuple) for side in sides) and needed <= members


def _effect_of(name: str, old: object, new: object, *, guards: bool) -> Effect:
    """Return the effect of a parameter change; an unclear change of a guard counts as weaker."""
    if name in LIMITS and all(isinstance(side, int | float | None) for side in (old, new)):
        was, now = cast("float | None", old), cast("float | None", new)
        return "weaker" if was is not None and (now is None or now > was) else "stronger"
    if not guards:
        return "changed"
    added = old is None or old is False or old in ("", ())
    more = added or new is True or (name in COLLECTED and _has_all_of(new, old))
    # A new approver lets calls through; any other new guard refuses some.
    return "stronger" if more and name != "approve_tool_call" else "weaker"
