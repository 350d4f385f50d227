"""Node models: a pydantic model for each node class, built from the fields of the class.

A new field of a node class can therefore be set in files without a change here. `FORMS` replaces
the annotated types that are too general: limits, names, and values with a special syntax.
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
from ..nodes import NEVER, Branch, Fallback, Function, JoinForm, Retrying
from ..outcomes import Failed, Outcome, outcome_name
from ..values import ToolChoice
from .conditions import RulesForm, StopForm
from .document import AnyNode, with_graphs
from .models import (
    SIMPLE,
    AgentName,
    CapsForm,
    Counted,
    Form,
    FunctionName,
    Model,
    OutcomeName,
    Positive,
    PositiveNumber,
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
from .registration import FROM_OUTSIDE, LIBRARY, Registry

__all__ = ["NODE", "SHORT", "NodeKind", "Renamed", "class_fields", "meaning_of", "model_of_use"]

OR: Final[Form] = Union
"""`Union` without a static type: checkers reject `Union[...]` of types built at run time."""

SHORT: Final[Mapping[type, str]] = {Branch: "agent", ToolChoice: "mode"}
"""For each class, the field that a file may set by writing only its value, without a mapping."""


@runtime_checkable
class Renamed(Protocol):
    """A registered node that a graph can use under other names."""

    def renamed(self, name: str, /) -> AnyNode:
        """Return a copy of this node with another name."""
        ...


@final
@dataclass(frozen=True)
class NodeKind:
    """A node class that a file selects by name with `use`.

    Args:
        use: the name of the class in files.
        made: the node class.
        make: makes a node from the parameters in a file and a `name`.
        model: validates the parameters, `name` and `use`.
        needs_name: whether the class requires a `name`.
    """

    use: str
    made: type
    make: Callable[..., AnyNode]
    model: Model
    needs_name: bool


def _make_node(data: object, info: ValidationInfo) -> AnyNode:
    """Make the node that a mapping in a file describes; its `use` key selects the class."""
    reading, fields = context_of(info), mapping_of(data)
    uses = (*LIBRARY, *reading.registry.names("node"))
    use = fields.get("use", "")
    if "use" not in fields:
        fix = f"add `use: …`, one of {', '.join(uses)}."
        raise fault("`use`: expected a kind of node, found none.", fix)
    if not isinstance(use, str):
        raise faults({("use",): "string_type"})
    try:
        meaning = meaning_of(use, reading.registry)
    except ConfigError as error:
        raise faults({("use",): fault(f"{error}.", "change it in Python.")}) from error
    if meaning is None:
        problem = f"there is no kind of node {use!r}.{reading.diagnostics.nearest(use, uses)}"
        fix = f"choose one of {', '.join(uses)}, or register your own with @registry.node "
        raise faults({("use",): fault(problem, f"{fix}({FROM_OUTSIDE}).")})
    if isinstance(meaning, NodeKind):
        values = validated(meaning.model, fields, reading)
        del values["use"]
        if meaning.needs_name:
            values.setdefault("name", use)
        node = built(partial(meaning.make, **values), f"the node with `use: {use}`")
    else:
        values = validated(model_of_use(use, meaning), fields, reading)
        node = _check_name(meaning, values.get("name", meaning.name))
    return with_graphs(node, {name: graph for name, graph in reading.agents.items() if graph})


NODE: Final[TypeAdapter[AnyNode]] = TypeAdapter(Annotated[Any, PlainValidator(_make_node)])
"""Validates a node, including the nodes nested in it."""


def meaning_of(use: str, registry: Registry) -> NodeKind | AnyNode | None:
    """Return the node class or the registered node that `use` selects; None if it is unknown.

    Raises:
        ConfigError: a file cannot represent a field of the registered class.
    """
    value = LIBRARY.get(use) or registry.get("node", use)
    if isinstance(value, type):
        return _kind_of_class(use, value)
    return value if is_node(value) else None


def _check_name(node: AnyNode, name: str) -> AnyNode:
    if node.name == name:
        return node
    if isinstance(node, Renamed):
        return node.renamed(name)
    problem = f"the registered node {node.name!r} can stand in a graph under its own name only."
    raise fault(problem, f"name it {node.name!r} here, too.")


def model_of_use(use: str, meaning: NodeKind | AnyNode | None) -> Model:
    """Return the model for a node mapping; a registered node has no parameters but its name."""
    return meaning.model if isinstance(meaning, NodeKind) else _named_model(use)


@cache
def _named_model(use: str) -> Model:
    return model_of(use, {"use": Literal[use], "name": Said}, ["use"])


@cache
def _kind_of_class(use: str, made: type) -> NodeKind:
    """Build the `NodeKind` of a node class from its fields."""
    fields = dict(class_fields(made))
    if "use" in fields:
        raise ConfigError(
            f"the field 'use' of {made.__name__} has no place in a file, where `use` is the kind "
            "of the node. Fix: give the field another name"
        )
    needs_name = fields.pop("name", False)
    # A file sets the kind of a `Function`, but not its `asks`: a generator must be registered.
    fields.pop("asks" if made is Function else "kind", None)
    if made is Function:
        # Required in files: the default would be any function registered under the node's name.
        fields["callback"] = True
    forms = _forms_of_fields(made, fields, is_library=made in LIBRARY.values())
    needed = ["use", *[name for name, must in fields.items() if must]]
    model = model_of(use, {"use": Literal[use], "name": Said, **forms}, needed, _first_line(made))
    make = _left_by_name(made) if made in {Retrying, Fallback} else made
    return NodeKind(use, made, make, model, needs_name=needs_name)


def _left_by_name(made: type) -> Callable[..., AnyNode]:
    """Return a constructor for `made` that also accepts outcome names in `after`."""

    def make(after: Iterable[object] = (Failed,), **values: Form) -> AnyNode:
        inner = values.get("node") or values["first"]
        node: AnyNode = made(**values, after=_outcomes_of(inner, after))
        return node

    return make


def _outcomes_of(node: AnyNode, after: Iterable[object]) -> frozenset[type[Outcome]]:
    """Return the outcome types in `after`, with each name resolved among the node's outcomes."""
    known = {outcome_name(outcome): outcome for outcome in node.outcomes - NEVER}
    outcomes: list[type[Outcome]] = []
    for word in after:
        name = outcome_name(word) if isinstance(word, type) else str(word)
        if not isinstance(word, type) and name not in known:
            raise ConfigError(
                f"`after`: expected outcomes of {node.name!r} ({', '.join(sorted(known))}), found "
                f"{word!r}.{nearest(name, known)}"
            )
        outcomes.append(word if isinstance(word, type) else known[name])
    return frozenset(outcomes)


