"""Costs of replies and context windows, from a caller's price table or from `genai-prices`.

Importing `genai-prices` takes a third of a second, so only runs of real models load this module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price
from genai_prices.data_snapshot import get_snapshot
from msgspec.structs import asdict

from ..limits import ModelPrice
from ..values import Reply
from .services import service_of

__all__ = ["ModelPrice", "price", "price_with", "published_price", "published_windows"]

# Matches the rest of a model name that has the same price: a date (-2024-08-06, -20250514, -0613),
# `-latest`, or anything after @ or a colon. Other endings name other models, as in gpt-4o-mini.
_is_same_model = re.compile(
    r"-(?:\d{4}(?:-\d\d-\d\d|\d{2}|\d{4})?|latest)(?:[@:].*)?|[@:].*"
).fullmatch


def price(reply: Reply, *, service: str = "") -> float | None:
    """Return the cost of a reply in US dollars, or None if the model's price is unknown.

    Args:
        reply: the reply.
        service: the id in genai-prices of the service that was asked; without it, the model's name
            decides.
    """
    usage = reply.usage
    # genai-prices counts cached tokens as input tokens; `Usage` does not.
    counts = {
        "input_tokens": usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "output_tokens": usage.output_tokens,
    }
    # A server can tell details that contradict its counts, such as more sound than tokens.
    for details in (asdict(usage.details), {}):
        try:
            priced = PricedUsage(**counts, **details)
            found = calc_price(priced, model_ref=reply.model, provider_id=service or None)
            return float(found.total_price)
        except LookupError:
            return None
        except ValueError:
            continue
    return None


def published_price(reply: Reply, label: str) -> float | None:
    """Return the cost of a reply in US dollars, at the prices of the service that gave it.

    The cost is None if the service is unknown, has no prices, or not of this model.

    Args:
        reply: the reply.
        label: the label of the model that was asked, such as `"groq:llama-3.3-70b-versatile"`.
    """
    service = service_of(label)
    if service is None or service.prices is None:
        return None
    return price(reply, service=service.prices)


def price_with(table: Mapping[str, ModelPrice]) -> Callable[[Reply, str], float | None]:
    """Return a function like `published_price` that uses the prices in `table` first.

    The keys of `table` are model names, perhaps without date, version or tag: `gpt-4o` also matches
    `gpt-4o-2024-08-06`, `claude-x` matches `claude-x@20250514`, and `llama3` matches `llama3:8b`.
    If several keys match, the longest key is used. The table is copied.
    """
    own = dict(table)
    longest_first = sorted(own, key=len, reverse=True)

    def price_of(reply: Reply, label: str) -> float | None:
        model = reply.model
        known = own.get(model)
        if known is None:
            fitting = (
                own[name]
                for name in longest_first
                if model.startswith(name) and _is_same_model(model, len(name))
            )
            known = next(fitting, None)
        return published_price(reply, label) if known is None else known.cost_usd(reply.usage)

    return price_of


def published_windows(labels: Iterable[str]) -> Mapping[str, int | None]:
    """Return the context windows of models in tokens, from genai-prices; None for unknown ones.

    Args:
        labels: the models' labels, such as `"openai:gpt-5"`.
    """
    return {label: _published_window(label) for label in labels}


def _published_window(label: str) -> int | None:
    service = service_of(label)
    if service is None or service.prices is None:
        return None
    name = label.partition(":")[2]
    try:
        _, found = get_snapshot().find_provider_model(name, None, service.prices or None, None)
    except LookupError:
        return None
    return found.context_window
