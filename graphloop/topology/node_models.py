"""Node models: one pydantic model for each `use`, made of the fields of the node's own class.

A file can give a new field of a node at once. `FORMS` has the types that annotations do not tell:
bounds, names, and values with a form of their own.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    Protocol,
    TypeAlias,
    Union,
    cast,
    final,
    get_args,
    get_origin,
    runtime_checkable,
)

import docstring_parser
import msgspec
from pydantic import Field, PlainValidator, TypeAdapter, ValidationInfo

from ..errors import ConfigError, nearest
from ..node_protocol import OwnKind, is_node
from ..nodes import NEVER, Branch, Fallback, Function, Reducer, Retrying
from ..outcomes import Failed, Outcome, outcome_name
from ..values import ToolChoice
from .conditions import RulesForm, StopForm
from .document import with_graphs
from .models import (
    SIMPLE,
    AgentName,
    AnyNode,
    CapsForm,
    Counted,
    Form,
    FunctionName,
    Model,
    OutcomeName,
    Positive,
    PositiveNumber,
    Reading,
    RoutesForm,
    Said,
    Tools,
    built,
    context_of,
    fault,
    faults,
    mapping_of,
    model_of,
    reference,
    validated,
)
from .registration import FROM_OUTSIDE, LIBRARY

__all__ = [
    "NODE",
    "SHORT",
    "NodeKind",
    "Renamed",
    "class_fields",
    "library_kind",
    "named_model",
    "node_kind",
]

OR: Final[Form] = Union
"""`Union` for types that are made here, which checkers take for values."""

SHORT: Final[Mapping[type, str]] = {Branch: "agent", ToolChoice: "mode"}
"""The one key that a plain value stands for, by class."""


@runtime_checkable
class Renamed(Protocol):
    """A registered node that can stand under other names."""

    def renamed(self, name: str, /) -> AnyNode:
        """Return the same node under another name."""
        ...


@final
@dataclass(frozen=True)
class NodeKind:
    """The meaning of one `use`.

    Args:
        use: the name in files.
        made: the class of its nodes.
        make: makes a node of its parameters and a `name`.
        model: reads these, and `use`.
        needs_name: whether the class has no name of its own.
    """

    use: str
    made: type
    make: Callable[..., AnyNode]
    model: Model
    needs_name: bool


def _node(data: object, info: ValidationInfo) -> AnyNode:
    """Return the node that a mapping with a `use` stands for."""
    to, given = context_of(info), mapping_of(data)
    use = given.get("use", "")
    if "use" not in given:
        fix = f"add `use: …`, one of {', '.join(_uses(to))}."
        raise fault("`use`: expected a kind of node, found none.", fix)
    if not isinstance(use, str):
        raise faults({("use",): "string_type"})
    kind = _meant(use, to)
    if isinstance(kind, NodeKind):
        read = validated(kind.model, given, to)
        del read["use"]
        if kind.needs_name:
            read.setdefault("name", use)
        made = built(partial(kind.make, **read), f"the node with `use: {use}`")
    else:
        read = validated(named_model(use), given, to)
        made = _called(kind, read.get("name", kind.name))
    return with_graphs(made, {name: graph for name, graph in to.agents.items() if graph})


NODE: Final[TypeAdapter[AnyNode]] = TypeAdapter(Annotated[Any, PlainValidator(_node)])
"""Reads a node, and the nodes within it."""


def _meant(use: str, to: Reading) -> NodeKind | AnyNode:
    """Return the meaning of a `use`: the library's, else a registered one."""
    if use in LIBRARY:
        return library_kind(use)
    try:
        found = to.names.find("node", use)
        if isinstance(found, type):
            return node_kind(use, found)
    except ConfigError as error:
        raise faults({("use",): fault(f"{error}.", "change it in Python.")}) from error
    if is_node(found):
        return found
    what = "there is no kind of node" if found is None else f"{found!r:.60} is no node, but"
    uses = _uses(to)
    hint = to.diagnostics.nearest(use, uses)
    fix = (
        f"choose one of {', '.join(uses)}, or register your own with @registry.node "
        f"({FROM_OUTSIDE})."
    )
    raise faults({("use",): fault(f"{what} {use!r}.{hint}", fix)})


