"""Arguments: what an adversarial model writes into a call: JSON that fits its schema, or not.

Only what schemas of tools are usually made of is understood; the rest is a text. That is enough:
in a simulation the check of the arguments is the adversary's too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json import dumps, loads
from typing import Final, cast

from .choices import Choices

__all__ = ["fits", "fitting", "unfit"]

DEPTH_MAX: Final = 4
UNFIT: Final = ("{}", "", '{"text": ', "null", "[]", '{"text": {"deep": [1, 2]}}', "\ud83d{", "{}x")
TEXTS: Final = ("a", "", "b c", "ä\n\u2028", '["a", "b"]')


def fitting(schema: str, choices: Choices) -> str:
    """Return arguments, as JSON text, that fit a tool's schema."""
    return dumps(_value(loads(schema), choices, 0))


def unfit(choices: Choices) -> str:
    """Return arguments that fit hardly any schema."""
    return choices.pick(UNFIT)


def fits(arguments: str) -> bool:
    """Whether these are arguments at all: a JSON object."""
    try:
        return isinstance(loads(arguments), dict)
    except ValueError:
        return False


def _value(  # noqa: PLR0911 - one way out for each type of JSON
    schema: object, choices: Choices, depth: int
) -> object:
    if not isinstance(schema, Mapping) or depth > DEPTH_MAX:
        return "deep"
    told = cast("Mapping[str, object]", schema)  # A key of JSON is a string.
    if "const" in told:
        return told["const"]
    for key in ("enum", "anyOf", "oneOf"):
        options = told.get(key)
        if isinstance(options, Sequence) and options and not isinstance(options, str):
            chosen = choices.pick(cast("Sequence[object]", options[:255]))
            return chosen if key == "enum" else _value(chosen, choices, depth + 1)
    match told.get("type"):
        case "object":
            return _object(told, choices, depth)
        case "array":
            items = told.get("items", {"type": "string"})
            return [_value(items, choices, depth + 1) for _ in range(choices.draw(4))]
        case "boolean":
            return not choices.draw(2)  # Yes ends most loops, so it is the simpler one.
        case "integer" | "number":
            return choices.pick((0, 1, -1, 7, 10**9))
        case "null":
            return None
        case _:
            return choices.pick(TEXTS)


def _object(schema: Mapping[str, object], choices: Choices, depth: int) -> dict[str, object]:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping):
        return {}
    needed = cast("Sequence[object]", required) if isinstance(required, Sequence) else ()
    given = cast("Mapping[str, object]", properties)
    return {
        name: _value(one, choices, depth + 1)
        for name, one in given.items()
        if name in needed or choices.chance(2)
    }
