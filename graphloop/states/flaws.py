"""Flaws: state fields whose type does not fit the items or the answers of a node's agents.

Such a field would fail a run only after its agents have spent money. Types are compared only as
far as they are known: a union, a type with validators of its own, and `Any` fit everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol, get_args, get_origin, runtime_checkable

from pydantic.errors import PydanticUserError

from .. import nodes
from ..contract import contract_of
from ..errors import Problem, nearest
from ..node_protocol import Node, unwrapped
from ..outcomes import Outcome
from .field_values import adapter_of, annotation_of, bare_type, word_for
from .fields import LISTS, list_flaw, reducer_of
from .state import fields_of

__all__ = ["AnswersInto", "answer_flaw", "field_problems", "items_flaw"]

SHAPES: Final = {
    "str": "text",
    **dict.fromkeys(("bool", "int", "float"), "number"),
    **dict.fromkeys(("list", "tuple", "set", "frozenset"), "array"),
    **dict.fromkeys(("model", "dataclass", "typed-dict", "dict"), "object"),
}
"""The form in JSON of values of a type, by the name of its pydantic schema."""

WITHOUT_ITEMS: Final = {*SHAPES, "bytes", "enum", "literal"} - {"list", "tuple"}
"""The pydantic schemas of types whose values are no sequences of items."""

UNKNOWN: Final[Mapping[str, Any]] = {"type": "any"}


@runtime_checkable
class AnswersInto(Protocol):
    """A node that writes the answer of the agent of its own name into a field of the state."""

    @property
    def into(self) -> str:
        """The field; empty for none."""
        ...


def field_problems(
    listed: Iterable[Node[Any, Outcome]], kind: type[object], answers: Mapping[str, object]
) -> list[Problem]:
    """Return a problem for each field that the state lacks, or that does not fit its node.

    Args:
        listed: the nodes of a graph.
        kind: the type of the state.
        answers: the types of the answers of agents, by name; `Any` if a type is unknown.
    """
    found = [
        Problem(f"node {node.name!r}", *flaw)
        for node in unwrapped(listed)
        for flaw in _field_flaws(node, kind, answers)
    ]
    return list(dict.fromkeys(found))


def _field_flaws(
    node: Node[Any, Outcome], kind: type[object], answers: Mapping[str, object]
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the fields that a node names, and the fix."""
    known = fields_of(kind)
    for option, name in _fields_named(node):
        if known is not None and name not in known:
            yield (
                f"`{option}`: expected a field of the state ({', '.join(sorted(known))}), found "
                f"{name!r}.{nearest(name, known)}",
                "name one of its fields.",
            )
        elif option == "items" and (flaw := items_flaw(kind, name)):
            yield flaw
    for agent, name, is_listed in _answers_into(node):
        if is_listed and (flaw := list_flaw(kind, name)):
            yield flaw
        answer = answers.get(agent, Any)
        if flaw := answer_flaw(kind, name, agent, answer, is_listed=is_listed):
            yield flaw


def _answers_into(node: Node[Any, Outcome]) -> Iterator[tuple[str, str, bool]]:
    """Yield each agent whose answers a node writes into a field, the field, and whether listed."""
    if node.kind != "graph":
        return  # Naming the classes imports their modules.
    if isinstance(node, nodes.MapOver):
        yield from [(node.agent, node.into, True)] if node.into else []
    elif isinstance(node, nodes.Parallel):
        for branch in node.branches:
            if name := node.into or branch.into:
                yield branch.agent, name, bool(node.into)
    elif isinstance(node, AnswersInto) and node.into:
        yield node.name, node.into, False


def _fields_named(node: Node[Any, Outcome]) -> Iterator[tuple[str, str]]:
    """Yield the options of a node that name fields of the state, with the fields."""
    # `node.kind` is tested first: naming these classes imports their modules.
    if node.kind == "graph" and isinstance(node, nodes.MapOver) and node.into:
        yield from [("items", node.items)] if node.items else []
        yield "into", node.into
    elif node.kind == "graph" and isinstance(node, nodes.Parallel):
        yield from [
            ("into", name) for name in (node.into, *[b.into for b in node.branches]) if name
        ]
    elif node.kind == "check" and isinstance(node, nodes.Router) and node.by:
        yield "by", node.by
    elif node.kind == "human" and isinstance(node, nodes.Approve) and node.field:
        yield "field", node.field
    elif (promised := contract_of(node)) is not None and node.kind == "graph":
        yield from [("reads", name) for name in sorted(promised.reads or ())]
        yield from [("writes", name) for name in sorted(promised.fields_written)]


