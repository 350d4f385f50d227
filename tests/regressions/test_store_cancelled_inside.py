"""A store that is cancelled from inside, as one over a pool that is being closed, has just failed.

With one child the caller saw a cancellation that nobody had asked for; with two, the run waited for
ever for a child whose task had died in silence.
"""

from __future__ import annotations

import asyncio

import pytest

from graphloop import Agent, EndReason
from graphloop.errors import StoreError
from graphloop.events import Event
from tests.agent_tree import Ledger, Plans, batch, tree
from tests.passing_store import PassingStore

BELOW: dict[str, Plans] = {
    "none": {"go": [batch("note")]},
    "one": {"go": [batch("kid")], "kid": [batch("note")]},
    "two": {"go": [batch("kid", "kid")], "kid": [batch("note")]},
}


class Closing(PassingStore):
    """Cancels one append: the second event of a run that is this deep below the top."""

    def __init__(self, below: int) -> None:
        super().__init__()
        self.is_open = False
        self._below = below

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events."""
        if not self.is_open and seq > 1 and run_id.count("/") == self._below:
            raise asyncio.CancelledError
        await super().append(run_id, seq, *events)


@pytest.mark.parametrize("below", BELOW)
async def test_an_append_that_its_store_cancels_ends_with_an_error(below: str) -> None:
    """Nothing is lost: the run can be resumed once the store is well."""

    store = Closing(int("kid" in BELOW[below]))

    def agent() -> Agent:
        return tree(Ledger(), BELOW[below], store)

    with pytest.raises(StoreError) as caught:
        await agent().generate("go", run_id="r")
    store.is_open = True
    said, end = str(caught.value), (await agent().resume("r")).end_reason

    assert "cancelled by something" in said
    assert EndReason.COMPLETED is end
