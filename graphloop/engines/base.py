"""The port of engines: what decides who drives a run next, and when.

    stored run --ready--> engine --leg--> worker: claim, read, drive, release --> stored run

A leg takes a run from its claim to its release. An engine may hand out a leg twice, late, or for a
run that has a driver: the store lets one driver at a time write. So it need not be exact, and no
engine takes part in what a run does.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias, runtime_checkable

from ..stores import Backlog, Catalog, Leases, Mailbox, Store

__all__ = ["Driven", "Engine", "Outbox", "SharedStore"]

Driven: TypeAlias = Literal["over", "parked", "again", "blocked", "full"]
"""The end of a leg: its run is over, waits for people, has to be driven again, is blocked, or waits
until its queue has room."""


@runtime_checkable
class SharedStore(Store, Leases, Mailbox, Catalog, Backlog, Protocol):
    """The abilities of a store that workers share."""


@runtime_checkable
class Outbox(Protocol):
    """Lets an engine with tables in the same database hear of each run that becomes ready."""

    @property
    def address(self) -> str:
        """The address of the database, with its password."""
        ...

    async def on_ready(self, statements: str) -> None:
        """Let each transaction that makes a run ready execute these statements; "" for none.

        Args:
            statements: PL/pgSQL. The record `told` has the `run_id`, the `graph` of its root run,
                the `queue`, the `priority`, a name of this `leg` that no other has, the `band` of
                its urgency (1, 10 or 100; the least first), the `turn` of its tenant (from 1 to
                999; the least first), and the `lost_leg` of a driver that died, or null.
        """
        ...


class Engine(Protocol):
    """Starts the legs of one worker (`Legs.start`); the class is called with the worker's legs."""

    async def open(self) -> None:
        """Begin to hand out legs.

        Raises:
            ConfigError: the engine cannot work with the worker's store.
            StoreError: the store does not answer.
        """
        ...

    async def look(self) -> None:
        """Start legs that are due now.

        The worker calls it when the store tells of a run, and otherwise at short intervals.

        Raises:
            OtherSchema: the store is another graphloop's, and this worker has to end.
        """
        ...

    async def drain(self) -> None:
        """Hand out no more legs; those under way go on."""
        ...

    async def close(self) -> None:
        """Free what `open` has taken; no leg is under way any more."""
        ...
