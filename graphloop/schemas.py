"""From a function's signature, or a pydantic model class, to the JSON Schema of its parameters.

Everything slow (signatures, type hints, docstrings, schema building) happens once, when a tool is
defined. What stays is `Parameters`: the schema as text, and one compiled function that parses and
checks at once. Extra keys are dropped, and values are converted the way pydantic does it ("5" is
accepted for an integer): models are sloppy, and a refused call costs a turn.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module

import docstring_parser
from pydantic import BaseModel, PydanticUserError, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import from_json, to_json, to_jsonable_python
from typing_extensions import TypedDict

from .errors import ToolDefinitionError
from .tool_outcome import ArgumentsRejected, not_json

__all__ = [
    "Caller",
    "JsonSchema",
    "Parameters",
    "accepts",
    "arguments_parser",
    "caller",
    "check_name",
    "function_parameters",
    "is_async",
    "model_parameters",
    "parameters_of",
    "schema_text",
]

JsonSchema: typing.TypeAlias = dict[str, object]


NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
NAME_CHARS_MAX = 64

Caller: typing.TypeAlias = Callable[[object, object], object]


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a tool takes: the JSON Schema as text, and the compiled parser of its arguments.

    `parse` returns checked arguments or raises. With `keywords` they are a dict of keyword
    arguments, and `context` names the parameter that gets the context instead, if there is one;
    otherwise they are one value. `summary` is the first paragraph of the docstring.
    """

    schema: str
    parse: Callable[[str], object]
    keywords: bool = False
    context: str = ""
    summary: str = ""


def parameters_of(given: object, place: str) -> Parameters:
    """Return the parameters given in any form that `Tool` accepts.

    Raises:
        ToolDefinitionError: it is none of these forms, or cannot be described to a model.
    """
    if isinstance(given, Parameters):
        return given
    if isinstance(given, type) and issubclass(given, BaseModel):
        return model_parameters(given, place)
    if not isinstance(given, Mapping):
        raise ToolDefinitionError(
            f"{place}: parameters must be a pydantic model class or a JSON Schema mapping, "
            f"found {given!r}. Fix: pass one of these, or use @tool on a function."
        )
    # jsonschema is slow to import, and most programs define no such tool.
    module = import_module(".raw_schema", __package__)
    compile_schema: Callable[[Mapping[str, object], str], Parameters] = module.raw_parameters
    return compile_schema(typing.cast("Mapping[str, object]", given), place)


def model_parameters(model: type[BaseModel], place: str) -> Parameters:
    """Return the parameters that a pydantic model class describes.

    Raises:
        ToolDefinitionError: the model has no JSON Schema, or is not an object at the top.
    """
    try:
        adapter = TypeAdapter(model)
        schema = typing.cast("JsonSchema", adapter.json_schema(schema_generator=_Untitled))
    except (PydanticUserError, NameError, TypeError) as error:
        raise ToolDefinitionError(
            f"{place}: no JSON Schema can be made of the model {model.__name__!r}: {error}. "
            "Fix: use field types that JSON can express."
        ) from error
    return Parameters(schema_text(schema, place), arguments_parser(adapter.validator.validate_json))


def function_parameters(function: Callable[..., object], injected: type) -> Parameters:
    """Return the parameters of a function; one annotated `injected` is left out of the schema.

    Raises:
        ToolDefinitionError: a parameter cannot be described to a model; names it and the fix.
    """
    place = f"tool function {getattr(function, '__qualname__', repr(function))!r}"
    summary, descriptions = _docstring(function.__doc__ or "")
    hints: dict[str, object] = {}
    defaults: dict[str, object] = {}
    context = ""
    for parameter in _signature(function, place).parameters.values():
        here = f"{place}: parameter {parameter.name!r}"
        hint = _hint(function, parameter, here)
        if hint in (injected, injected | None):
            if context:
                raise ToolDefinitionError(
                    f"{here} is a second {injected.__name__}, after {context!r}. "
                    "Fix: keep one of them."
                )
            context = parameter.name
            continue
        hints[parameter.name] = hint
        if parameter.default is not inspect.Parameter.empty:
            defaults[parameter.name] = parameter.default
    adapter, schema = _compile(hints, defaults, place)
    told = {  # `x: str = None` says that x may be left out; null itself would be refused.
        name: default
        for name, default in defaults.items()
        if default is not None or _adapt(hints[name])[0].validator.isinstance_python(None)
    }
    _annotate(schema, descriptions, told)
    return Parameters(
        schema_text(schema, place),
        arguments_parser(adapter.validator.validate_json),
        keywords=True,
        context=context,
        summary=summary,
    )


