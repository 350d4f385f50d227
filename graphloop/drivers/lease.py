"""Being a run's only driver, where the store sees to that; and how a run is left behind."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

from ..errors import Fenced
from ..run import EndReason, Run
from ..stores.base import Ask, Leases, ReleaseStatus, Store

__all__ = ["Standing", "leased", "status_of"]

Standing: TypeAlias = tuple[ReleaseStatus, Sequence[Ask]]
"""How a run stands, and what it waits for."""

RELEASED_AS: Final[Mapping[EndReason, ReleaseStatus]] = {
    EndReason.ABORTED: "cancelled",
    EndReason.ERROR: "failed",
    EndReason.TIMEOUT: "failed",
}


@asynccontextmanager
async def leased(
    store: Store, run_id: str, standing: Callable[[], Standing]
) -> AsyncGenerator[None, None]:
    """Be the run's only driver; `standing` is asked when it is released.

    Raises:
        RunBusy: it has a live driver already; nothing has begun.
        Fenced: another has taken the run over meanwhile: it is not ours to release.
    """
    if not isinstance(store, Leases):
        yield
        return
    await store.claim(run_id)
    try:
        yield
    except Fenced:
        raise
    except BaseException:
        await store.release(run_id, *standing())
        raise
    await store.release(run_id, *standing())


def status_of(run: Run[Any] | None) -> ReleaseStatus:
    """Return what a run that nobody drives any more is called."""
    ending = run.ending if run is not None and run.ended else None
    return "suspended" if ending is None else RELEASED_AS.get(ending.reason, "done")
