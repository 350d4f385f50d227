"""Make the parameters of a tool from a function's signature and docstring.

Extra keys in arguments are dropped, and pydantic converts values ("5" is accepted for an integer):
models make such mistakes, and a refused call costs a turn. A parameter that no schema can
describe is refused by name when the tool is defined. Signatures are read once, at definition.
"""

from __future__ import annotations

import builtins
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module

import pydantic
from pydantic import PydanticUserError
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from ..errors import ToolDefinitionError
from .dependencies import deps_of_context
from .schema import Form, JsonSchema, Parameters, arguments_parser, schema_of, schema_text

if typing.TYPE_CHECKING:
    import docstring_parser

__all__ = ["accepts", "function_parameters", "is_async", "refuse_generator"]

FINITE: typing.Final[pydantic.ConfigDict] = {"allow_inf_nan": False}
"""Pydantic must refuse "NaN" and "Infinity" as strings, too: JSON has no such numbers."""

PLAIN: typing.Final[Mapping[object, type]] = {
    kind.__name__: kind for kind in (str, int, float, bool)
}
"""The types of most parameters, by name: none of them needs an evaluation or a trial."""


def function_parameters(function: Callable[..., object], injected: type) -> Parameters:
    """Return the parameters of a function that a model fills in.

    A parameter of the type `injected` is left out: the driver passes its value.

    Raises:
        ToolDefinitionError: a parameter cannot be described to a model; the message names it.
    """
    place = f"tool function {getattr(function, '__qualname__', repr(function))!r}"
    hints: dict[str, object] = {}
    defaults: dict[str, object] = {}
    context = ""
    deps: object = object
    for parameter in _signature(function, place).parameters.values():
        here = f"{place}: parameter {parameter.name!r}"
        hint = _hint_of(function, parameter, here)
        is_context, kind = deps_of_context(hint, injected)
        if is_context:
            if context:
                raise ToolDefinitionError(
                    f"{here} is a second {injected.__name__}, after {context!r}. "
                    "Fix: keep one of them."
                )
            context, deps = parameter.name, kind
            continue
        hints[parameter.name] = hint
        if parameter.default is not inspect.Parameter.empty:
            defaults[parameter.name] = parameter.default
    make = cache(partial(_make_form, function.__doc__ or "", hints, defaults, place))
    if not all(map(_is_plain, hints.values())):
        make()  # Pydantic may refuse such an annotation, and the definition must raise its error.
    return Parameters(make, keywords=True, context=context, deps=deps)


def _make_form(
    docstring: str, hints: Mapping[str, object], defaults: Mapping[str, object], place: str
) -> Form:
    """Return the form of a function's parameters; slow, because pydantic compiles it."""
    summary, descriptions = _read_docstring(docstring)
    adapter, schema = _compile(hints, defaults, place)
    shown = {  # For `x: str = None` no default is shown: the validator would refuse null.
        name: default
        for name, default in defaults.items()
        if default is not None or _adapt(hints[name])[0].validator.isinstance_python(None)
    }
    _annotate(schema, descriptions, shown)
    parse = arguments_parser(adapter.validator.validate_json)
    return Form(schema_text(schema, place), parse, summary)


def _is_plain(hint: object) -> bool:
    """Whether pydantic surely has a validator and a JSON Schema for this annotation."""
    parts = typing.get_args(hint)
    match typing.get_origin(hint):
        case None:
            return hint is types.NoneType or any(hint is kind for kind in PLAIN.values())
        case typing.Literal:
            return all(type(part) in (str, int, bool) for part in parts)
        case typing.Union | types.UnionType:
            return all(map(_is_plain, parts))
        case builtins.list:
            return len(parts) == 1 and _is_plain(parts[0])
        case builtins.dict:
            return len(parts) == 2 and parts[0] is str and _is_plain(parts[1])
        case _:
            return False


def accepts(function: object, count: int) -> bool:
    """Whether `function` can be called with `count` positional arguments."""
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return count == 1  # Some builtins have no readable signature.
    return True


