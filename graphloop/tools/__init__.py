"""Tools: functions that a model can call.

Owns what a model reads of a tool, how arguments are checked, and how the function is called.
Refuses, at definition, a signature or schema that no call could satisfy.
Start with `tool.py`; `outcome.py` has what a model reads of a call.
"""
