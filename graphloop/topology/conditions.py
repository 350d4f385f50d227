"""Conditions: the rules of a gate and the stop conditions of a file, as pydantic types.

rules: [{ask: refund, when: over_limit, ttl_s: 3600}, {allow: "*"}]
conditions: [{any_of: [{step_count_is: 5}, {has_tool_call: done}]}]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, cast

from pydantic import AfterValidator, Field, PlainValidator, ValidationInfo
from pydantic_core import PydanticCustomError

from ..errors import ConfigError
from ..limits import stop
from ..policy import Rule, refuse_shadowed
from .models import (
    Form,
    Positive,
    PositiveNumber,
    PredicateName,
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
from .registration import snake_case
from .tree import Loc

__all__ = ["STOPS", "STOP_MODEL", "VERDICTS", "RulesForm", "StopForm"]

VERDICTS: Final[Mapping[str, Mapping[str, Form]]] = {
    "allow": {
        "allow": Annotated[
            Tools, Field(description="The tools that may run: names, or patterns such as read_*.")
        ]
    },
    "ask": {
        "ask": Annotated[Tools, Field(description="The tools that a person decides about.")],
        "ttl_s": Annotated[
            PositiveNumber, Field(description="For how many seconds an approval may be given.")
        ],
    },
    "deny": {
        "deny": Annotated[Tools, Field(description="The tools that never run.")],
        "reason": Annotated[Said, Field(description="What the model reads when it is denied.")],
    },
}
"""The keys of each kind of rule beside `when`."""

WHEN: Final = Annotated[
    PredicateName, Field(description="The name of a registered predicate that must hold as well.")
]
RULE_MODELS: Final = {
    verdict: model_of(verdict, {**keys, "when": WHEN}, [verdict])
    for verdict, keys in VERDICTS.items()
}


def _rule(data: object, info: ValidationInfo) -> Rule:
    to, given = context_of(info), mapping_of(data)
    verdicts = [key for key in given if key in VERDICTS]
    if len(verdicts) != 1:
        hint = to.diagnostics.nearest(next(iter(given), ""), VERDICTS)
        listed = ", ".join(verdicts) or "none"
        fix = f"write {len(verdicts)} rules." if verdicts else "write `- {allow: search}`."
        wrong = fault(f"a rule has one of allow, ask and deny; found {listed}.{hint}", fix)
        raise faults({(verdicts[1], "[key]"): wrong} if verdicts else {(): wrong})
    verdict = cast("Literal['allow', 'ask', 'deny']", verdicts[0])  # One of the keys.
    read = validated(RULE_MODELS[verdict], given, to)
    said = {name: read[name] for name in ("ttl_s", "reason") if name in read}
    return Rule(verdict, read[verdict], read.get("when", ""), **said)


def _refuse_shadowed(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Return the rules; each of them can be reached by a call."""
    found: dict[Loc, str | PydanticCustomError] = {}
    for at in range(len(rules)):
        try:
            refuse_shadowed(rules[: at + 1], at)
        except ConfigError as error:
            said, _, fix = str(error).partition(" Fix: ")
            found[at,] = fault(said, fix)
    if found:
        raise faults(found)
    return rules


RulesForm: TypeAlias = Annotated[
    tuple[
        Annotated[
            Rule,
            PlainValidator(
                _rule,
                json_schema_input_type=Union[tuple(model.form for model in RULE_MODELS.values())],  # noqa: UP007
            ),
        ],
        ...,
    ],
    Field(min_length=1),
    AfterValidator(_refuse_shadowed),
]
"""The rules of one gate."""


STOPS: Final[Mapping[str, Callable[[Any], stop.Condition]]] = {
    snake_case(made): made
    for made in (
        *(stop.StepCountIs, stop.HasToolCall, stop.TotalTokensExceed, stop.CostExceeds),
        *(stop.DurationExceeds, stop.AnyOf, stop.AllOf, stop.Not),
    )
}


def _condition(data: object, info: ValidationInfo) -> stop.Condition:
    to, given = context_of(info), mapping_of(data)
    word = next(iter(given), "")
    if len(given) != 1 or word not in STOPS:
        found = ", ".join(given) or "nothing"
        raise fault(
            f"expected one of the stop conditions {', '.join(STOPS)}; found {found}."
            f"{to.diagnostics.nearest(word, STOPS)}",
            "write `{step_count_is: 5}`.",
        )
    read = validated(STOP_MODEL, given, to)
    return built(lambda: STOPS[word](read[word]), f"`{word}`")


StopForm: TypeAlias = Annotated[
    stop.Condition, PlainValidator(_condition), reference("stop_condition")
]
Stops: TypeAlias = Annotated[tuple[StopForm, ...], Field(min_length=1)]
STOP_MODEL: Final = model_of(
    "stop_condition",
    {
        "step_count_is": Positive,
        "has_tool_call": Said,
        "total_tokens_exceed": Positive,
        "cost_exceeds": PositiveNumber,
        "duration_exceeds": PositiveNumber,
        "any_of": Stops,
        "all_of": Stops,
        "not": StopForm,
    },
    [],
    minProperties=1,
    maxProperties=1,
)