def _uses(to: Reading) -> tuple[str, ...]:
    return (*LIBRARY, *to.names.known("node"))


def _called(node: AnyNode, name: str) -> AnyNode:
    if node.name == name:
        return node
    if isinstance(node, Renamed):
        return node.renamed(name)
    found = f"the registered node {node.name!r} can stand in a graph under its own name only."
    raise fault(found, f"name it {node.name!r} here, too.")


@cache
def named_model(use: str) -> Model:
    """Return the model of a registered node, which has no parameters."""
    return model_of(use, {"use": Literal[use], "name": Said}, ["use"])


def library_kind(use: str) -> NodeKind:
    """Return one kind of node of the library."""
    return node_kind(use, LIBRARY[use])


@cache
def node_kind(use: str, made: type) -> NodeKind:
    """Return a kind of node: the library's, or a class that is registered.

    Raises:
        ConfigError: a field is of a type that no file can hold, or is named `use`.
    """
    fields = dict(class_fields(made))
    if "use" in fields:
        raise ConfigError(
            f"the field 'use' of {made.__name__} has no place in a file, where `use` is the kind "
            "of the node. Fix: give the field another name"
        )
    needs_name = fields.pop("name", False)
    # A file says a function's kind. Annotations say what a generator asks for: register it.
    fields.pop("asks" if made is Function else "kind", None)
    if made is Function:
        # A function that happens to have the node's name is not its callback.
        fields["callback"] = True
    forms = _forms(made, fields, is_library=made in LIBRARY.values())
    needed = ["use", *[name for name, must in fields.items() if must]]
    model = model_of(use, {"use": Literal[use], "name": Said, **forms}, needed, _summary(made))
    make = _left_by_name(made) if made in {Retrying, Fallback} else made
    return NodeKind(use, made, make, model, needs_name=needs_name)


def _left_by_name(made: type) -> Callable[..., AnyNode]:
    """Return a maker of nodes whose `after` may hold the names of outcomes."""

    def make(after: Iterable[object] = (Failed,), **given: Form) -> AnyNode:
        first = given.get("node") or given["first"]
        node: AnyNode = made(**given, after=_outcomes_of(first, after))
        return node

    return make


def _outcomes_of(node: AnyNode, after: Iterable[object]) -> frozenset[type[Outcome]]:
    known = {outcome_name(each): each for each in node.outcomes - NEVER}
    names = [each for each in after if not isinstance(each, type)]
    for name in names:
        if str(name) not in known:
            raise ConfigError(
                f"`after`: expected outcomes of {node.name!r} ({', '.join(sorted(known))}), found "
                f"{name!r}.{nearest(str(name), known)}"
            )
    types = [each for each in after if isinstance(each, type)]
    return frozenset([*types, *[known[str(name)] for name in names]])


def _record(made: type, *, is_library: bool) -> Form:
    """Return the type of the values of a class that stand within nodes."""
    fields, short = dict(class_fields(made)), SHORT.get(made, "")
    forms = _forms(made, fields, is_library=is_library)
    needed = [name for name, must in fields.items() if must]
    model = model_of(made.__name__, forms, needed, _summary(made))

    def made_of(data: object, info: ValidationInfo) -> object:
        read = validated(model, mapping_of(data, short), context_of(info))
        return built(partial(made, **read), f"the {made.__name__}")

    written = OR[forms[short], model.form] if short else model.form
    return Annotated[Any, PlainValidator(made_of, json_schema_input_type=written)]