def arguments_parser(validate_json: Callable[[str], object]) -> Callable[[str], object]:
    """Return a parser of strict JSON objects around pydantic's compiled validator.

    An empty text means no arguments: some servers send it for `{}`. The parser raises
    `ArgumentsRejected`, pydantic's `ValidationError`, or whatever a user's own validator raises.
    """

    def parse(arguments: str) -> object:
        if not arguments or arguments.isspace():
            arguments = "{}"
        elif "NaN" in arguments or "Infinity" in arguments:
            # They may stand inside a string; pydantic would take them as numbers, JSON has none.
            _check_numbers(arguments)
        return validate_json(arguments)

    return parse


def schema_text(schema: Mapping[str, object], place: str) -> str:
    """Return the schema of an object as compact JSON, the same for equal schemas.

    Keywords are sorted; properties keep their order, for models answer in that order.

    Raises:
        ToolDefinitionError: the top level is not `type: object`.
    """
    flat = dict(schema)
    flat.pop("title", None)
    reference = flat.get("$ref")
    if isinstance(reference, str) and "$defs" in flat and "type" not in flat:
        # Pydantic writes a recursive model as a bare reference; providers want the object itself.
        definitions = typing.cast("dict[str, JsonSchema]", flat["$defs"])
        flat = {**definitions.get(reference.removeprefix("#/$defs/"), {}), "$defs": definitions}
    if flat.get("type") != "object":
        raise ToolDefinitionError(
            f"{place}: the parameters must be an object, so the schema must say "
            f"'type': 'object' at the top; found {flat.get('type')!r}. "
            "Fix: make what you have one property of an object."
        )
    return to_json(GenerateJsonSchema().sort(flat)).decode("utf-8")


def accepts(function: object, count: int) -> bool:
    """Whether `function` can be called with `count` positional arguments."""
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return count == 1  # Some builtins tell no signature.
    return True


def is_async(function: Callable[..., object]) -> bool:
    """Whether calling `function`, or the object that stands for one, gives a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        type(function).__call__
    )


def check_name(name: object) -> None:
    """Refuse a name that some wire would refuse, and offer a legal one.

    Raises:
        ToolDefinitionError: the name is not 1 to 64 letters, digits, '_' or '-'.
    """
    if isinstance(name, str) and NAME.fullmatch(name):
        return
    plain = unicodedata.normalize("NFKD", str(name)).encode("ascii", "ignore").decode("ascii")
    legal = re.sub(r"[^A-Za-z0-9_-]+", "_", plain).strip("_")[:NAME_CHARS_MAX] or "tool"
    raise ToolDefinitionError(
        f"tool {name!r}: a name must be 1 to {NAME_CHARS_MAX} letters, digits, '_' or '-'. "
        f"Fix: name it {legal!r}."
    )


def caller(execute: Callable[..., object], parameters: Parameters, place: str) -> Caller:
    """Return how to call `execute`, decided once instead of at each call.

    Raises:
        ToolDefinitionError: `execute` takes neither the arguments nor the arguments and a context,
            or is a generator.
    """
    _refuse_generator(execute, place)
    if parameters.keywords and parameters.context:
        given = parameters.context
        return lambda value, context: execute(**_keywords(value), **{given: context})
    if parameters.keywords:
        return lambda value, _: execute(**_keywords(value))
    if accepts(execute, 2):
        return execute
    if accepts(execute, 1):
        return lambda value, _: execute(value)
    raise ToolDefinitionError(
        f"{place}: execute must take the arguments as one parameter, and may take the context as "
        f"a second, found {execute!r}. Fix: give it one or two positional parameters."
    )


def _keywords(value: object) -> dict[str, object]:
    return typing.cast("dict[str, object]", value)  # `Parameters.keywords` promises it.


class _Untitled(GenerateJsonSchema):
    """Leaves out the title that repeats a property's name: it costs tokens and says nothing."""

    def field_title_should_be_set(self, schema: object) -> bool:
        del schema
        return False


def _signature(function: Callable[..., object], place: str) -> inspect.Signature:
    if not inspect.isroutine(function):
        raise ToolDefinitionError(
            f"{place}: expected a function or a method, found {type(function).__name__}. "
            "Fix: wrap it in a `def`, or describe it with `Tool(name=…, parameters=…, execute=…)`."
        )
    _refuse_generator(function, place)
    try:
        return inspect.signature(function)
    except (ValueError, NameError) as error:
        raise ToolDefinitionError(
            f"{place}: its signature cannot be read: {error}. Fix: wrap it in a `def`."
        ) from error


def _refuse_generator(function: Callable[..., object], place: str) -> None:
    for one in (function, type(function).__call__):
        if inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one):
            raise ToolDefinitionError(
                f"{place}: expected one result, found a generator. Fix: return a value."
            )


