"""Prices: what a reply cost, by its own model; unknown stays unknown."""

from __future__ import annotations

import pytest

from graphloop.limits.model_price import ModelPrice
from graphloop.providers.prices import price, price_with, published_windows
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


@pytest.mark.parametrize("model", ["", "scripted", "no-such-model"])
def test_a_model_without_a_known_price_has_no_price(model: str) -> None:
    """None, not zero: a bill that leaves something out says so."""
    assert cost(Usage(MANY, MANY), model) is None


OWN = {
    "house": ModelPrice(1, 2),
    "house-large": ModelPrice(10, 20),
    "gpt-4o": ModelPrice(7, 7),
}


def own_cost(model: str) -> float | None:
    """Return what a million tokens of input cost by the table above."""
    return price_with(OWN)(
        Reply(AssistantMessage(()), FinishReason.STOP, Usage(MANY), model=model), "openai:any"
    )


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("house", 1),
        ("house-2026-01-31", 1),
        ("house-20260131", 1),
        ("house-202601", 1),
        ("house-0613", 1),
        ("house-latest", 1),
        ("house@20260131", 1),
        ("house:8b", 1),
        ("house-20260131@eu", 1),
        ("house-large", 10),
        ("house-large-20260131", 10),
        ("gpt-4o", 7),
        ("gpt-4o-2024-08-06", 7),
    ],
)
def test_the_longest_name_of_the_callers_table_wins(model: str, expected: float) -> None:
    """Servers answer with a date behind the name; nobody writes a table of dates."""
    assert own_cost(model) == expected


@pytest.mark.parametrize("model", ["house-small", "house2", "house-1", "hous", "", "my-house"])
def test_another_model_of_a_similar_name_is_not_priced_by_it(model: str) -> None:
    """A cheaper or dearer sister would make a bill that looks right and is not."""
    assert own_cost(model) is None


def test_a_table_changed_later_changes_no_price() -> None:
    """The caller's objects are the caller's."""
    table = {"m": ModelPrice(1, 1)}
    price_of = price_with(table)
    table.clear()

    reply = Reply(AssistantMessage(()), FinishReason.STOP, Usage(MANY), model="m")
    assert price_of(reply, "m") == 1


@pytest.mark.parametrize(
    ("label", "window"),
    [
        ("openai:gpt-4o", 128_000),
        ("openai:gpt-4o-2024-08-06", 128_000),
        ("anthropic:claude-opus-4-1", 200_000),
        ("openai:my-own-tuned-model", None),
        ("ollama:gpt-4o", None),
        ("script:answers.yaml", None),
        ("gpt-4o", None),
        ("", None),
    ],
)
def test_a_context_window_is_the_published_one_of_the_service(
    label: str, window: int | None
) -> None:
    """A server on this machine may give a model of any name any window."""
    assert {label: window} == published_windows([label])
