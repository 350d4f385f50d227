"""Policy: which calls run, which wait for a person, which are refused.

Owns the rules of a gate (`allow`, `ask`, `deny`) and a person's answer about one call.
Refuses a rule that an earlier one shadows, and every answer but an explicit yes.
Start with `policy.py`; `approvals.py` has the answers and their tokens.
"""
