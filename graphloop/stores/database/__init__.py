"""The methods, statements and claims that the stores in databases share.

Owns `DatabaseStore`, and the statements that every database understands. `stores/sqlite` and
`stores/postgres` hold the rest: connections, tables, leases, and the order of runs that wait.
Start with `claims.py`, the life of a claim; `store.py` has the methods.
"""

from .store import DatabaseStore

__all__ = ["DatabaseStore"]
