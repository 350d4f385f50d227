"""Written changes: parameters that differ in their text.

A number, a name or a field is written as it is; a function or a class by its name. So two functions
of one name read the same: no comparison looks at what they do. Any other object is written by its
`repr`, or by the name of its class if the class writes none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Final, Literal, TypeAlias, TypeVar, cast, final

from msgspec import Struct

from ..graph import NodeGraph
from ..limits import AllOf, Not
from ..node_protocol import Node
from ..nodes import Gate, Router
from ..outcomes import Outcome, outcome_name
from ..tools import Tool
from .proof_graph import TablePath

__all__ = ["Change", "Effect", "compared", "is_guard", "node_changes", "written"]

S = TypeVar("S")

Effect: TypeAlias = Literal["weaker", "changed", "stronger"]

LIMITS: Final = frozenset(
    {
        *("max_steps", "max_tool_errors", "max_denials", "max_pauses", "max_items", "max_tokens"),
        *("max_agent_depth", "times", "count", "tokens_max", "usd_max", "seconds_max", "ttl_s"),
        *("timeout_s", "step_timeout_s", "approval_ttl_s", "attempts_max", "tokens", "usd"),
        *("seconds", "tool_calls", "agent_calls", "retries", "caps"),
    }
)
"""Numbers that let more happen the higher they are; None is no limit."""

GUARDING: Final = frozenset(
    {
        *("active_tools", "approve_tool_call", "done_when", "hold", "needs_approval"),
        *("output_type", "price", "prices", "reconcile", "signed", "stop_when", "verify"),
    }
)
"""Parameters that keep something from happening, whatever they stand in."""

COLLECTED: Final = frozenset({"checks", "conditions", "stop_when"})
"""Parameters of which each member keeps something from happening by itself."""

CARE: Final = {"at_least_once": 0, "idempotent": 1, "pure": 1, "at_most_once": 2, "reconcile": 2}
"""How far a tool is kept from acting twice after a crash."""

SHOWN_MAX: Final = 60
"""How many characters a message shows of each side."""


@final
@dataclass(frozen=True, slots=True)
class Change:
    """A fact of the later graph that is none of the earlier.

    Attributes:
        effect: whether the later graph promises less, more, or something else.
        subject: `guard`, `acts`, `gate`, `bound`, `rule`, `node`, `tool`, `given`, `agent`,
            `ignore`, `start`, or the code of a property of `check`.
        message: the change in words.
        node: the node that it is about; empty for none.
        witness: the nodes of a shortest way of the later graph that shows it; else empty.
        outcomes: the outcomes along the witness.
    """

    effect: Effect
    subject: str
    message: str
    node: str = ""
    witness: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()

    def along(self, path: TablePath) -> Change:
        """Return this change with the way that shows it."""
        witness = (path[0].source, *(arc.target for arc in path)) if path else ()
        return replace(self, witness=witness, outcomes=tuple([arc.word for arc in path]))

    @property
    def path(self) -> str:
        """The witness in words."""
        steps = zip(self.outcomes, self.witness[1:], strict=True)
        return "".join([*self.witness[:1], *(f" -{arc}-> {node}" for arc, node in steps)])

    def __str__(self) -> str:
        line = f"{self.effect}: {self.message}"
        return f"{line}\n  witness: {self.path}" if self.outcomes else line


def is_guard(node: object) -> bool:
    """Whether a node keeps something from happening."""
    kind: object = getattr(node, "kind", "")
    return kind in {"gate", "check", "human", "stop"} and not isinstance(node, Router)


def node_changes(old: Node[S, Outcome], new: Node[S, Outcome]) -> Iterator[Change]:
    """Yield what differs between two nodes of one name, but for the rules of gates."""
    guards = is_guard(old) or is_guard(new)
    was, now = _unwrapped(old), _unwrapped(new)
    sorts = [f"{type(one).__qualname__} of kind {one.kind}" for one in (was, now)]
    if sorts[0] != sorts[1]:
        effect: Effect = (
            "weaker" if guards or now.kind in {"execute", "graph", "act"} else "changed"
        )
        said = f"`{new.name}` is a {sorts[1]}, and was a {sorts[0]}"
        yield Change(effect, "node", said, new.name)
        return
    parts, parts_now = (_fields(one) or getattr(one, "__dict__", {}) for one in (was, now))
    for name in dict.fromkeys((*parts, *parts_now)):
        if not (isinstance(now, Gate) and name == "rules"):
            owner, sides = f"`{new.name}`", (parts.get(name), parts_now.get(name))
            told = compared("node", owner, name, *sides, guards=guards)
            yield from (replace(one, node=new.name) for one in told)


def compared(
    subject: str, owner: str, path: str, old: object, new: object, *, guards: bool = False
) -> Iterator[Change]:
    """Yield the parameters at a path of an owner whose written forms differ.

    `guards` says whether the owner keeps something from happening.
    """
    sides = written(old), written(new)
    if sides[0] == sides[1]:
        return
    name = path.rpartition(".")[2]
    guards = guards or name in GUARDING
    found: list[Change] = []
    for key, was, now in _pairs(name, old, new):
        found += compared(subject, owner, f"{path}{key}", was, now, guards=guards)
    if not found:
        short = max(map(len, sides)) <= SHOWN_MAX
        how = f": {sides[0]} -> {sides[1]}" if short else " differs"
        effect = _effect(name, old, new, guards=guards)
        found = [Change(effect, subject, f"{path} of {owner}{how}")]
    yield from found


def _pairs(name: str, old: object, new: object) -> Iterator[tuple[str, object, object]]:
    """Yield the parts of two values that are compared one by one, and how each is named."""
    same = type(old).__qualname__ == type(new).__qualname__
    if not same or isinstance(old, AllOf | Not) or (name in COLLECTED and _kept(old, new)):
        return
    some, others = _members(old), _members(new)
    if some is not None and others is not None:
        # Members of lists have no names; those of lists of two lengths cannot be paired.
        pairs = zip(some, others, strict=True) if len(some) == len(others) else ()
        yield from (("", was, now) for was, now in pairs)
    parts, parts_now = _fields(old) or {}, _fields(new) or {}
    for key in dict.fromkeys((*parts, *parts_now)):
        yield f".{key}", parts.get(key), parts_now.get(key)


def written(value: object) -> str:
    """Return a value as a reader sees it, the same for each load of its file."""
    parts, members = _fields(value), _members(value)
    sort, name = type(value).__qualname__, "" if parts or members else _name(value)
    if isinstance(value, NodeGraph):
        return f"graph {value.name!r}"
    if isinstance(value, type) and issubclass(value, Outcome):
        return outcome_name(value)
    if members is not None:
        return f"({', '.join(map(written, members))})"
    if isinstance(value, Set):
        return f"{{{', '.join(sorted(map(written, cast('Set[object]', value))))}}}"
    if parts is not None:
        said = [f"{name}={written(one)}" for name, one in parts.items()]
        inside = ", ".join(sorted(said) if isinstance(value, Mapping) else said)
        return f"{sort}({inside})"
    return name


def _name(value: object) -> str:
    """Return the name of a function or class; of any other object, what its class writes."""
    quote_names: object = getattr(value, "__qualname__", None)
    if isinstance(quote_names, str):
        return quote_names
    own = type(value).__repr__ is not object.__repr__
    return repr(value) if own else type(value).__qualname__


def _fields(value: object) -> Mapping[str, object] | None:
    """Return the named parts of a value; None if it has none."""
    match value:
        case Tool():
            tool = cast("Tool[..., object]", value)
            return {**(_fields(tool.spec) or {}), **(_fields(tool.policy) or {})}
        case partial():
            return {"func": value.func, "args": value.args, "keywords": value.keywords}
        case Mapping():
            some = cast("Mapping[object, object]", value)
            return {key if isinstance(key, str) else written(key): one for key, one in some.items()}
        case Struct():
            return {name: getattr(value, name) for name in value.__struct_fields__}
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {one.name: getattr(value, one.name) for one in fields(value) if one.compare}
        case _:
            return None


def _members(value: object) -> Sequence[object] | None:
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else None


def _kept(old: object, new: object) -> bool:
    """Whether a later list has all members of the earlier one."""
    some, others = _members(old), _members(new)
    if some is None or others is None:
        return False
    return set(map(written, some)) <= set(map(written, others))


def _unwrapped(node: Node[S, Outcome]) -> Node[S, Outcome]:
    """Return the node itself of a node that is held together with the graphs of its agents."""
    parts = _fields(node) or {}
    return cast("Node[S, Outcome]", parts["node"]) if {*parts} == {"node", "graphs"} else node


def _effect(name: str, old: object, new: object, *, guards: bool) -> Effect:
    """Return what a change means; a change of a guard that nothing can judge is weaker."""
    if name in LIMITS and all(isinstance(one, int | float | None) for one in (old, new)):
        was, now = cast("float | None", old), cast("float | None", new)
        return "weaker" if was is not None and (now is None or now > was) else "stronger"
    if name == "effect" and old in CARE and new in CARE:
        more = CARE[str(new)] - CARE[str(old)]
        return "weaker" if more < 0 else "stronger" if more > 0 else "changed"
    if not guards:
        return "changed"
    added = old is None or old is False or old in ("", ())
    more = added or new is True or (name in COLLECTED and _kept(old, new))
    # An approver that is added lets calls through; all else that is added refuses some.
    return "stronger" if more and name != "approve_tool_call" else "weaker"
