"""Ports: what a driver is given, and what it has without being given."""

from __future__ import annotations

from graphloop.driver.ports import Ports
from graphloop.stores.memory import MemoryStore
from graphloop.tools.toolbox import Toolbox


def test_nobody_is_asked_and_nothing_is_priced_by_default() -> None:
    """An unknown price is None, never 0."""
    ports: Ports[None] = Ports(store=MemoryStore(), models={}, toolbox=Toolbox(()))

    assert ports.approve is None
    assert {} == ports.callbacks
    assert ports.price is None
    assert ports.clock() > 0
