"""Prices: a reply's cost by the caller's table, or genai-prices.

The import of `genai-prices` takes a third of a second, so only runs of real models load this file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price

from ..limits import ModelPrice
from ..values import Reply

__all__ = ["ModelPrice", "price", "price_with"]

# A date behind a name (-2024-08-06, -20250514, -0613), `-latest`, or anything behind @ or a colon.
# Nothing else: gpt-4o-mini is no gpt-4o, and claude-opus-4-1 no claude-opus-4.
_is_same_model = re.compile(
    r"-(?:\d{4}(?:-\d\d-\d\d|\d{2}|\d{4})?|latest)(?:[@:].*)?|[@:].*"
).fullmatch


def price(reply: Reply) -> float | None:
    """Return the cost of a reply in US dollars.

    None for a model without a known price.
    """
    usage = reply.usage
    # The table's input count includes cached tokens; the count of `Usage` does not.
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


def price_with(table: Mapping[str, ModelPrice]) -> Callable[[Reply], float | None]:
    """Return a function like `price` that looks into `table` first.

    A name in the table is that of a model, also without its date stamp, version or tag
    (`gpt-4o` for `gpt-4o-2024-08-06`, `claude-x` for `claude-x@20250514`, `llama3` for
    `llama3:8b`); of several that fit, the longest counts. The table is copied.
    """
    own = dict(table)
    longest_first = sorted(own, key=len, reverse=True)

    def price_of(reply: Reply) -> float | None:
        model = reply.model
        known = own.get(model)
        if known is None:
            fitting = (
                own[name]
                for name in longest_first
                if model.startswith(name) and _is_same_model(model, len(name))
            )
            known = next(fitting, None)
        return price(reply) if known is None else known.cost_usd(reply.usage)

    return price_of
