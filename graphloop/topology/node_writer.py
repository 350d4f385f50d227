"""Node writer: a node as the plain data that its model reads as an equal node.

Whatever says nothing new is left out: a parameter without which the node would be the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeAlias, cast

import msgspec
from pydantic import ValidationError

from ..errors import ConfigError
from ..node_protocol import is_node
from ..outcomes import Outcome, outcome_name
from ..policy import Rule
from .conditions import STOPS
from .diagnostics import FAULT, Diagnostics
from .included import Included, graphs_run
from .models import Reading
from .node_models import (
    NODE,
    SHORT,
    AnyNode,
    NodeKind,
    Renamed,
    class_fields,
    library_kind,
    node_kind,
)
from .registration import LIBRARY, RegisteredNames
from .tree import DIGITS_MAX

__all__ = ["Data", "UnwritableError", "node_data"]

Data: TypeAlias = "bool | int | float | str | list[Data] | dict[str, Data] | None"

WHOLE_END: Final = 10**DIGITS_MAX
STOP_WORDS: Final[Mapping[object, str]] = {made: word for word, made in STOPS.items()}


class UnwritableError(Exception):
    """A value cannot be written into a file; the message says why, and what to do."""


def node_data(node: AnyNode, names: RegisteredNames) -> dict[str, Data]:
    """Return what stands in a file for a node, under its name.

    Raises:
        UnwritableError: no file can hold the node.
    """
    data = _node(node, names, is_part=False)
    to = Reading(Diagnostics("the node"), names, graphs_run([node]))
    try:
        read = NODE.validate_python({**data, "name": node.name}, context=to)
    except ValidationError as error:
        raise UnwritableError("; ".join(map(_reason, error.errors(include_url=False)))) from error
    if read != node:
        told = (
            f"its text, {data!r:.200}, reads as another: a class of your own has no name in a file"
        )
        raise UnwritableError(f"{node!r:.80} has more to it than a file can say ({told})")
    return data


def _reason(details: Mapping[str, Any]) -> str:
    if details["type"] == FAULT:
        return f"{details['msg']} {details['ctx']['fix']}"
    place = ".".join(map(str, details["loc"]))
    return f"`{place}`: {details['msg']}; found {details['input']!r:.60}"


def _node(node: AnyNode, names: RegisteredNames, *, is_part: bool) -> dict[str, Data]:
    """Return a node; the name of one within another, too, unless it is its kind's."""
    plain = node.node if isinstance(node, Included) else node
    name = str(getattr(plain, "name", ""))
    for kind in _kinds(names):
        if type(plain) is kind.made:
            keys = {key: key in kind.model.needed for key in kind.model.forms if key != "use"}
            del keys["name"]
            if is_part:
                return {
                    "use": kind.use,
                    **_fields(plain, kind.make, {**keys, "name": False}, names),
                }
            return {"use": kind.use, **_fields(plain, partial(kind.make, name=name), keys, names)}
    for use, own in _registered(names):
        if own == plain or (isinstance(own, Renamed) and own.renamed(name) == plain):
            return {"use": use, "name": name} if is_part and own.name != name else {"use": use}
    raise UnwritableError(
        f"{type(plain).__name__} {name!r} is made in Python and is not registered, so no file "
        "could name it: register it with @registry.node"
    )


def _kinds(names: RegisteredNames) -> Iterator[NodeKind]:
    yield from map(library_kind, LIBRARY)
    for use in names.known("node"):
        if isinstance(found := names.find("node", use), type):
            yield node_kind(use, found)


def _registered(names: RegisteredNames) -> Iterator[tuple[str, AnyNode]]:
    """Yield the nodes that are registered as they are, not as classes."""
    for use in names.known("node"):
        if is_node(found := names.find("node", use)):
            yield use, found


def _fields(
    value: object, make: Callable[..., object], keys: Mapping[str, bool], names: RegisteredNames
) -> dict[str, Data]:
    """Return the parameters of a value; `keys` says of each whether it has to be there."""
    given = {key: getattr(value, key, None) for key in keys}
    written: dict[str, Data] = {}
    for key, must in keys.items():
        without = {other: each for other, each in given.items() if other != key}
        if not must and _makes(make, without, value):
            given = without
            continue
        try:
            written[key] = _data(given[key], names, key)
        except UnwritableError as error:
            raise UnwritableError(f"`{key}`: {error}") from error
    return written


def _makes(make: Callable[..., object], given: Mapping[str, object], value: object) -> bool:
    try:
        return bool(make(**given) == value)
    except (ConfigError, TypeError):
        return False


def _data(value: object, names: RegisteredNames, key: str = "") -> Data:
    """Return what stands at a key for a value."""
    if isinstance(value, int | float):
        return value if isinstance(value, bool) else _number(value)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)  # isinstance cannot tell what is in it.
        return {str(_data(name, names)): _data(each, names) for name, each in entries.items()}
    if isinstance(value, tuple | list | frozenset):
        if key == "caps":
            return _data(dict(cast("Iterable[tuple[object, object]]", value)), names)
        items = [_data(item, names) for item in cast("Iterable[object]", value)]
        items = sorted(items, key=str) if isinstance(value, frozenset) else items
        return _single(items) if key == "after" else items
    return _made(value, names)


def _single(items: list[Data]) -> Data:
    return items[0] if len(items) == 1 else items


def _made(value: object, names: RegisteredNames) -> Data:
    """Return an outcome, a rule, a node, a stop condition, or another value with fields."""
    made: type = type(value)
    if isinstance(value, type):
        return outcome_name(cast("type[Outcome]", value))
    if isinstance(value, Rule):
        said = {"when": value.condition, "ttl_s": value.ttl_s, "reason": value.reason}
        kept = {name: _data(each, names) for name, each in said.items() if each}
        return {value.verdict: _single([*value.tools]), **kept}
    if is_node(value):
        return _node(value, names, is_part=True)
    if word := STOP_WORDS.get(made):
        return {word: _data(getattr(value, class_fields(made)[0][0]), names)}
    if not dataclasses.is_dataclass(made) and not issubclass(made, msgspec.Struct):
        raise UnwritableError(f"{value!r:.60} has no form in a file")
    written = _fields(value, made, dict(class_fields(made)), names)
    short = SHORT.get(made, "")
    return written[short] if [*written] == [short] else written


def _number(number: float) -> int | float:
    """Return a number as it is written: as a whole one, if it is one and not too long."""
    if abs(number) < WHOLE_END:
        return int(number) if number == int(number) else number
    try:
        if float(number) == number:
            return float(number)
    except OverflowError:
        pass  # A whole number that is longer than any other.
    raise UnwritableError(f"{number!r:.60} has more than {DIGITS_MAX} digits")
