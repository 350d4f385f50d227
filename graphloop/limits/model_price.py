"""The caller's own price of a model, such as a negotiated one."""

from __future__ import annotations

from math import isfinite
from typing import final

from msgspec import Struct
from msgspec.structs import fields

from ..errors import ConfigError
from ..values import Usage

__all__ = ["ModelPrice"]

_TOKENS_PER_PRICE = 1_000_000


@final
class ModelPrice(Struct, frozen=True):
    """The price of a model, in US dollars for a million tokens.

    Args:
        input_usd: the price of prompt tokens that are not in a cache.
        output_usd: the price of tokens that the model wrote, including its reasoning.
        cache_read_usd: the price of tokens read from a prompt cache; None for the input price.
        cache_write_usd: the price of tokens written to a prompt cache; None for the input price.
        cache_write_1h_usd: the price of those that a cache keeps for an hour; None for
            `cache_write_usd`.
        audio_input_usd: the price of sound in the prompt, outside a cache; None for the input
            price.
        audio_output_usd: the price of sound that the model made; None for the output price.
        image_output_usd: the price of pictures that the model made; None for the output price.

    Raises:
        ConfigError: a price is negative, infinite or not a number.
    """

    input_usd: float
    output_usd: float
    cache_read_usd: float | None = None
    cache_write_usd: float | None = None
    cache_write_1h_usd: float | None = None
    audio_input_usd: float | None = None
    audio_output_usd: float | None = None
    image_output_usd: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            price: object = getattr(self, field.name)
            if not (_is_price(price) or (price is None and field.default is None)):
                raise ConfigError(
                    f"`ModelPrice.{field.name}`: expected US dollars for a million tokens, 0 or "
                    f"more, found {price!r}. Fix: give a finite number."
                )

    def cost_usd(self, usage: Usage) -> float:
        """Return the cost of `usage` in US dollars; its output tokens include reasoning."""
        found, read = usage.details, _or_usual(self.cache_read_usd, self.input_usd)
        write = _or_usual(self.cache_write_usd, self.input_usd)
        heard = found.input_audio_tokens - found.cache_audio_read_tokens
        long, spoken = found.cache_write_1h_tokens, found.output_audio_tokens
        made = (spoken, self.audio_output_usd), (found.output_image_tokens, self.image_output_usd)
        dollars = (
            _price_of(usage.input_tokens, self.input_usd, (heard, self.audio_input_usd))
            + _price_of(usage.cache_read_tokens, read)
            + _price_of(usage.cache_write_tokens, write, (long, self.cache_write_1h_usd))
            + _price_of(usage.output_tokens, self.output_usd, *made)
        )
        return dollars / _TOKENS_PER_PRICE

    @property
    def input_max_usd(self) -> float:
        """The highest price of a token of the prompt."""
        writes = self.cache_write_usd, self.cache_write_1h_usd
        return _highest_price(self.input_usd, self.cache_read_usd, *writes, self.audio_input_usd)

    @property
    def output_max_usd(self) -> float:
        """The highest price of a token that the model wrote."""
        return _highest_price(self.output_usd, self.audio_output_usd, self.image_output_usd)


def _price_of(tokens: int, price: float, *parts: tuple[int, float | None]) -> float:
    """Return the price of tokens, of which some have their own, in millionths of a dollar."""
    total = 0.0
    for count, own in parts:
        if own is not None:
            part = min(max(count, 0), tokens)  # A server can tell more sound than tokens.
            total, tokens = total + part * own, tokens - part
    return total + tokens * price


def _or_usual(own: float | None, usual: float) -> float:
    return usual if own is None else own


def _highest_price(*prices: float | None) -> float:
    return max([price for price in prices if price is not None])


def _is_price(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isfinite(value) and value >= 0
