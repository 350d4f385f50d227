"""The conversation of a run: repaired, steered, made smaller, counted.

Owns what becomes of messages, purely. It performs nothing and asks no model.
Refuses a change that would leave a call without its result.
Start with `repair.py`; `compaction.py` makes a long history smaller.
"""
