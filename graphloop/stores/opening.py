"""Opens the store at an address: a PostgreSQL or SQLite database, or a directory of JSON lines.

The scheme or the suffix decides between them. The module of the store is imported only then.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from .. import stores
from ..errors import ConfigError
from .base import Store
from .codec import Codec

__all__ = ["has_scheme", "open_store", "shown_address"]

DATABASES: Final = (".db", ".sqlite", ".sqlite3")
SERVERS: Final = ("postgresql", "postgres")
SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
PASSWORD: Final = re.compile(r"(?<=://)([^:@/?]*):.*(?=@)|&password=[^&]*|(?<=\?)password=[^&]*&?")
"""A password may have any character; the last @ of an address ends it."""


def has_scheme(where: str | Path) -> bool:
    """Whether a store is given by an address of a server, not by a path."""
    return isinstance(where, str) and SCHEME.match(where) is not None


def shown_address(where: str | Path) -> str:
    """Return the address of a store for people and logs: a server's without its password."""
    return (
        PASSWORD.sub(r"\1", where) if isinstance(where, str) and has_scheme(where) else str(where)
    )


def open_store(where: str | Path, codec: Codec | None = None) -> Store:
    """Return the store at an address or a path.

    It is a PostgreSQL store for `postgresql://…`, a SQLite store for a path that ends in .db,
    .sqlite or .sqlite3, and otherwise a store of JSON lines. The first use of the store reads or
    creates its files or tables.

    Raises:
        ConfigError: the scheme is unknown, the package of a scheme is not installed, a directory
            exists at a database's path, a file at a directory's path, or the path cannot be read.
    """
    if isinstance(where, str) and (found := SCHEME.match(where)) is not None:
        return _on_server(where, found[1], codec)
    path = Path(where)
    try:
        is_there, is_folder = path.exists(), path.is_dir()
    except OSError as error:
        raise ConfigError(
            f"store={str(where)!r}: expected a path that can be looked at, found: "
            f"{error.strerror}. Fix: give another path, or the rights to its folders."
        ) from error
    if path.name.endswith(DATABASES):
        if is_folder:
            raise ConfigError(
                f"store={str(where)!r} is a directory, and its name that of a database: "
                "give a file, or a directory whose name does not end in " + ", ".join(DATABASES)
            )
        return stores.SqliteStore(path, codec=codec)
    if is_there and not is_folder:
        raise ConfigError(
            f"store={str(where)!r}: expected a database (its name ends in {', '.join(DATABASES)}) "
            "or a directory for JSON lines, found another file. Fix: rename it, or give a directory"
        )
    return stores.JsonlStore(path, codec=codec)


def _on_server(where: str, scheme: str, codec: Codec | None) -> Store:
    if scheme not in SERVERS:
        raise ConfigError(
            f"`store`: expected postgresql://… or a path, found the scheme {scheme!r}. Fix: give "
            "the address of a PostgreSQL database, or a path such as 'runs.db'."
        )
    try:
        return stores.PostgresStore(where, codec=codec)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"`store`: expected the package psycopg for {scheme}://…, found none. Fix: "
            "pip install 'graphloop[postgres]'."
        ) from error
