"""Node parameters: what the library's nodes are given, held against their annotations.

Readers of files look at each value that they read. What Python hands over is looked at here, for
every node alike, as soon as a graph is made: no run begins, and nothing is paid, before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import (
    Any,
    Final,
    Literal,
    NamedTuple,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Struct
from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import SchemaError

from ..errors import Problem, nearest
from ..node_protocol import is_node, unwrapped
from ..nodes.gate import Gate
from ..policy import Policy, Rule

__all__ = ["odd_parameters"]

NODES: Final = Gate.__module__.rpartition(".")[0] + "."
PACKAGE: Final = __name__.partition(".")[0] + "."
SHORT: Final = 40
"""How many characters of a text are shown in a fix."""
STRICT: Final = ConfigDict(strict=True, arbitrary_types_allowed=True)


class _Field(NamedTuple):
    """A parameter: its type, how that is written, and what it is where nobody gives it."""

    hint: object
    written: str
    default: object


class _Odd(NamedTuple):
    """A parameter that is not of its type: which, what was expected and found, and the fix."""

    parameter: str
    found: str
    fix: str


def odd_parameters(edges: object) -> Iterator[Problem]:
    """Yield the parameters of a table's nodes that are not of their types, at any depth.

    Nodes of other classes than the library's, and those derived from them, are left alone.
    """
    # What is no table, or no node, is refused by the graph itself.
    given: Iterable[object] = cast("Any", edges) if isinstance(edges, Mapping) else ()
    for node in unwrapped(filter(is_node, given)):
        if any(_is_record(one) and one.__module__.startswith(NODES) for one in type(node).__mro__):
            for odd in _odd(node, ""):
                yield Problem(f"node {node.name!r}", f"`{odd.parameter}` {odd.found}", odd.fix)


def _odd(record: object, within: str) -> Iterator[_Odd]:
    """Yield what is odd of a node, or of a value of the library that it is given."""
    for name, one in _fields(cast("Any", type(record))).items():
        # A class that derives from the library's may set its own fields later, or never.
        value: object = getattr(record, name, one.default)
        if value is one.default:
            continue
        path = f"{within}{name}"
        if error := _refused(one.hint, value):
            yield _told(path, one, value, error)
            continue
        several = isinstance(value, tuple)
        parts = cast("tuple[object, ...]", value) if several else (value,)
        for at, part in enumerate(parts):
            kind = type(part)
            if _is_record(kind) and kind.__module__.startswith(PACKAGE) and not is_node(part):
                yield from _odd(part, f"{path}[{at}]." if several else f"{path}.")


def _told(path: str, field: _Field, value: object, error: ValidationError) -> _Odd:
    first = error.errors(include_url=False, include_context=False)[0]
    odd: object = first["input"]
    words = get_args(field.hint) if get_origin(field.hint) is Literal else ()
    expected = f"is one of {', '.join(map(repr, words))}" if words else f"is a {field.written}"
    inside = odd is not value
    found = f"{odd!r:.80} in it" if inside else f"{odd!r:.80}"
    hint = nearest(odd, words) if isinstance(odd, str) else ""
    return _Odd(path, f"{expected}; found {found}.{hint}", _fix(path, field.hint, value, odd))


def _fix(path: str, hint: object, value: object, odd: object) -> str:
    """Return how to mend a parameter, by what is expected and what was found."""
    name, within = path.rpartition(".")[2], get_args(hint)
    records = [one for one in (hint, *within) if isinstance(one, type) and _is_record(one)]
    if isinstance(odd, Policy) or Rule in within:
        written = f"{name}=(allow(…) | deny(…)).rules"
        fix = f"write `{written}`; a policy with `when` is given to the runs (`gate=`)."
    elif _fits(hint, (value,)):
        written = f"{value!r}" if isinstance(value, str) and len(value) < SHORT else "…"
        fix = f"write `{name}=({written},)`."
    elif get_origin(hint) is Literal:
        fix = "choose one of these." if within[1:] else f"leave `{name}` out."
    elif records:
        written = f"{odd!r}" if isinstance(odd, str) and _makes(records[0], odd) else "…"
        fix = f"write `{records[0].__name__}({written})`."
    elif str in {hint, *within} and (odd is not value or not _holds_several(hint)):
        fix = _text_fix(name, odd)
    elif callable(odd):
        fix = "give values of this type; a function is invoked by its name (`callback=`)."
    else:
        fix = "write True or False." if hint is bool else "give what is of this type."
    return fix


def _text_fix(name: str, odd: object) -> str:
    label: object = getattr(odd, "label", None)
    if isinstance(label, str):
        return f"write the model's label, {label!r}, and give the model to the runs (`model=`)."
    if callable(odd) and name == "callback":
        return "write a name, and give the function to the runs (`callbacks=`)."
    return "write a text, in quotes."


def _makes(kind: type, given: str) -> bool:
    """Whether a text is all that a value of a class is made of."""
    try:
        made: object = kind(given)
    except (TypeError, ValueError):
        return False
    return not any(_odd(made, ""))


def _fits(hint: object, value: object) -> bool:
    return _adapter(hint) is not None and _refused(hint, value) is None


def _refused(hint: object, value: object) -> ValidationError | None:
    """Return why a value is not of a type; None where it is, or only its class knows."""
    adapter = _adapter(hint)
    if adapter is None:
        return None
    try:
        adapter.validate_python(value)
    except PydanticUserError:  # What is within the type has annotations that cannot be read.
        return None
    except ValidationError as error:
        if not (isinstance(value, tuple) and _takes_list(hint)):
            return error
    else:
        return None
    # Whoever made the node has given a list, which is kept as a tuple.
    return _refused(hint, list(cast("tuple[object, ...]", value)))


def _takes_list(hint: object) -> bool:
    return any((get_origin(one) or one) is list for one in (hint, *get_args(hint)))


def _holds_several(hint: object) -> bool:
    """Whether values of a type hold others, and are no texts themselves."""
    return get_origin(hint) not in {None, Union, UnionType}


def _is_record(kind: type) -> bool:
    own = "__dataclass_fields__" in vars(kind) and is_dataclass(kind)
    return own or (issubclass(kind, Struct) and kind is not Struct)


@cache
def _fields(kind: type) -> Mapping[str, _Field]:
    """Return the parameters of a class; none where its annotations cannot be read."""
    try:
        hints = get_type_hints(kind)
    except (NameError, TypeError):
        return {}
    of: Any = kind  # Only records come here.
    # What only the making of a value needs (`InitVar`) is no field of it.
    names: Iterable[str] = (
        of.__struct_fields__ if issubclass(kind, Struct) else [one.name for one in fields(of)]
    )
    written: dict[str, object] = {}
    for base in reversed(kind.__mro__):
        written |= vars(base).get("__annotations__", {})
    return {name: _Field(hints[name], str(written[name]), getattr(of, name, ...)) for name in names}


@cache
def _adapter(hint: object) -> TypeAdapter[object] | None:
    """Return what looks at values of a type; None for types that nobody but their class knows."""
    of: Any = hint  # The type that it is of is known only when it runs.
    try:
        return TypeAdapter[object](of, config=STRICT)
    except (PydanticUserError, SchemaError):
        return None