def _hint(function: Callable[..., object], parameter: inspect.Parameter, here: str) -> object:
    problem = _unsuitable(parameter)
    if problem:
        raise ToolDefinitionError(f"{here} {problem}")
    holder = types.SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    known = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        hints = typing.get_type_hints(holder, globalns=known, include_extras=True)
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        raise ToolDefinitionError(
            f"{here}: its annotation {parameter.annotation!r} cannot be resolved: {error}. "
            "Fix: define or import the type at module level, outside `if TYPE_CHECKING`."
        ) from error
    return hints[parameter.name]


def _unsuitable(parameter: inspect.Parameter) -> str:
    name = parameter.name
    match parameter.kind:
        case inspect.Parameter.VAR_POSITIONAL:
            return f"collects (*{name}), but a model names each argument. Fix: `{name}: list[…]`."
        case inspect.Parameter.VAR_KEYWORD:
            return f"collects (**{name}), but a schema lists each one. Fix: `{name}: dict[str, …]`."
        case inspect.Parameter.POSITIONAL_ONLY:
            return "is positional-only, but arguments have names. Fix: drop the '/'."
        case _ if isinstance(parameter.default, FieldInfo):
            return f"has a Field as default. Fix: `{name}: Annotated[…, Field(…)] = value`."
        case _ if parameter.annotation is inspect.Parameter.empty:
            return _unannotated(name)
        case _:
            return ""


def _unannotated(name: str) -> str:
    if name in ("self", "cls"):
        return "belongs to a method. Fix: make the tool of a bound method, `tool(thing.method)`."
    return f"has no annotation, so its schema is unknown. Fix: `{name}: str`, or its type."


def _compile(
    hints: Mapping[str, object], defaults: Mapping[str, object], place: str
) -> tuple[TypeAdapter[object], JsonSchema]:
    # A TypedDict, because it allows every name a parameter may have (a model would refuse
    # `_x` and `model_config`), and leaves defaults to the function itself.
    fields = {
        name: typing.cast("object", typing.NotRequired[hint]) if name in defaults else hint
        for name, hint in hints.items()
    }
    try:
        return _adapt(_typed_dict(fields))
    except (PydanticUserError, NameError, TypeError) as error:
        culprit = next((name for name, hint in hints.items() if not _adapts(hint)), "")
        at = f"{place}: parameter {culprit!r}" if culprit else place
        raise ToolDefinitionError(
            f"{at}: no JSON Schema can be made of its annotation: {str(error).splitlines()[0]}. "
            "Fix: use types that JSON can express, such as str, int, list, a Literal, an Enum "
            "or a pydantic model."
        ) from error


def _typed_dict(fields: Mapping[str, object]) -> type:
    # The class form, because type checkers accept the call form with literals only.
    return types.new_class(
        "Arguments", (TypedDict,), exec_body=lambda body: body.update(__annotations__=dict(fields))
    )


def _adapt(kind: object) -> tuple[TypeAdapter[object], JsonSchema]:
    adapter: TypeAdapter[object] = TypeAdapter(typing.cast("type[object]", kind))
    return adapter, typing.cast("JsonSchema", adapter.json_schema(schema_generator=_Untitled))


def _adapts(hint: object) -> bool:
    try:
        _adapt(hint)
    except (PydanticUserError, NameError, TypeError):
        return False
    return True


def _annotate(
    schema: JsonSchema, descriptions: Mapping[str, str], defaults: Mapping[str, object]
) -> None:
    properties = typing.cast("dict[str, JsonSchema]", schema["properties"])
    for name, described in properties.items():
        if name in descriptions:
            described.setdefault("description", descriptions[name])
        if name in defaults:
            try:
                described.setdefault("default", to_jsonable_python(defaults[name]))
            except ValueError:  # A sentinel says "not given" to the function, nothing to a model.
                continue


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    try:
        parsed = docstring_parser.parse(text)
    except (docstring_parser.ParseError, IndexError):
        # Found by fuzzing: some malformed field lists break it. Prose is no reason to refuse.
        return _paragraph(inspect.cleandoc(text)), {}
    described = {
        one.arg_name: " ".join(one.description.split()) for one in parsed.params if one.description
    }
    return _paragraph(parsed.description or ""), described


def _paragraph(text: str) -> str:
    return " ".join(text.split("\n\n", 1)[0].split())


def _check_numbers(arguments: str) -> None:
    try:
        from_json(arguments, allow_inf_nan=False)
    except ValueError as error:
        raise ArgumentsRejected(not_json(arguments, str(error))) from error
