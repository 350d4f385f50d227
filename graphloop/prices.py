"""What a reply cost, by the price table of `genai-prices`: at the model that gave the reply."""

from __future__ import annotations

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price

from .values import Reply

__all__ = ["price"]


def price(reply: Reply) -> float | None:
    """Return the cost of a reply in US dollars, or None for a model without a known price."""
    usage = reply.usage
    # The table's input count includes what came from or went to a cache; ours does not.
    priced = PricedUsage(
        input_tokens=usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
    )
    try:
        return float(calc_price(priced, model_ref=reply.model).total_price)
    except LookupError:
        return None