def _form_of_record(made: type, *, is_library: bool) -> Form:
    """Return the pydantic type for instances of a class that occur as a node's parameters."""
    fields, short = dict(class_fields(made)), SHORT.get(made, "")
    forms = _forms_of_fields(made, fields, is_library=is_library)
    needed = [name for name, must in fields.items() if must]
    model = model_of(made.__name__, forms, needed, _first_line(made))

    def value_of(data: object, info: ValidationInfo) -> object:
        values = validated(model, mapping_of(data, short), context_of(info))
        return built(partial(made, **values), f"the {made.__name__}")

    written = OR[forms[short], model.form] if short else model.form
    return Annotated[Any, PlainValidator(value_of, json_schema_input_type=written)]


def _forms_of_fields(
    made: type, fields: Mapping[str, bool], *, is_library: bool
) -> dict[str, Form]:
    """Return the pydantic type of each field; `fields` maps each name to whether it is required.

    Raises:
        ConfigError: a file cannot represent the type of a field.
    """
    hints = typing.get_type_hints(made)
    docs = docstring_parser.parse(made.__doc__ or "", docstring_parser.DocstringStyle.GOOGLE)
    described = {doc.arg_name: " ".join((doc.description or "").split()) for doc in docs.params}
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
        forms[name] = Annotated[form, Field(description=described.get(name))]
    return forms


def _form_of(annotation: Form, *, is_library: bool) -> Form | None:
    """Return the pydantic type for an annotation; None if a file cannot represent it."""
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
        form = _form_of_record(annotation, is_library=is_library)
    return form


def _inner_form(origin: Form, arguments: tuple[Form, ...], *, is_library: bool) -> Form | None:
    """Return the pydantic type for an annotated tuple, frozenset or optional; None if refused."""
    first, *rest = [argument for argument in arguments if argument is not NoneType]
    inner = _form_of(first, is_library=is_library)
    if inner is None or rest != ([...] if origin is tuple else []):
        return None
    if origin in {tuple, frozenset}:
        return cast("Form", origin)[inner, *rest]
    return OR[inner, None]


def class_fields(made: type) -> list[tuple[str, bool]]:
    """Return the fields of a dataclass or struct as pairs (name, whether it is required)."""
    if issubclass(made, msgspec.Struct):
        return [(field.name, field.required) for field in msgspec.structs.fields(made)]
    missing = dataclasses.MISSING
    return [
        (field.name, field.default is missing and field.default_factory is missing)
        for field in dataclasses.fields(cast("Any", made))  # Other classes are not registered.
        if field.init
    ]


def _first_line(made: type) -> str:
    return (made.__doc__ or "").strip().partition("\n")[0]


Part: TypeAlias = Annotated[Any, PlainValidator(_make_node), reference("node")]
"""A node nested in another node; without a `name`, it is named after its class."""

FORMS: Final[Mapping[str, Form]] = {
    "after": Tools,
    "agent": AgentName,
    "agents": tuple[AgentName, ...],
    "callback": FunctionName,
    "capped": OR[OutcomeName, None],
    "caps": CapsForm,
    "concurrency": Positive,
    "conditions": tuple[StopForm, ...],
    "context_window": Annotated[Positive, Field(ge=1_000)],
    "fallbacks": tuple[Said, ...],
    "first": Part,
    "functions": tuple[FunctionName, ...],
    "keep_recent_turns": Positive,
    "kind": OwnKind,
    "leaves_by": Annotated[frozenset[OutcomeName], Field(min_length=1)],
    "max_consecutive_denials": Positive,
    "max_consecutive_tool_errors": Positive,
    "max_items": Positive,
    "max_pauses": Counted,
    "max_steps": Positive,
    "max_tool_concurrency": Positive,
    "node": Part,
    "reducer": JoinForm,
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
"""By field name, the types of library fields whose annotations are too general for files."""
