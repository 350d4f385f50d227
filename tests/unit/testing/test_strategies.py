"""Strategies for Hypothesis."""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from graphloop import Agent, tool
from graphloop.errors import GraphloopError
from graphloop.run import EndReason
from graphloop.testing import ScriptedModel, strategies
from graphloop.testing.sim import Simulation
from graphloop.values import FinishReason, Reply
from tests.strategies import spec
from tests.unit.testing.planted import BUGS, table


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@given(run=strategies.simulations(table(), tools=[pay]))
def test_any_run_can_be_asked_for(run: Simulation[Any]) -> None:
    """A property of one's own is held against whatever may happen."""
    assert not run.repeated
    assert run.run.ended or run.run.pending
    assert {"pay"} >= {one.name for one in run.run.setup.tools}


def test_what_is_found_is_shrunk() -> None:
    """Hypothesis does it, as with everything."""

    def used_up(run: Simulation[Any]) -> bool:
        return run.run.ending is not None and run.run.ending.reason is EndReason.MAX_STEPS

    simplest = find(strategies.simulations(table()), used_up, settings=settings(max_examples=2_000))

    assert len(simplest.run.record.steps) == 6


def test_a_run_that_breaks_raises_what_broke_it() -> None:
    """Not an empty simulation that keeps every property."""
    broken = strategies.simulations(BUGS["an empty reply"][1]())

    # The error is not shrunk: it need not be the simplest.
    found = settings(max_examples=2_000, database=None, phases=[Phase.generate])
    with pytest.raises(IndexError):
        find(broken, lambda _: False, settings=found)
    endless = strategies.simulations(table(), events_max=1)
    with pytest.raises(GraphloopError, match="not over"):
        find(endless, lambda _: False, settings=found)


@given(data=st.data())
def test_an_agent_survives_any_replies(data: st.DataObject) -> None:
    """As a script for the whole agent, driver and all."""
    said: list[Reply] = data.draw(st.lists(strategies.replies([spec("pay")]), max_size=3))

    result = asyncio.run(Agent(ScriptedModel([*said, *["done"] * 9]), tools=[pay]).generate("go"))

    assert result.finish_reason in set(FinishReason)


def test_without_hypothesis_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra, and nobody knows its name by heart."""
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    monkeypatch.delitem(sys.modules, "graphloop.testing.strategies")

    with pytest.raises(ModuleNotFoundError, match=r'pip install "graphloop\[test\]"'):
        import_module("graphloop.testing.strategies")
