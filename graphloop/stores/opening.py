"""Opens the store at a path: a SQLite database or a directory of JSON-lines files.

The suffix of the path decides between them. The module of the store is imported only then.
"""

from __future__ import annotations

from pathlib import Path

from .. import stores
from ..errors import ConfigError
from .base import Store
from .codec import Codec

__all__ = ["open_store"]

DATABASES = (".db", ".sqlite", ".sqlite3")


def open_store(where: str | Path, codec: Codec | None = None) -> Store:
    """Return a SQLite store if the path ends in .db, .sqlite or .sqlite3, else a JSON-lines store.

    The first use of the store reads or creates its files.

    Raises:
        ConfigError: a directory exists at a database's path, or a file at a directory's path.
    """
    path = Path(where)
    if path.name.endswith(DATABASES):
        if path.is_dir():
            raise ConfigError(
                f"store={str(where)!r} is a directory, and its name that of a database: "
                "give a file, or a directory whose name does not end in " + ", ".join(DATABASES)
            )
        return stores.SqliteStore(path, codec=codec)
    if path.exists() and not path.is_dir():
        raise ConfigError(
            f"store={str(where)!r}: expected a database (its name ends in {', '.join(DATABASES)}) "
            "or a directory for JSON lines, found another file. Fix: rename it, or give a directory"
        )
    return stores.JsonlStore(path, codec=codec)
