"""Stop conditions in a file: `{step_count_is: 5}`, `{any_of: [{has_tool_call: done}, …]}`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast, final

from .. import stop
from ..errors import ConfigError
from .forms import Data, Form, Many, Number, Reading, Schema, Unwritable, Whole, Writing
from .names import CalledForm
from .record import mapping_of
from .tree import Value

__all__ = ["ConditionForm"]


class _Kind(NamedTuple):
    """One kind of condition: its class, the field that says how much, and the field's form."""

    make: Callable[[Any], stop.Condition]
    field: str
    form: Form


SIMPLE: Final[Mapping[str, _Kind]] = {
    "step_count_is": _Kind(stop.StepCountIs, "count", Whole(1)),
    "has_tool_call": _Kind(stop.HasToolCall, "tool", CalledForm("has_tool_call")),
    "total_tokens_exceed": _Kind(stop.TotalTokensExceed, "tokens_max", Whole(1)),
    "cost_exceeds": _Kind(stop.CostExceeds, "usd_max", Number(positive=True)),
    "duration_exceeds": _Kind(stop.DurationExceeds, "seconds_max", Number(positive=True)),
}
WORDS: Final = (*SIMPLE, "any_of", "all_of", "not")
REF: Final[Schema] = {"$ref": "#/$defs/stop_condition"}


@final
@dataclass(frozen=True)
class ConditionForm:
    """One condition; the schema names the definition that stands beside it."""

    def read(self, value: Value, to: Reading) -> stop.Condition:
        """Return the condition."""
        entries = mapping_of(value, "a stop condition", to)
        if len(entries) != 1 or entries[0].key not in WORDS:
            found = ", ".join(one.key for one in entries) or "nothing"
            hint = to.complaints.nearest(entries[0].key, WORDS) if entries else ""
            raise to.complaints.misread(
                value.mark,
                f"a stop condition is one of {', '.join(WORDS)}; found {found}.{hint}",
                "write `{step_count_is: 5}`.",
            )
        word, inner = entries[0].key, entries[0].value
        kind = _kind(word)
        try:
            return kind.make(kind.form.read(inner, to))
        except ConfigError as error:
            fix = f"mend `{word}`."
            raise to.complaints.misread(inner.mark, f"{error}.", fix) from error

    def write(self, value: object, to: Writing) -> Data:
        """Return what stands for the condition."""
        for word in WORDS:
            kind = _kind(word)
            told: object = getattr(value, kind.field, None)
            if _is(value, kind, told):
                return {word: kind.form.write(told, to)}
        raise Unwritable(f"{value!r:.80} is no stop condition of the library")

    @property
    def schema(self) -> Schema:
        """A reference to `definition`."""
        return REF

    @property
    def definition(self) -> Schema:
        """The JSON Schema of a condition."""
        return {
            "type": "object",
            "properties": {word: _kind(word).form.schema for word in WORDS},
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
        }


def _is(value: object, kind: _Kind, told: object) -> bool:
    """Whether a value is a condition of a kind, and nothing else is said of it."""
    of: object = kind.make
    return type(value) is of and value == kind.make(told)


def _kind(word: str) -> _Kind:
    match word:
        case "any_of" | "all_of":
            make = stop.AnyOf if word == "any_of" else stop.AllOf
            return _Kind(make, "conditions", Many(ConditionForm(), least=1))
        case "not":
            return _Kind(stop.Not, "condition", cast("Form", ConditionForm()))
        case _:
            return SIMPLE[word]
