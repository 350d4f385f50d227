"""Tools: functions that a model can call.

Owns how a model reads a tool, how arguments are checked, and how the function is called.
Refuses, at definition, a signature or schema that no call could satisfy.
Start with `tool`; `outcome` has the answers that a model reads.
"""
