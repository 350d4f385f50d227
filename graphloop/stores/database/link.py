"""Link: a connection to a database, which understands the statements that all databases share.

A shared statement names its values (`:name`), and its tables and views are in each schema. A link
puts it into the words of its database: the marks of values, a list of values (`= ANY(:names)`), and
the lock of rows (`FOR UPDATE`), which a database that one process writes at a time does not need.
Each database has the functions `now_s()`, the store's time in Unix seconds, and `strpos`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

__all__ = ["Rows", "SqlLink"]


class Rows(Protocol):
    """The answer to a statement."""

    @property
    def rowcount(self) -> int:
        """The number of rows that a statement has written."""
        ...

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row; None after the last."""
        ...

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the remaining rows."""
        ...

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Iterate over the remaining rows."""
        ...


class SqlLink(Protocol):
    """A connection to a database."""

    @property
    def is_again(self) -> bool:
        """Whether the work was done before, and may have been committed without an answer."""
        ...

    def ask(self, statement: str, **given: object) -> Rows:
        """Execute a shared statement with these values."""
        ...

    def name_of(self, name: str) -> str:
        """Return the name of a graph, tenant or queue as the database can hold it."""
        ...
