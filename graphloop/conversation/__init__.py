"""The conversation of a run: repaired, steered, made smaller, counted.

Owns pure changes of messages: it performs no effect and asks no model.
Refuses a change that would leave a call without its result.
Start with `repair`; `compaction` makes a long history smaller.
"""
