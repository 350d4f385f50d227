"""Stream parts: what a caller sees of a run while it goes on.

Owns the parts, and how they are made of steps. It drives nothing and keeps nothing.
Start with `kinds.py`; `parts.py` makes them.
"""
