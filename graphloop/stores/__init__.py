"""Stores: where journals are kept.

Owns the seam (`base.py`), the journal's written form (`codec.py`), and three stores.
Refuses a writer without its lease, and an event that would be read back as another.
Start with `base.py`, then `memory.py`.
"""
