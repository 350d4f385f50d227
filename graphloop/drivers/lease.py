"""Being a run's only driver, where the store sees to that; and how a run is left behind."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, TypeAlias

from ..errors import Fenced, StoreError
from ..run import EndReason, Run
from ..stores.base import Ask, Leases, ReleaseStatus, Store
from .caller import cancelled_inside

__all__ = ["Leased", "Standing", "status_of"]

Standing: TypeAlias = tuple[ReleaseStatus, Sequence[Ask]]
"""How a run stands, and what it waits for."""

RELEASED_AS: Final[Mapping[EndReason, ReleaseStatus]] = {
    EndReason.ABORTED: "cancelled",
    EndReason.ERROR: "failed",
    EndReason.TIMEOUT: "failed",
}


class Leased:
    """Be the run's only driver.

    It is no generator: an event loop that ends closes all of them side by side, and a run must not
    be released before its driver has journaled what it keeps.

    Args:
        store: where that is seen to; another one leases nothing.
        run_id: the run.
        standing: asked how it stands when it is released.

    Raises:
        RunBusy: it has a live driver already; nothing has begun.
        StoreError: the lease could not be noted.
        Fenced: another has taken the run over meanwhile, and nothing else went wrong.
    """

    def __init__(self, store: Store, run_id: str, standing: Callable[[], Standing]) -> None:
        self._leases = store if isinstance(store, Leases) else None
        self._run_id = run_id
        self._standing = standing

    async def __aenter__(self) -> None:
        if self._leases is not None:
            try:
                await self._leases.claim(self._run_id)
            except CancelledError as error:
                raise self._cancelled(error) from error

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._leases is None:
            return
        try:
            await self._leases.release(self._run_id, *self._standing())
        except CancelledError as other:
            raise self._cancelled(other) from other
        except Fenced:
            # What is under way tells more; if it is `Fenced` itself, that may be a run below.
            if error is None:
                raise

    def _cancelled(self, error: CancelledError) -> StoreError:
        """Return what a claim or release failed by that nobody here has cancelled."""
        return StoreError(f"the lease of run {self._run_id!r} was {cancelled_inside(error)}")


def status_of(run: Run[Any] | None) -> ReleaseStatus:
    """Return what a run that nobody drives any more is called."""
    ending = run.ending if run is not None and run.ended else None
    return "suspended" if ending is None else RELEASED_AS.get(ending.reason, "done")