def is_async(function: Callable[..., object]) -> bool:
    """Whether a call of `function` returns a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        type(function).__call__
    )


def refuse_generator(function: Callable[..., object], place: str) -> None:
    """Refuse a generator function: a tool returns one result.

    Raises:
        ToolDefinitionError: the function, or the object's `__call__`, is a generator function.
    """
    for called in (function, type(function).__call__):
        if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
            raise ToolDefinitionError(
                f"{place}: expected one result, found a generator. Fix: return a value."
            )


def _signature(function: Callable[..., object], place: str) -> inspect.Signature:
    if not inspect.isroutine(function):
        raise ToolDefinitionError(
            f"{place}: expected a function or a method, found {type(function).__name__}. "
            "Fix: wrap it in a `def`, or describe it with `Tool(name=…, parameters=…, execute=…)`."
        )
    refuse_generator(function, place)
    try:
        return inspect.signature(function)
    except (ValueError, NameError) as error:
        raise ToolDefinitionError(
            f"{place}: its signature cannot be read: {error}. Fix: wrap it in a `def`."
        ) from error


def _hint_of(function: Callable[..., object], parameter: inspect.Parameter, here: str) -> object:
    problem = _unsuitable_text(parameter)
    if problem:
        raise ToolDefinitionError(f"{here} {problem}")
    known = getattr(inspect.unwrap(function), "__globals__", {})
    annotation: object = parameter.annotation
    if isinstance(annotation, str) and annotation in PLAIN and annotation not in known:
        return PLAIN[annotation]
    holder = types.SimpleNamespace(__annotations__={parameter.name: annotation})
    try:
        hints = typing.get_type_hints(holder, globalns=known, include_extras=True)
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        raise ToolDefinitionError(
            f"{here}: its annotation {parameter.annotation!r} cannot be resolved: {error}. "
            "Fix: define or import the type at module level, outside `if TYPE_CHECKING`."
        ) from error
    return hints[parameter.name]


def _unsuitable_text(parameter: inspect.Parameter) -> str:
    name = parameter.name
    match parameter.kind:
        case inspect.Parameter.VAR_POSITIONAL:
            return f"collects (*{name}), but a model names each argument. Fix: `{name}: list[…]`."
        case inspect.Parameter.VAR_KEYWORD:
            return f"collects (**{name}), but a schema lists each one. Fix: `{name}: dict[str, …]`."
        case inspect.Parameter.POSITIONAL_ONLY:
            return "is positional-only, but arguments have names. Fix: drop the '/'."
        case _ if isinstance(parameter.default, _field_type()):
            return f"has a Field as default. Fix: `{name}: Annotated[…, Field(…)] = value`."
        case _ if parameter.annotation is inspect.Parameter.empty:
            return _unannotated_text(name)
        case _:
            return ""


@cache
def _field_type() -> type:
    """Return the type of a pydantic `Field(…)`; its module is slow to import."""
    field: object = pydantic.Field()
    return type(field)


def _unannotated_text(name: str) -> str:
    if name in ("self", "cls"):
        return "belongs to a method. Fix: make the tool of a bound method, `tool(thing.method)`."
    return f"has no annotation, so its schema is unknown. Fix: `{name}: str`, or its type."


def _compile(
    hints: Mapping[str, object], defaults: Mapping[str, object], place: str
) -> tuple[pydantic.TypeAdapter[object], JsonSchema]:
    # Not a pydantic model: it would refuse parameter names such as `_x` and `model_config`. A
    # TypedDict allows every name, and leaves defaults to the function itself.
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
    # Not `TypedDict(name, fields)`: type checkers accept that form with literals only.
    return types.new_class(
        "Arguments",
        (TypedDict,),
        exec_body=lambda body: body.update(
            __annotations__=dict(fields), __pydantic_config__=FINITE
        ),
    )


def _adapt(kind: object) -> tuple[pydantic.TypeAdapter[object], JsonSchema]:
    adapter: pydantic.TypeAdapter[object] = pydantic.TypeAdapter(typing.cast("type[object]", kind))
    return adapter, schema_of(adapter)


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
            except ValueError:  # A sentinel default cannot be shown to a model.
                continue


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    if "\n" not in text.strip() or not (":" in text or "--" in text):
        # Such a text describes no parameters; the parser would try four docstring styles.
        return _paragraph(inspect.cleandoc(text)), {}
    # Imported here: few docstrings need the parser, and its import is slow.
    parser = import_module("docstring_parser")
    try:
        parsed: docstring_parser.Docstring = parser.parse(text)
    except (parser.ParseError, IndexError):
        # Malformed field lists break the parser (found by fuzzing); a tool may still have them.
        return _paragraph(inspect.cleandoc(text)), {}
    described = {
        parameter.arg_name: " ".join(parameter.description.split())
        for parameter in parsed.params
        if parameter.description
    }
    return _paragraph(parsed.description or ""), described


def _paragraph(text: str) -> str:
    return " ".join(text.split("\n\n", 1)[0].split())
