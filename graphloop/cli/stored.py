"""The store that a command works on: opened, closed again, and the run in it that was meant."""

from __future__ import annotations

import shlex
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Final

from ..errors import ConfigError, nearest
from ..stores.base import Catalog, RunRecord, Store
from ..stores.jsonl import LOCK, SUFFIX
from ..stores.opening import open_store
from ..stores.sqlite import SqliteStore

__all__ = ["close", "closing", "find_run", "opened", "record_of", "refuse_unreachable", "short_ids"]

SHORT: Final = 8
LISTED_MAX: Final = 5
NO_STORE: Final = (
    "expected a store to look into: name it with --store runs.db, or set GRAPHLOOP_STORE."
)


@asynccontextmanager
async def opened(where: str | None) -> AsyncGenerator[Store]:
    """Open a store that is there already.

    Raises:
        ConfigError: none was named, or there is none of that name.
    """
    store = open_store(_existing(where))
    try:
        yield store
    finally:
        await close(store)


def _existing(where: str | None) -> Path:
    if where is None or not where.strip():
        raise ConfigError(NO_STORE)
    path = Path(where)
    if not path.exists():
        folder = path.parent
        names = [one.name for one in folder.iterdir()] if folder.is_dir() else []
        raise ConfigError(
            f"{where}: expected a store, found nothing of that name.{nearest(path.name, names)}"
        )
    kept = [one.suffix in {SUFFIX, LOCK} for one in path.iterdir()] if path.is_dir() else []
    if kept and not any(kept):
        raise ConfigError(
            f"{where}: expected a store, found a folder with other files in it. Fix: name a "
            f"database (runs.db), or a folder of journals (*{SUFFIX})."
        )
    return path


def refuse_unreachable(where: str | Path) -> None:
    """Refuse a database for a new run in a folder that does not exist.

    Raises:
        ConfigError: there is none.
    """
    folder = Path(where).parent
    if isinstance(open_store(where), SqliteStore) and not folder.is_dir():
        raise ConfigError(
            f"--store {where}: expected a folder at {str(folder)!r}, found none: create it first."
        )


async def close(store: Store) -> None:
    """Close a store that holds a file open."""
    if isinstance(store, SqliteStore):
        await store.aclose()


def closing(
    loop_closes: Callable[[], Awaitable[None]], store: Store
) -> Callable[[], Awaitable[None]]:
    """Return what closes a run's connections and its store."""

    async def aclose() -> None:
        try:
            await loop_closes()
        finally:
            await close(store)

    return aclose


async def find_run(store: Store, text: str, where: str | None = None) -> str:
    """Return the id of the run that `text` names: the whole id, or a beginning that only it has.

    Args:
        store: the store, open.
        text: what was typed.
        where: what `--store` says, for a command that is told.

    Raises:
        ConfigError: there is no such run, or there are several.
    """
    known = await store.runs()
    if text in known:
        return text
    root, slash, path = text.partition("/")
    meant = [one for one in known if root and "/" not in one and one.startswith(root)]
    if len(meant) > 1:
        more = f" and {len(meant) - LISTED_MAX} more" if len(meant) > LISTED_MAX else ""
        raise ConfigError(
            f"expected a run, found {len(meant)} whose ids begin with {root!r}: "
            f"{', '.join(meant[:LISTED_MAX])}{more}. Give more of it."
        )
    found = f"{meant[0]}{slash}{path}" if meant else ""
    if found not in known:
        all_of = ["graphloop", "runs", "--all", *(["--store", where] if where else [])]
        raise ConfigError(
            f"expected a run, found none whose id is, or begins with, {text!r}."
            f"{nearest(text, known)} See them all with: {shlex.join(all_of)}"
        )
    return found


async def record_of(store: Store, run_id: str) -> RunRecord | None:
    """Return what the store knows of a run beside its journal; None if it keeps no such record."""
    if not isinstance(store, Catalog):
        return None
    return next((one for one in await store.overview(run_id) if one.run_id == run_id), None)


def short_ids(run_ids: Sequence[str]) -> dict[str, str]:
    """Return a beginning of each id that no other has, long enough to be told apart by eye."""
    ordered = sorted(run_ids)
    shared = [_shared(one, other) for one, other in pairwise(ordered)]
    return {
        one: one[: max(SHORT, before + 1, after + 1)]
        for one, before, after in zip(ordered, [0, *shared], [*shared, 0], strict=False)
    }


def _shared(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))
