"""Conditions: the rules of a gate, the stop conditions and the temporal rules of a file.

rules: [{ask: refund, when: over_limit, ttl_s: 3600}, {allow: "*"}]
conditions: [{any_of: [{step_count_is: 5}, {has_tool_call: done}]}]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, cast

from pydantic import AfterValidator, Field, PlainValidator, ValidationInfo
from pydantic_core import PydanticCustomError

from ..errors import ConfigError, Problem
from ..graph import END
from ..limits import stop
from ..node_protocol import Node
from ..outcomes import Outcome, outcome_name
from ..policy import Rule, refuse_shadowed
from ..rules import (
    Rules,
    TemporalRule,
    Vocabulary,
    describe_rule,
    resolve_words,
    rules_from_data,
    spelled_tools,
)
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
from .tree import Loc, Value, plain_data

__all__ = [
    "STOPS",
    "STOP_MODEL",
    "VERDICTS",
    "RulesForm",
    "StopForm",
    "lines_of_rules",
    "read_rules",
    "rule_words",
    "rules_of_texts",
]

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
        wrong = fault(f"expected one of allow, ask and deny, found {listed}.{hint}", fix)
        raise faults({(verdicts[1], "[key]"): wrong} if verdicts else {(): wrong})
    verdict = cast("Literal['allow', 'ask', 'deny']", verdicts[0])  # It is a key.
    read = validated(RULE_MODELS[verdict], given, to)
    said = {name: read[name] for name in ("ttl_s", "reason") if name in read}
    return Rule(verdict, read[verdict], read.get("when", ""), **said)


def _refuse_shadowed(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Return the rules; a call can reach each of them."""
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


STOPS: Final[Mapping[str, Callable[[Any], stop.StopCondition]]] = {
    snake_case(made): made
    for made in (
        *(stop.StepCountIs, stop.HasToolCall, stop.TotalTokensExceed, stop.CostExceeds),
        *(stop.DurationExceeds, stop.AnyOf, stop.AllOf, stop.Not),
    )
}


def _condition(data: object, info: ValidationInfo) -> stop.StopCondition:
    to, given = context_of(info), mapping_of(data)
    word = next(iter(given), "")
    if len(given) != 1 or word not in STOPS:
        found = ", ".join(given) or "nothing"
        raise fault(
            f"expected one of the stop conditions {', '.join(STOPS)}, found {found}."
            f"{to.diagnostics.nearest(word, STOPS)}",
            "write `{step_count_is: 5}`.",
        )
    read = validated(STOP_MODEL, given, to)
    return built(lambda: STOPS[word](read[word]), f"`{word}`")


StopForm: TypeAlias = Annotated[
    stop.StopCondition, PlainValidator(_condition), reference("stop_condition")
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


def rule_words(
    graph: str, nodes: Mapping[str, Node[Any, Outcome] | None], tools: Iterable[str]
) -> Vocabulary | None:
    """Return the words of a graph's rules; None if a node is unread."""
    known = {name: node.outcomes for name, node in nodes.items() if node is not None}
    if len(known) < len(nodes):
        return None
    outcomes = tuple([(name, outcome_name(out)) for name, every in known.items() for out in every])
    return Vocabulary(graph, (*known, END.value), outcomes, tuple(tools))


def read_rules(
    values: Iterable[Value],
    diagnostics: Diagnostics,
    first: int = 1,
    *,
    words: Vocabulary | None = None,
) -> Rules:
    """Return the temporal rules of a list, numbered from `first` on.

    A rule that is wrong is noted, also one about a word that `words` lacks; `tool:…` may be a tool
    that a run brings.
    """
    rules: dict[TemporalRule, None] = {}
    for number, value in enumerate(values, first):
        try:
            found = rules_from_data([plain_data(value)])
            if words is not None:
                _refuse_unknown(found, words)
            rules |= dict.fromkeys(found)
        except ConfigError as error:
            said = str(error).replace("rules[0]", f"rule {number}")
            what, _, fix = said.partition(" Fix: ")
            diagnostics.note(value.mark, what, fix or "mend the rule.")
    return Rules(tuple(rules))


def lines_of_rules(values: Iterable[Value]) -> dict[str, int]:
    """Return the lines of rules that have been read, by their words."""
    lines: dict[str, int] = {}
    for value in values:
        for rule in rules_from_data([plain_data(value)]):
            lines.setdefault(describe_rule(rule), value.mark.line)
    return lines


def rules_of_texts(texts: Sequence[str], title: str) -> Rules:
    """Return the rules of these texts, each one rule in YAML or JSON.

    Messages call a text by the title, and by its number where there are several.

    Raises:
        TopologyError: with every problem of every text.
    """
    problems: list[Problem] = []
    rules = Rules()
    for number, text in enumerate(texts, 1):
        diagnostics = Diagnostics(title if len(texts) == 1 else f"{title} {number}", problems)
        try:
            known = len(problems)
            tree = compose(text, diagnostics)
            if len(problems) == known:
                rules &= read_rules([tree], diagnostics, number)
        except ParseError:
            continue  # The diagnostics have the reason.
    Diagnostics(title, problems).refuse()
    return rules


def _refuse_unknown(rules: Rules, words: Vocabulary) -> None:
    """Refuse rules with a word that means nothing, or more than one thing."""
    try:
        resolve_words(rules, replace(words, tools=(*(words.tools or ()), *spelled_tools(rules))))
    except ConfigError:
        # The message where tools are not known has more to it: how to write one.
        resolve_words(rules, replace(words, tools=None))
        raise
