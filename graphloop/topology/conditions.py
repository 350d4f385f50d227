"""Conditions: read the gate rules, stop conditions and temporal rules of a topology file.

rules: [{ask: refund, when: over_limit, ttl_s: 3600}, {allow: "*"}]
conditions: [{any_of: [{step_count_is: 5}, {has_tool_call: done}]}]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias, Union

from pydantic import AfterValidator, Field, PlainValidator, ValidationInfo
from pydantic_core import PydanticCustomError

from ..errors import ConfigError, Problem
from ..limits import stop
from ..policy import Rule, refuse_shadowed
from ..rules import Rules, TemporalRule, rules_from_data
from .compose import compose
from .diagnostics import Diagnostics, ParseError
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
from .tree import Loc, Mark, Value, plain_data

__all__ = ["STOPS", "STOP_MODEL", "RulesForm", "StopForm", "read_rules", "rules_of_texts"]

Verdict: TypeAlias = Literal["allow", "ask", "deny"]


def _with_description(form: Form, description: str) -> Form:
    return Annotated[form, Field(description=description)]


VERDICTS: Final[Mapping[Verdict, Mapping[str, Form]]] = {
    "allow": {
        "allow": _with_description(
            Tools, "The tools that may run: names, or patterns such as read_*."
        ),
    },
    "ask": {
        "ask": _with_description(Tools, "The tools that a person decides about."),
        "ttl_s": _with_description(
            PositiveNumber, "For how many seconds an approval may be given."
        ),
    },
    "deny": {
        "deny": _with_description(Tools, "The tools that never run."),
        "reason": _with_description(Said, "The text that the model reads in place of a result."),
    },
}
"""For each verdict, the keys of a gate rule with that verdict, except `when`."""

WHEN: Final = _with_description(
    PredicateName, "The name of a registered predicate that must hold as well."
)
RULE_MODELS: Final = {
    verdict: model_of(verdict, {**keys, "when": WHEN}, [verdict])
    for verdict, keys in VERDICTS.items()
}


def _make_rule(data: object, info: ValidationInfo) -> Rule:
    reading, fields = context_of(info), mapping_of(data)
    verdicts: list[Verdict] = [verdict for verdict in VERDICTS if verdict in fields]
    if len(verdicts) != 1:
        hint = reading.diagnostics.nearest(next(iter(fields), ""), VERDICTS)
        listed = ", ".join(verdicts) or "none"
        fix = f"write {len(verdicts)} rules." if verdicts else "write `- {allow: search}`."
        problem = fault(f"expected one of allow, ask and deny, found {listed}.{hint}", fix)
        raise faults({(verdicts[1], "[key]"): problem} if verdicts else {(): problem})
    [verdict] = verdicts
    values = validated(RULE_MODELS[verdict], fields, reading)
    tools, condition = values.pop(verdict), values.pop("when", "")
    return Rule(verdict, tools, condition, **values)


def _refuse_shadowed(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Return the rules unchanged; raise an error if earlier rules make a rule unreachable."""
    problems: dict[Loc, str | PydanticCustomError] = {}
    for at in range(len(rules)):
        try:
            refuse_shadowed(rules[: at + 1], at)
        except ConfigError as error:
            problem, _, fix = str(error).partition(" Fix: ")
            problems[at,] = fault(problem, fix)
    if problems:
        raise faults(problems)
    return rules


RuleForm: Final[Form] = Annotated[
    Rule,
    PlainValidator(
        _make_rule,
        json_schema_input_type=Union[tuple(model.form for model in RULE_MODELS.values())],  # noqa: UP007
    ),
]
RulesForm: TypeAlias = Annotated[
    tuple[RuleForm, ...], Field(min_length=1), AfterValidator(_refuse_shadowed)
]
"""The pydantic type of one gate's list of rules."""


STOPS: Final[Mapping[str, Callable[[Any], stop.StopCondition]]] = {
    snake_case(made): made
    for made in (
        *(stop.StepCountIs, stop.HasToolCall, stop.TotalTokensExceed, stop.CostExceeds),
        *(stop.DurationExceeds, stop.AnyOf, stop.AllOf, stop.Not),
    )
}


def _make_condition(data: object, info: ValidationInfo) -> stop.StopCondition:
    reading, fields = context_of(info), mapping_of(data)
    word = next(iter(fields), "")
    if len(fields) != 1 or word not in STOPS:
        raise fault(
            f"expected one of the stop conditions {', '.join(STOPS)}, found "
            f"{', '.join(fields) or 'nothing'}.{reading.diagnostics.nearest(word, STOPS)}",
            "write `{step_count_is: 5}`.",
        )
    values = validated(STOP_MODEL, fields, reading)
    return built(lambda: STOPS[word](values[word]), f"`{word}`")


StopForm: TypeAlias = Annotated[
    stop.StopCondition, PlainValidator(_make_condition), reference("stop_condition")
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


def read_rules(
    values: Iterable[Value], diagnostics: Diagnostics, first: int = 1
) -> dict[TemporalRule, Mark]:
    """Return the temporal rules in a list of file values, each with its line and column.

    An invalid rule is added to `diagnostics` and left out of the result. Messages number the rules,
    starting with `first`.
    """
    rules: dict[TemporalRule, Mark] = {}
    for number, value in enumerate(values, first):
        try:
            for rule in rules_from_data([plain_data(value)]):
                rules.setdefault(rule, value.mark)
        except ConfigError as error:
            problem, _, fix = str(error).replace("rules[0]", f"rule {number}").partition(" Fix: ")
            diagnostics.note(value.mark, problem, fix or "mend the rule.")
    return rules


def rules_of_texts(texts: Sequence[str], title: str) -> Rules:
    """Parse texts into temporal rules; each text is one rule in YAML or JSON.

    Error messages name a text by `title`, and add its number if there are several texts.

    Raises:
        TopologyError: a text is invalid; the error lists every problem of every text.
    """
    problems: list[Problem] = []
    rules: dict[TemporalRule, Mark] = {}
    for number, text in enumerate(texts, 1):
        diagnostics = Diagnostics(title if len(texts) == 1 else f"{title} {number}", problems)
        before = len(problems)
        try:
            tree = compose(text, diagnostics)
        except ParseError:
            continue  # `diagnostics` already holds the problem.
        if len(problems) == before:
            rules |= read_rules([tree], diagnostics, number)
    Diagnostics(title, problems).refuse()
    return Rules(tuple(rules))
