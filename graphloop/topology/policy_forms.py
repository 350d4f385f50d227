"""The rules of a gate in a file: `- {ask: refund, when: over_limit, ttl_s: 3600}`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast, final

from ..policy import Rule, refuse_shadowed
from .forms import Data, Form, Many, NamedTool, Number, Reading, Schema, Text, Unwritable, Writing
from .names import PredicateForm
from .record import Parameter, mapping_of, read_fields
from .tree import Items, Scalar, Value

__all__ = ["RULES", "RuleForm"]

TOOLS: Final = Many(Text(filled=True), least=1, single=True)

KEYS: Final[Mapping[str, Mapping[str, Form]]] = {
    "allow": {"when": PredicateForm()},
    "ask": {"when": PredicateForm(), "ttl_s": Number(positive=True)},
    "deny": {"when": PredicateForm(), "reason": Text(filled=True)},
}
DOCS: Final = {
    "allow": "The tools that may run: names, or patterns such as read_*.",
    "ask": "The tools that a person decides about.",
    "deny": "The tools that never run.",
    "when": "The name of a registered predicate that must hold as well.",
    "ttl_s": "For how many seconds an approval may be given.",
    "reason": "What the model reads when it is denied.",
}


@final
@dataclass(frozen=True)
class RuleForm:
    """One rule."""

    def read(self, value: Value, to: Reading) -> Rule:
        """Return the rule."""
        entries = mapping_of(value, "a rule", to)
        verdicts = [one for one in entries if one.key in KEYS]
        if len(verdicts) != 1:
            listed = ", ".join(one.key for one in verdicts) or "none"
            hint = to.complaints.nearest(entries[0].key if entries else "", KEYS)
            raise to.complaints.misread(
                verdicts[1].mark if verdicts else value.mark,
                f"a rule has one of allow, ask and deny; found {listed}.{hint}",
                f"write {len(verdicts)} rules." if verdicts else "write `- {allow: search}`.",
            )
        verdict = cast("Literal['allow', 'ask', 'deny']", verdicts[0].key)  # One of the keys.
        given = read_fields(
            f"a rule with `{verdict}`", _parameters(verdict), entries, value.mark, to
        )
        to.ruled.extend(_named(verdicts[0].value))
        return Rule(
            verdict,
            cast("tuple[str, ...]", given[verdict]),  # The form has read it.
            condition=str(given.get("when", "")),
            ttl_s=cast("float | None", given.get("ttl_s")),
            reason=str(given.get("reason", "")),
        )

    def write(self, value: object, to: Writing) -> Data:
        """Return what stands for the rule."""
        assert isinstance(value, Rule)
        written: dict[str, Data] = {value.verdict: TOOLS.write(value.tools, to)}
        said = {"when": value.condition, "ttl_s": value.ttl_s, "reason": value.reason}
        forms = KEYS[value.verdict]
        for key, one in said.items():
            if one in {None, ""}:
                continue
            if key not in forms:
                raise Unwritable(f"a rule with `{value.verdict}` has no `{key}`; found {one!r:.60}")
            written[key] = forms[key].write(one, to)
        return written

    @property
    def schema(self) -> Schema:
        """The JSON Schema of a rule."""
        return {"oneOf": [_schema(verdict) for verdict in KEYS]}


def _reached(rules: list[object]) -> None:
    """Refuse the last of the rules if those before it decide all its calls."""
    refuse_shadowed(cast("list[Rule]", rules), len(rules) - 1)  # The form has read them.


RULES: Final = Many(RuleForm(), least=1, fits=_reached)
"""The rules of one gate."""


def _named(value: Value) -> Iterator[NamedTool]:
    """Yield the names and patterns of a rule, each with its place."""
    for one in value.items if isinstance(value, Items) else (value,):
        if isinstance(one, Scalar):
            yield NamedTool(str(one.value), one.mark)


def _parameters(verdict: str) -> dict[str, Parameter]:
    first = Parameter(TOOLS, needed=True, doc=DOCS[verdict])
    rest = {key: Parameter(form, doc=DOCS[key]) for key, form in KEYS[verdict].items()}
    return {verdict: first, **rest}


def _schema(verdict: str) -> Schema:
    return {
        "type": "object",
        "properties": {key: one.schema for key, one in _parameters(verdict).items()},
        "required": [verdict],
        "additionalProperties": False,
    }
