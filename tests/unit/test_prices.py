"""Prices: what a reply cost, by its own model; unknown stays unknown."""

from __future__ import annotations

import pytest

from graphloop.prices import price
from graphloop.values import AssistantMessage, FinishReason, Reply, Usage

MANY = 1_000_000


def cost(usage: Usage, model: str = "gpt-4o") -> float | None:
    """Return the cost of a reply with this usage."""
    return price(Reply(AssistantMessage(()), FinishReason.STOP, usage, model=model))


def known(usage: Usage, model: str = "gpt-4o") -> float:
    """Return the cost of a reply whose price must be known."""
    found = cost(usage, model)
    assert found is not None
    return found


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4o-mini-2024-07-18", "claude-opus-4-1"])
def test_every_kind_of_token_has_its_price(model: str) -> None:
    """Reading a cache is cheaper than reading the prompt; nothing is free but nothing."""
    read = known(Usage(input_tokens=MANY), model)
    written = known(Usage(output_tokens=MANY), model)
    cached = known(Usage(cache_read_tokens=MANY), model)
    kept = known(Usage(cache_write_tokens=MANY), model)

    assert 0.0 == known(Usage(), model)
    assert 0.0 < cached < read < written
    assert read <= kept


def test_no_token_is_paid_twice() -> None:
    """The table counts cached tokens as input, too; graphloop's usage keeps them apart."""
    usage = Usage(MANY, MANY, MANY, MANY)

    parts = (Usage(MANY), Usage(0, MANY), Usage(0, 0, MANY), Usage(0, 0, 0, MANY))

    assert sum(map(known, parts)) == pytest.approx(known(usage))


def test_reasoning_is_in_the_output_already() -> None:
    """Providers bill it as output, and report it as a part of it."""
    assert known(Usage(0, MANY)) == known(Usage(0, MANY, reasoning_tokens=MANY))


@pytest.mark.parametrize("model", ["", "scripted", "no-such-model"])
def test_a_model_without_a_known_price_has_no_price(model: str) -> None:
    """None, not zero: a bill that leaves something out says so."""
    assert cost(Usage(MANY, MANY), model) is None
