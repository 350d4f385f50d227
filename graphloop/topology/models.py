"""Models: the pydantic types of the values in a topology file.

Each type validates plain data and generates its JSON Schema. A validator looks up the names of
functions and agents in the pydantic context, a `Reading`.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Final, TypeAlias, TypeVar, cast, final

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError, PydanticKnownError
from typing_extensions import TypedDict

from ..errors import ConfigError
from ..graph import NodeGraph
from ..outcomes import LIBRARY_OUTCOMES, Outcome
from ..own_nodes import route_outcome
from .diagnostics import FAULT, UNKNOWN_KEY, Diagnostics, ParseError
from .document import AnyNode
from .registration import FROM_OUTSIDE, Category, Registry
from .tree import Entry, Fields, Loc, Value, described, plain_data

__all__ = [
    "ELSE",
    "REF",
    "SIMPLE",
    "AgentName",
    "CapsForm",
    "Counted",
    "Form",
    "FunctionName",
    "Model",
    "Nodes",
    "OutcomeName",
    "Positive",
    "PositiveNumber",
    "PredicateName",
    "Reading",
    "RoutesForm",
    "Said",
    "ToolName",
    "Tools",
    "Whole",
    "built",
    "context_of",
    "entries_of",
    "fault",
    "faults",
    "mapping_of",
    "model_of",
    "parse",
    "parse_fields",
    "reference",
    "validated",
]

ELSE: Final = "else"
"""The key in a row for every outcome that the row does not name."""
REF: Final = "x-ref"
"""A placeholder in the JSON Schema of a single type; `topology_schema` replaces it by `$ref`."""

T = TypeVar("T")
Form: TypeAlias = Any
"""A type that pydantic can validate; Python has no narrower type for such types than `Any`."""
Nodes: TypeAlias = dict[str, AnyNode | None]
"""The nodes of a file by name; None for a node that could not be read."""


@final
@dataclass(frozen=True)
class Reading:
    """The pydantic validation context: the problems found, the registered names and the agents.

    `agents` maps each agent that the file declares to its graph, or to None if it is unknown.
    `state_type` is the type of the state of the file's graph; None for that of the file's nodes.
    """

    diagnostics: Diagnostics
    registry: Registry
    agents: Mapping[str, NodeGraph[Any] | None] = field(
        default_factory=dict[str, "NodeGraph[Any] | None"]
    )
    state_type: type[Any] | None = None


def parse(adapter: TypeAdapter[T], value: Value, reading: Reading, name: str = "") -> T:
    """Validate a file value with a pydantic type, and return the Python value.

    Messages name the value by its key `name`.

    Raises:
        ParseError: the value does not match the type; its problems are added to the diagnostics.
    """
    try:
        return adapter.validate_python(plain_data(value), context=reading)
    except ValidationError as error:
        reading.diagnostics.report(error, value, name)
        raise ParseError(name) from error


def parse_fields(model: Model, value: Value, reading: Reading, name: str) -> dict[str, Any]:
    """Validate a mapping in a file with a model, and return its values by key.

    Raises:
        ParseError: the mapping is invalid; its problems are added to the diagnostics.
    """
    try:
        return validated(model, plain_data(value), reading)
    except ValidationError as error:
        reading.diagnostics.report(error, value, name)
        raise ParseError(name) from error


def entries_of(value: Value, reading: Reading, name: str) -> tuple[Entry, ...]:
    """Return the entries of a mapping in a file.

    Raises:
        ParseError: the value is not a mapping; the problem is added to the diagnostics.
    """
    if not isinstance(value, Fields):
        problem = f"`{name}`: expected a mapping, found {described(value)}."
        raise reading.diagnostics.error(value.mark, problem, "write `key: value` pairs.")
    return value.entries


def fault(problem: str, fix: str) -> PydanticCustomError:
    """Return a pydantic error that carries a complete message and its fix."""
    return PydanticCustomError(FAULT, "{problem}", {"problem": problem, "fix": fix})


def faults(errors: Mapping[Loc, str | PydanticCustomError]) -> ValidationError:
    """Return one `ValidationError` made of several errors, or pydantic error types, by location."""
    return ValidationError.from_exception_data(
        "", [InitErrorDetails(type=error, loc=loc, input=None) for loc, error in errors.items()]
    )


def context_of(info: ValidationInfo) -> Reading:
    """Return the `Reading` that was passed to pydantic as the validation context."""
    assert isinstance(info.context, Reading), "each reader gives one"
    return info.context


# Words and numbers


def _as_written(value: object, check: ValidatorFunctionWrapHandler) -> object:
    """Validate a number as a float, but return the original, so that an int stays an int."""
    check(value)
    return value


Said: TypeAlias = Annotated[str, Field(pattern=r"\S")]
Whole: TypeAlias = Annotated[int, Strict()]
Positive: TypeAlias = Annotated[int, Strict(), Field(ge=1)]
Counted: TypeAlias = Annotated[int, Strict(), Field(ge=0)]
Number: TypeAlias = Annotated[float, Strict(), WrapValidator(_as_written)]
PositiveNumber: TypeAlias = Annotated[float, Strict(), Field(gt=0), WrapValidator(_as_written)]
Flag: TypeAlias = Annotated[bool, Strict()]
SIMPLE: Final[Mapping[object, Form]] = {str: str, int: Whole, float: Number, bool: Flag}


def _as_list(value: object) -> object:
    return cast("object", value) if isinstance(value, list) else [value]


Tools: TypeAlias = Annotated[
    tuple[Said, ...],
    Field(min_length=1),
    BeforeValidator(
        _as_list, json_schema_input_type=Said | Annotated[list[Said], Field(min_length=1)]
    ),
]
"""Tool names or patterns; a single string is read as a list with one item."""


# Names


def _check_registered(category: Category, name: str, info: ValidationInfo) -> str:
    reading = context_of(info)
    if reading.registry.get(category, name) is None:
        known = reading.registry.names(category)
        raise fault(
            f"no {category} is registered as {name!r}.{reading.diagnostics.nearest(name, known)} "
            f"Registered are {', '.join(known) or 'none'}.",
            f"register it in Python with @registry.{category}, before the file is loaded "
            f"({FROM_OUTSIDE}).",
        )
    return name


def _check_tool(name: str, info: ValidationInfo) -> str:
    return name if name in context_of(info).agents else _check_registered("tool", name, info)


def _check_agent(name: str, info: ValidationInfo) -> str:
    reading = context_of(info)
    if name not in reading.agents:
        hint = reading.diagnostics.nearest(name, reading.agents)
        raise fault(
            f"no agent of this file is named {name!r}.{hint}",
            f"declare it under `agents`: `{name}: {{include: …}}`, or `{name}: {{given: true}}` "
            "if each run brings it.",
        )
    return name


def _outcome_named(name: str) -> type[Outcome]:
    """Return the library outcome with this name; else a route outcome made from the name."""
    return LIBRARY_OUTCOMES[name] if name in LIBRARY_OUTCOMES else _make_route(name)


def _make_route(name: str) -> type[Outcome]:
    fix = "write a name like 'technical_support'."
    if name == ELSE:
        raise fault(f"{name!r} stands for the rest of a row, and is no outcome.", fix)
    try:
        return route_outcome(name)
    except ConfigError as error:
        raise fault(f"{error}.", fix) from error


AgentName: TypeAlias = Annotated[Said, AfterValidator(_check_agent)]
FunctionName: TypeAlias = Annotated[Said, AfterValidator(partial(_check_registered, "function"))]
PredicateName: TypeAlias = Annotated[Said, AfterValidator(partial(_check_registered, "predicate"))]
ToolName: TypeAlias = Annotated[Said, AfterValidator(_check_tool)]
OUTCOME: Final = WithJsonSchema({"type": "string", "pattern": "^[a-z][a-z0-9]*(_[a-z][a-z0-9]*)*$"})
OutcomeName: TypeAlias = Annotated[str, AfterValidator(_outcome_named), OUTCOME]
RoutesForm: TypeAlias = Annotated[
    dict[Annotated[str, AfterValidator(_make_route), OUTCOME], Said], Field(min_length=1)
]
CapsForm: TypeAlias = Annotated[
    dict[OutcomeName, Counted], AfterValidator(lambda caps: tuple(caps.items()))
]


# Mappings with known keys


@final
@dataclass(frozen=True)
class Model:
    """The pydantic type of a mapping with known keys.

    Args:
        form: the mapping's TypedDict; unlike a class, it allows any key name and adds no defaults.
        adapter: validates a mapping.
        forms: the type of each key's value.
        needed: the required keys.
    """

    form: Form
    adapter: TypeAdapter[dict[str, Any]]
    forms: Mapping[str, Form]
    needed: frozenset[str]


def model_of(
    title: str, fields: Mapping[str, Form], needed: Collection[str], doc: str = "", **schema: object
) -> Model:
    """Build a mapping's form from the type of each key; `doc`, `schema` are for its JSON Schema."""
    hints = {
        key: form if key in needed else typing.NotRequired[form] for key, form in fields.items()
    }
    config = ConfigDict(extra="forbid", title=title, json_schema_extra=cast("Any", schema))
    form = types.new_class(
        f"{title}_fields",  # Distinct from the name of a `reference`.
        (TypedDict,),
        exec_body=lambda body: body.update(
            __annotations__=hints, __pydantic_config__=config, __doc__=doc
        ),
    )
    return Model(form, TypeAdapter(cast("Any", form)), fields, frozenset(needed))


