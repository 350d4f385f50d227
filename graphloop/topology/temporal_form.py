"""Temporal rules in a file, and in a word of a command line: both are read alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..errors import ConfigError, Problem
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
from .tree import Value, plain_data

__all__ = ["lines_of_rules", "read_rules", "rules_of_texts"]


def read_rules(
    values: Iterable[Value],
    diagnostics: Diagnostics,
    first: int = 1,
    *,
    words: Vocabulary | None = None,
) -> Rules:
    """Return the temporal rules that stand in a list; what is no rule is noted.

    Args:
        values: what stands there.
        diagnostics: takes what is wrong.
        first: the number of the first rule, for messages.
        words: what rules may speak of, and of the tools that a run brings by `tool:…`; None if
            that is not known.
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
    """Return the rules that these texts say, each one rule in YAML or JSON.

    Args:
        texts: such as `{never: tool:pay, before: review}`.
        title: what they are to their author, for messages; numbered where there are several.

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
            continue  # Why, is among the diagnostics.
    Diagnostics(title, problems).refuse()
    return rules


def _refuse_unknown(rules: Rules, words: Vocabulary) -> None:
    """Refuse rules about what there is not.

    Raises:
        ConfigError: a word means nothing, or more than one thing.
    """
    try:
        resolve_words(rules, replace(words, tools=(*(words.tools or ()), *spelled_tools(rules))))
    except ConfigError:
        # What is said where tools are not known has more to it: how to write one.
        resolve_words(rules, replace(words, tools=None))
        raise