def _forms(made: type, fields: Mapping[str, bool], *, is_library: bool) -> dict[str, Form]:
    """Return the types of a class's fields; `fields` marks required ones.

    Raises:
        ConfigError: a field is of a type that no file can hold.
    """
    hints = typing.get_type_hints(made)
    docs = docstring_parser.parse(made.__doc__ or "", docstring_parser.DocstringStyle.GOOGLE)
    said = {each.arg_name: " ".join((each.description or "").split()) for each in docs.params}
    forms: dict[str, Form] = {}
    for name, must in fields.items():
        form = FORMS.get(name) if is_library else None
        if form is None:
            form = _form_of(hints[name], is_library=is_library)
        if form is None:
            raise ConfigError(
                f"the field {name!r} of {made.__name__}: expected a type that a file can hold "
                "(text, numbers, booleans, Literal, tuples, dataclasses of these), found "
                f"{hints[name]}. Fix: register nodes instead of their class"
            )
        if form is str and must and is_library:
            form = Said
        forms[name] = Annotated[form, Field(description=said.get(name))]
    return forms


def _form_of(annotation: Form, *, is_library: bool) -> Form | None:
    """Return the type of a field's value in a file; None if no file can write it."""
    origin: object = get_origin(annotation)
    arguments = get_args(annotation)
    form: Form | None = SIMPLE.get(annotation) if origin is None else None
    if origin is Literal and all(isinstance(word, str) for word in arguments):
        form = annotation
    elif origin in {Union, UnionType, tuple, frozenset}:
        form = _inner_form(origin, arguments, is_library=is_library)
    elif isinstance(annotation, type) and (
        dataclasses.is_dataclass(annotation) or issubclass(annotation, msgspec.Struct)
    ):
        form = _record(annotation, is_library=is_library)
    return form


def _inner_form(origin: Form, arguments: tuple[Form, ...], *, is_library: bool) -> Form | None:
    """Return the type of something or null, or of a list."""
    first, *rest = [each for each in arguments if each is not NoneType]
    inner = _form_of(first, is_library=is_library)
    if inner is None or rest != ([...] if origin is tuple else []):
        return None
    if origin in {tuple, frozenset}:
        return cast("Form", origin)[inner, *rest]
    return OR[inner, None]


def class_fields(made: type) -> list[tuple[str, bool]]:
    """Return the fields of a class, and whether each has to be given."""
    if issubclass(made, msgspec.Struct):
        return [(each.name, each.required) for each in msgspec.structs.fields(made)]
    missing = dataclasses.MISSING
    return [
        (each.name, each.default is missing and each.default_factory is missing)
        for each in dataclasses.fields(cast("Any", made))  # The caller has looked at it.
        if each.init
    ]


def _summary(made: type) -> str:
    return (made.__doc__ or "").strip().partition("\n")[0]


Part: TypeAlias = Annotated[Any, PlainValidator(_node), reference("node")]
"""A node within another; without a name, it has its kind's."""

FORMS: Final[Mapping[str, Form]] = {
    "after": Tools,
    "agent": AgentName,
    "callback": FunctionName,
    "capped": OR[OutcomeName, None],
    "caps": CapsForm,
    "concurrency": Positive,
    "conditions": tuple[StopForm, ...],
    "context_window": Annotated[Positive, Field(ge=1_000)],
    "fallbacks": tuple[Said, ...],
    "first": Part,
    "keep_recent_turns": Positive,
    "kind": OwnKind,
    "leaves_by": Annotated[frozenset[OutcomeName], Field(min_length=1)],
    "max_denials": Positive,
    "max_items": Positive,
    "max_pauses": Counted,
    "max_steps": Positive,
    "max_tool_errors": Positive,
    "node": Part,
    "reducer": Reducer,
    "retries": Counted,
    "routes": RoutesForm,
    "rules": RulesForm,
    "second": Part,
    "stateless": frozenset[OutcomeName],
    "target": PositiveNumber,
    "threshold": PositiveNumber,
    "times": Positive,
    "ttl_s": OR[PositiveNumber, None],
}
"""The types of the library's fields that their annotations do not tell."""