def validated(model: Model, data: object, reading: Reading) -> dict[str, Any]:
    """Validate a mapping with a model, and return its values by key.

    Raises:
        ValidationError: the mapping is invalid; the error lists every problem.
    """
    try:
        return model.adapter.validate_python(data, context=reading)
    except ValidationError as error:
        raise ValidationError.from_exception_data(
            "", [_with_known_keys(details, model) for details in error.errors(include_url=False)]
        ) from error


def _with_known_keys(details: Mapping[str, Any], model: Model) -> InitErrorDetails:
    """Convert pydantic's error details; add the known keys to an error about an unknown key."""
    kind, loc, context = details["type"], details["loc"], details.get("ctx", {})
    if kind == "extra_forbidden" and len(loc) == 1:
        context, kind, loc = {"known": [*model.forms]}, UNKNOWN_KEY, (*loc, "[key]")
    if kind in {FAULT, UNKNOWN_KEY}:
        kind = PydanticCustomError(kind, "{problem}", context)
    return InitErrorDetails(type=kind, loc=loc, input=details["input"], ctx=context)


def built(make: Callable[[], T], what: str) -> T:
    """Return `make()`; convert a `ConfigError` to a `fault`, which pydantic can report.

    If the error contains no fix, the fix is to change `what`.
    """
    try:
        return make()
    except ConfigError as error:
        problem, _, fix = str(error).partition(" Fix: ")
        raise fault(f"{problem.rstrip('.')}.", fix or f"change {what}.") from error


def reference(name: str) -> WithJsonSchema:
    """Return a JSON Schema that refers to the topology schema's definition of this name."""
    return WithJsonSchema({REF: f"#/$defs/{name}"})


def mapping_of(data: object, short: str = "") -> dict[str, Any]:
    """Return a mapping unchanged; with `short`, wrap any other value as `{short: value}`."""
    if not isinstance(data, dict):
        if not short:
            raise PydanticKnownError("dict_type")
        return {short: data}
    return cast("dict[str, Any]", data)  # The composer refuses keys other than text.
