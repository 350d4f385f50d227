"""SQLite: the store of one machine, in one file that many processes share.

Owns the tables, the statements, and the connections: one for writing, some for reading.
Start with `store.py`. The files have the names of `stores/postgres`, whose statements do the same.
"""

from .store import SqliteStore

__all__ = ["SqliteStore"]
