"""A caller's price of a model: what it costs, and what is no price."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from graphloop.errors import ConfigError
from graphloop.limits.model_price import ModelPrice
from graphloop.spending import UsageDetails
from graphloop.values import Usage

MANY = 1_000_000


def test_every_kind_of_token_is_paid_at_its_own_price() -> None:
    """Prices are for a million tokens, as every provider's page tells them."""
    price = ModelPrice(3.0, 15.0, cache_read_usd=0.25, cache_write_usd=4.0)

    assert price.cost_usd(Usage(MANY, MANY, MANY, MANY)) == 22.25
    assert price.cost_usd(Usage(500, 200)) == pytest.approx(0.0045)
    assert price.cost_usd(Usage()) == 0.0


def test_a_cache_without_a_price_costs_what_input_costs() -> None:
    """A budget may be spent too early, never too late."""
    price = ModelPrice(3.0, 15.0)

    assert price.cost_usd(Usage(cache_read_tokens=MANY)) == 3.0
    assert price.cost_usd(Usage(cache_write_tokens=MANY)) == 3.0


def test_a_free_cache_is_free() -> None:
    """Zero is a price; only a price that is left out falls back."""
    price = ModelPrice(3.0, 15.0, 0.0, 0.0)

    assert price.cost_usd(Usage(0, 0, MANY, MANY)) == 0.0


def test_reasoning_is_paid_once() -> None:
    """It is a part of the output already."""
    assert ModelPrice(0, 10).cost_usd(Usage(0, MANY, reasoning_tokens=MANY)) == 10.0


MIXED = Usage(
    10 * MANY,
    10 * MANY,
    0,
    10 * MANY,
    details=UsageDetails(
        input_audio_tokens=5 * MANY,
        cache_audio_read_tokens=2 * MANY,
        cache_write_1h_tokens=MANY,
        output_audio_tokens=MANY,
        output_image_tokens=MANY,
    ),
)


@pytest.mark.parametrize(
    ("own", "more"),
    [
        ({}, 0.0),
        ({"audio_input_usd": 11.0}, 3 * 10.0),
        ({"cache_write_1h_usd": 6.0}, 5.0),
        ({"audio_output_usd": 22.0}, 20.0),
        ({"image_output_usd": 32.0}, 30.0),
        ({"audio_output_usd": 0.0, "image_output_usd": 0.0}, -4.0),
    ],
)
def test_what_has_a_price_of_its_own_is_paid_once(own: dict[str, float], more: float) -> None:
    """Sound, pictures and long caches are among the other counts."""
    assert ModelPrice(1.0, 2.0, **own).cost_usd(MIXED) == pytest.approx(40.0 + more)


def test_more_sound_than_tokens_costs_no_less_than_nothing() -> None:
    """A server may tell counts that contradict each other."""
    odd = Usage(MANY, 0, details=UsageDetails(input_audio_tokens=9 * MANY))

    assert ModelPrice(1.0, 2.0, audio_input_usd=0.0).cost_usd(odd) == 0.0
    odd = Usage(MANY, 0, details=UsageDetails(cache_audio_read_tokens=9 * MANY))
    assert ModelPrice(1.0, 2.0, audio_input_usd=9.0).cost_usd(odd) == 1.0


def test_the_dearest_token_bounds_all() -> None:
    price = ModelPrice(1.0, 2.0, audio_input_usd=11.0, image_output_usd=32.0)

    assert (11.0, 32.0) == (price.input_max_usd, price.output_max_usd)


@pytest.mark.parametrize("wrong", [-0.01, inf, nan, "3", True])
@pytest.mark.parametrize("field", ["input_usd", "output_usd", "cache_read_usd", "audio_output_usd"])
def test_what_is_no_price_is_refused_by_name(field: str, wrong: object) -> None:
    """A budget that counts with NaN is never over."""
    prices: dict[str, Any] = {"input_usd": 1, "output_usd": 1, field: wrong}

    with pytest.raises(ConfigError, match=rf"ModelPrice\.{field}.*{wrong!r}"):
        ModelPrice(**prices)


@pytest.mark.parametrize("field", ["input_usd", "output_usd"])
def test_input_and_output_must_have_a_price(field: str) -> None:
    """Only caches may be left out."""
    prices: dict[str, Any] = {"input_usd": 1, "output_usd": 1, field: None}

    with pytest.raises(ConfigError, match=field):
        ModelPrice(**prices)
