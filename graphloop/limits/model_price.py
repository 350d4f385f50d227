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

    Raises:
        ConfigError: a price is negative, infinite or not a number.
    """

    input_usd: float
    output_usd: float
    cache_read_usd: float | None = None
    cache_write_usd: float | None = None

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
        read, write = self.cache_read_usd, self.cache_write_usd
        dollars = (
            usage.input_tokens * self.input_usd
            + usage.output_tokens * self.output_usd
            + usage.cache_read_tokens * (self.input_usd if read is None else read)
            + usage.cache_write_tokens * (self.input_usd if write is None else write)
        )
        return dollars / _TOKENS_PER_PRICE


def _is_price(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isfinite(value) and value >= 0
