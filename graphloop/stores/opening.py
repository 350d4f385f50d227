"""From a path to a store: the ending of its name decides the kind.

The kind is loaded then: a run without a store writes no file.
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
    """Return the store at a path: a database by its ending, else a directory of JSON lines.

    Nothing is read or made before the first use of the store.

    Raises:
        ConfigError: the path holds the other kind already.
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
