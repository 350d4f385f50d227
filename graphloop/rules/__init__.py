"""Temporal rules: never, at most, only after, always followed by.

Owns the rule language, the automaton of each rule, and the monitor that checks rules in a run.
Refuses a rule with a word that names nothing in the graph, since the rule would have no effect.
Start with `language`; the kernel's `rule_watch` applies the monitor to a run.
"""

from .automata import (
    Automaton,
    Happening,
    approved_call,
    automaton_of,
    earlier,
    entered,
    past_call,
    ran,
    returned,
    taken,
)
from .form import rule_schema, rules_from_data, rules_to_data
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
from .monitor import Monitor, Wanted, foreseen, judged, refusal
from .names import Vocabulary, guarded_tools, resolve_words, spelled_tools, to_be_brought

__all__ = [
    "TIMES_MAX",
    "AtMost",
    "Automaton",
    "Followed",
    "Happening",
    "Monitor",
    "Never",
    "OnlyAfter",
    "Rules",
    "TemporalRule",
    "Vocabulary",
    "Wanted",
    "always_followed_by",
    "approved_call",
    "at_most",
    "at_most_once",
    "automaton_of",
    "describe_rule",
    "earlier",
    "entered",
    "foreseen",
    "guarded_tools",
    "judged",
    "never",
    "only_after",
    "past_call",
    "ran",
    "refusal",
    "resolve_words",
    "returned",
    "rule_schema",
    "rules_from_data",
    "rules_of",
    "rules_to_data",
    "spelled_tools",
    "taken",
    "to_be_brought",
    "words_of",
]
