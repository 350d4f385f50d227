"""The PostgreSQL store, for runs that several machines drive.

Owns `PostgresStore`. Refuses a driver that has lost its claim, a pooled connection, and a schema of
another version. Start with `store.py`; `leases.py` has the protocol of claims.
"""

from .store import PostgresStore

__all__ = ["PostgresStore"]
