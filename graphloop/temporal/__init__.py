"""Temporal rules: the language, the automata that decide it, the watch that a run keeps by them."""

from .rules import (
    TIMES_MAX,
    AtMost,
    Followed,
    Never,
    OnlyAfter,
    Rules,
    TemporalRule,
    always_followed_by,
    at_most,
    at_most_once,
    describe_rule,
    never,
    only_after,
    rules_of,
    words_of,
)

__all__ = [
    "TIMES_MAX",
    "AtMost",
    "Followed",
    "Never",
    "OnlyAfter",
    "Rules",
    "TemporalRule",
    "always_followed_by",
    "at_most",
    "at_most_once",
    "describe_rule",
    "never",
    "only_after",
    "rules_of",
    "words_of",
]
