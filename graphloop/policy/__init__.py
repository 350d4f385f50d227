"""Policy: which calls run, which wait for a person, which are refused.

Owns the rules of a gate (`allow`, `ask`, `deny`) and a person's answer about one call.
Refuses a rule that an earlier one shadows, and every answer but an explicit yes.
Start with `policy.py`; `approvals.py` has the answers and their tokens.
"""

from .approvals import (
    AS_IT_WAS,
    Approval,
    Capability,
    approve,
    claimed,
    decline,
    digest,
    issue,
    refuse_edit,
    secret_of,
    verify,
)
from .policy import (
    NARROWER,
    WILDCARDS,
    Condition,
    Named,
    Policy,
    Rule,
    allow,
    ask,
    asked,
    decide,
    denial,
    deny,
    describe,
    may_ask,
    policy_of,
    refuse_shadowed,
    shadowed,
    unmatched,
    untold,
)

__all__ = [
    "AS_IT_WAS",
    "NARROWER",
    "WILDCARDS",
    "Approval",
    "Capability",
    "Condition",
    "Named",
    "Policy",
    "Rule",
    "allow",
    "approve",
    "ask",
    "asked",
    "claimed",
    "decide",
    "decline",
    "denial",
    "deny",
    "describe",
    "digest",
    "issue",
    "may_ask",
    "policy_of",
    "refuse_edit",
    "refuse_shadowed",
    "secret_of",
    "shadowed",
    "unmatched",
    "untold",
    "verify",
]