def items_flaw(kind: object, field: str) -> tuple[str, str] | None:
    """Return what is wrong with a field that has to hold the items of a map, and the fix; or None.

    Args:
        kind: the type of the state.
        field: the name of the field.
    """
    bare = bare_type(annotation_of(kind, field))
    if _schema_of_type(bare)["type"] not in WITHOUT_ITEMS:
        return None
    return (
        f"`items`: expected a field that holds a list or a tuple, found {field!r} of type "
        f"{word_for(bare)}.",
        "name a field that holds the items, or give `items` a function of the state.",
    )


def answer_flaw(
    kind: object, field: str, agent: str, answer: object, *, is_listed: bool
) -> tuple[str, str] | None:
    """Return what is wrong with a field that gets the answers of an agent, and the fix; or None.

    Args:
        kind: the type of the state.
        field: the name of the field.
        agent: the name of the agent.
        answer: the type of its answers; `Any` if it is unknown.
        is_listed: whether the field gets a list of answers.
    """
    annotation = annotation_of(kind, field)
    bare = bare_type(annotation)
    inner = get_args(bare)[:1] if (get_origin(bare) in LISTS) else ()
    whole = () if is_listed else (bare,)
    # A reducer takes a list of results, or one result as such a list.
    wanted = (*whole, *(inner if is_listed or reducer_of(annotation) else ()))
    # A field of texts takes each answer as it is written.
    if not wanted or any(one is str or _may_become(answer, one) for one in wanted):
        return None
    said = "a text" if answer is str else word_for(answer)
    return (
        f"`into` {field!r}: expected a result of type {word_for(wanted[0])}, found agent "
        f"{agent!r}, which answers with {said}.",
        f"give the agent output_type={word_for(wanted[0])}, or give the field another type.",
    )


def _may_become(answer: object, wanted: object) -> bool:
    """Whether a value of one type, as JSON, can be read as the other; True if it is not known."""
    made, read = _schema_of_type(answer), _schema_of_type(wanted)
    shapes = SHAPES.get(made["type"]), SHAPES.get(read["type"])
    if answer == wanted or None in shapes:
        return True
    if shapes[0] != shapes[1]:
        return False
    if shapes[0] == "array":
        inner = get_args(bare_type(answer)), get_args(bare_type(wanted))
        return not all(inner) or _may_become(inner[0][0], inner[1][0])
    given, known = _required_by_field(made), _required_by_field(read)
    needed = {name for name, is_required in known.items() if is_required}
    return not given or not known or (needed <= {*given} and not {*given}.isdisjoint(known))


def _schema_of_type(kind: object) -> Mapping[str, Any]:
    """Return the pydantic schema of a type; a type that reads values in its own way is unknown."""
    try:
        core: Mapping[str, Any] = adapter_of(kind).core_schema
    except (PydanticUserError, NameError, TypeError):
        return UNKNOWN
    if core["type"] == "definitions":
        core = core["schema"]
    inner = core.get("schema", UNKNOWN)["type"]
    return UNKNOWN if core.get("root_model") or inner.startswith("function") else core


def _required_by_field(schema: Mapping[str, Any]) -> dict[str, bool]:
    """Return whether each field of an object is required; nothing if names alone do not tell."""
    holder = schema if schema["type"] == "typed-dict" else schema.get("schema", {})
    fields: Any = holder.get("fields", {})
    # The fields of a dataclass are a list.
    named: dict[str, Any] = (
        {one["name"]: one for one in fields} if schema["type"] == "dataclass" else fields
    )
    if any("validation_alias" in each or "serialization_alias" in each for each in named.values()):
        return {}
    return {
        name: each.get("required", each["schema"]["type"] != "default")
        for name, each in named.items()
    }
