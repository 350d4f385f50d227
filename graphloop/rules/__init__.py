"""Temporal rules: never, at most, only after, always followed by.

Owns the language, the automata that decide it, and the monitor that a run keeps.
Refuses a word that means nothing in the graph, and a rule that could guard nothing.
Start with `language`; the kernel's `watch` applies the monitor to a run.
"""

from .language import (
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
