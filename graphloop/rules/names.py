"""Vocabulary: the resolution of a rule's words in a graph, and the tools that rules name.

A word with a kind, such as `node:review` or `tool:deploy`, is unambiguous. A word without a kind is
looked up among the nodes, tools and outcomes of the graph, and exactly one must match. Otherwise a
rule might watch the node `deploy` instead of the tool `deploy`, and have no effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, TypeVar, assert_never, final

from msgspec import Struct

from ..errors import ConfigError, nearest
from . import (
    AtMost,
    Followed,
    Never,
    OnlyAfter,
    Rules,
    TemporalRule,
    describe_rule,
    words_of,
)
from .automata import KINDS

__all__ = ["Vocabulary", "guarded_tools", "resolve_words", "spelled_tools", "to_be_brought"]

S = TypeVar("S")

_ANY: Final = "*"


@final
class Vocabulary(Struct, frozen=True):
    """The names in a graph that the words of rules may refer to.

    Args:
        graph: the graph's name, for messages.
        nodes: the names of the graph's nodes.
        outcomes: pairs of a node's name and the name of one of its outcomes.
        tools: the names of the tools; None if unknown.
    """

    graph: str
    nodes: tuple[str, ...]
    outcomes: tuple[tuple[str, str], ...]
    tools: tuple[str, ...] | None = None


def resolve_words(rules: Rules, names: Vocabulary) -> Rules:
    """Return the rules with a kind added to each word: `deploy` becomes `tool:deploy`.

    Raises:
        ConfigError: words match no name or several; the message lists all such words.
    """
    resolved: list[TemporalRule] = []
    problems: list[str] = []
    for rule in rules:
        try:
            resolved.append(_looked_up(rule, names))
        except ConfigError as error:
            problems.append(f"rule {describe_rule(rule)!r}: {error}")
    if problems:
        raise ConfigError("\n".join(problems))
    return Rules(tuple(dict.fromkeys(resolved)))


def spelled_tools(rules: Rules) -> tuple[str, ...]:
    """Return the names of tools that rules name explicitly, such as `tool:deploy`.

    At its start, each run checks that it has these tools.
    """
    parts = [word.partition(":") for rule in rules for word in words_of(rule)]
    named = [name for kind, _, name in parts if kind in {"tool", "approval"} and name]
    return tuple([name for name in dict.fromkeys(named) if name != _ANY])


def to_be_brought(rule: TemporalRule, known: Collection[str]) -> str:
    """Return a note about each tool of a rule that is not in `known`; it may be misspelt."""
    lacking = [tool for tool in spelled_tools(Rules((rule,))) if known and tool not in known]
    return "".join(
        [f" A run has to bring the tool {tool!r}.{nearest(tool, known)}" for tool in lacking]
    )


def guarded_tools(rules: Rules) -> tuple[str, ...]:
    """Return the tools that child runs must not call, because rules of the parent name them.

    The parent's monitor does not see the calls of a child, so a child's call could break a rule
    unnoticed. `*` means all tools. If the second word of a rule is `tool:*`, the rule waits for any
    tool; that word denies no tool, since a child's call neither satisfies nor breaks the rule.
    """
    named: dict[str, None] = {}
    for rule in rules:
        what, second, third = words_of(rule)
        for word in filter(None, (what, third, second)):
            kind, _, name = word.partition(":")
            if kind in {"tool", "approval"} and not (name == _ANY and word == second):
                named[name] = None
    return tuple(named)


def _looked_up(rule: TemporalRule, names: Vocabulary) -> TemporalRule:
    """Return a rule with resolved words; a bare `approval` means that of the rule's own tool."""
    what, *others = words_of(rule)
    subject = _resolve_word(what, names)
    kind, _, tool = subject.partition(":")
    words = [_resolve_word(word, names) for word in others]
    if kind == "tool":
        words = [
            f"approval:{tool}" if (word, meaning) == ("approval", f"approval:{_ANY}") else meaning
            for word, meaning in zip(others, words, strict=True)
        ]
    return _with_words(rule, [subject, *words])


def _with_words(rule: TemporalRule, words: list[str]) -> TemporalRule:
    """Return a copy of a rule with these three words in place of its own."""
    what, second, third = words
    match rule:
        case Never():
            return Never(what, second, rule.reason)
        case AtMost():
            return AtMost(what, rule.times, second, rule.reason)
        case OnlyAfter():
            return OnlyAfter(what, second, third, rule.reason)
        case Followed():
            return Followed(what, second, rule.reason)
        case _:
            assert_never(rule)


def _resolve_word(word: str, names: Vocabulary) -> str:
    """Return a word with its kind, such as `tool:deploy`; raise ConfigError if it is not unique."""
    kind, colon, name = word.partition(":")
    if not word:
        return ""
    if colon and kind in KINDS:
        return _check_name(kind, name, names)
    meanings = tuple(_possible_meanings(word, names))
    if len(meanings) == 1:
        return meanings[0]
    if meanings:
        raise ConfigError(
            f"the word {word!r} could mean {', '.join(meanings)}. Fix: write one of these."
        )
    known = [name for kind in KINDS for name in _names_of_kind(kind, names)]
    tool = "" if names.tools is not None else f" If it is a tool, write 'tool:{word}'."
    raise ConfigError(
        f"graph {names.graph!r} has no node, outcome or tool {word!r}.{nearest(word, known)}{tool}"
    )


def _check_name(kind: str, name: str, names: Vocabulary) -> str:
    """Return `kind:name` if the graph has the name; raise ConfigError if it lacks the name."""
    known = _names_of_kind(kind, names)
    of_tools = kind in {"tool", "approval"}
    if name in known or (of_tools and name == _ANY) or (of_tools and name and names.tools is None):
        return f"{kind}:{name}"
    what = "tool" if of_tools else kind
    raise ConfigError(f"graph {names.graph!r} has no {what} {name!r}.{nearest(name, known)}")


def _names_of_kind(kind: str, names: Vocabulary) -> tuple[str, ...]:
    """Return all names of a kind in the graph; for `tool` and `approval`, the tools."""
    match kind:
        case "node":
            return names.nodes
        case "outcome":
            at_nodes = [f"{node}.{outcome}" for node, outcome in names.outcomes]
            return (*at_nodes, *dict.fromkeys(outcome for _, outcome in names.outcomes))
        case _:
            return names.tools or ()


def _possible_meanings(word: str, names: Vocabulary) -> Iterator[str]:
    """Yield each possible meaning of a word without a kind, such as `tool:deploy`."""
    if word in names.nodes:
        yield f"node:{word}"
    if word in (names.tools or ()):
        yield f"tool:{word}"
    if word == "approval":
        yield f"approval:{_ANY}"
    at_nodes = [(node, outcome) for node, outcome in names.outcomes if outcome == word]
    yield from (f"outcome:{node}.{outcome}" for node, outcome in at_nodes)
    if len(at_nodes) > 1:
        yield f"outcome:{word}"
    yield from (
        f"outcome:{word}" for node, outcome in names.outcomes if f"{node}.{outcome}" == word
    )
