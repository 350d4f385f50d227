"""Rate: a limit on what a fleet asks of models, and the arithmetic of its meters.

The arithmetic is the generic cell rate algorithm (ITU-T I.371): a meter is the time at which all
that was asked so far has been worked off at the rate's pace. A request costs time, and may be sent
once the meter is not further ahead of the clock than a burst. So in each window of w seconds, the
fleet sends at most what the rate allows in w + `burst_s` seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import inf
from typing import Final, TypeAlias, final

from msgspec import Struct

from ..errors import ConfigError

__all__ = [
    "Demand",
    "Rate",
    "Rates",
    "Slots",
    "charged",
    "check_rates",
    "demands",
    "request_costs",
    "reserved",
    "those_for",
    "token_costs",
]

SECOND_S: Final = 1.0
MINUTE_S: Final = 60.0


@final
@dataclass(frozen=True, slots=True)
class Rate:
    """The most that a fleet asks of the models of one pattern; None for no limit.

        agent = Agent("openai:gpt-5", store=STORE, limits={"openai:*": Rate(requests=500)})

    Attributes:
        requests: the most requests in `per_s` seconds.
        tokens: the most tokens in `per_s` seconds, of requests and replies.
        per_s: the seconds in which `requests` and `tokens` are counted; a minute by default.
        burst_s: after an idle time, the share of this many seconds may be sent at once, and at
            least one request.
    """

    requests: float | None = None
    tokens: float | None = None
    per_s: float = MINUTE_S
    burst_s: float = SECOND_S

    def __post_init__(self) -> None:
        for name in ("requests", "tokens", "per_s", "burst_s"):
            value: object = getattr(self, name)
            if value is None and name in ("requests", "tokens"):
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf:
                raise ConfigError(f"Rate.{name}: expected a positive number, found {value!r}.")
        if self.requests is None and self.tokens is None:
            raise ConfigError(
                "Rate: expected `requests`, `tokens` or both, found neither. Fix: Rate(requests=50)"
            )


Rates: TypeAlias = Mapping[str, Rate]
"""Rates by the pattern of the models' labels, such as "anthropic:*"."""


class Demand(Struct, frozen=True, gc=False):
    """The costs of waiting requests, in their order, for one meter.

    Attributes:
        meter: the meter's name.
        costs: the seconds that each request adds to the meter.
        burst_s: how far the meter may be ahead of the clock.
    """

    meter: str
    costs: tuple[float, ...]
    burst_s: float


class Slots(Struct, frozen=True, gc=False):
    """The times at which the first of the waiting requests may be sent.

    Attributes:
        waits_s: the seconds from now, one for each request that has got a slot.
        next_s: the seconds after which the next request may ask; 0 if each has got a slot.
    """

    waits_s: tuple[float, ...]
    next_s: float


def check_rates(limits: object) -> None:
    """Check the option `limits`.

    Raises:
        ConfigError: they are no mapping of patterns to rates.
    """
    if not isinstance(limits, Mapping):
        raise ConfigError(
            f"`limits`: expected a mapping of patterns to rates, found {limits!r:.80}. Fix: "
            "{'anthropic:*': Rate(requests=50)}, or connect(model, limits=Limits(…)) for one "
            "model of this process."
        )
    for pattern, rate in limits.items():  # pyright: ignore[reportUnknownVariableType] - checked here
        if not (isinstance(pattern, str) and pattern and isinstance(rate, Rate)):
            raise ConfigError(
                f"`limits`: expected a pattern of model labels and a Rate, found {pattern!r:.80}: "
                f"{rate!r:.80}. Fix: {{'anthropic:*': Rate(requests=50)}}"
            )


def those_for(limits: Rates, label: str) -> Rates:
    """Return the limits whose pattern the label of a model matches."""
    return {name: rate for name, rate in limits.items() if fnmatchcase(label, name)}


def demands(limits: Rates, tokens: Sequence[float]) -> tuple[Demand, ...]:
    """Return what requests with these estimates of tokens ask of the meters of their limits."""
    found: list[Demand] = []
    for pattern, rate in limits.items():
        if rate.requests is not None:
            costs = (rate.per_s / rate.requests,) * len(tokens)
            found.append(Demand(f"{pattern} requests", costs, rate.burst_s))
        if rate.tokens is not None:
            costs = tuple([count * rate.per_s / rate.tokens for count in tokens])
            found.append(Demand(f"{pattern} tokens", costs, rate.burst_s))
    return tuple(found)


def request_costs(limits: Rates) -> Mapping[str, float]:
    """Return the seconds that one more request, whose tokens are counted, adds to the meters."""
    return {demand.meter: demand.costs[0] for demand in demands(limits, (0.0,))}


def token_costs(limits: Rates, tokens: float) -> Mapping[str, float]:
    """Return the seconds that a number of tokens adds to the meters of tokens."""
    return {
        f"{pattern} tokens": tokens * rate.per_s / rate.tokens
        for pattern, rate in limits.items()
        if rate.tokens is not None
    }


def reserved(
    known: Mapping[str, float], now: float, wanted: Sequence[Demand], ahead_s: float
) -> tuple[Mapping[str, float], Slots]:
    """Reserve slots for the first of the waiting requests, up to a time ahead.

    A process that dies loses the slots that it has reserved and not used, so it reserves few.

    Args:
        known: the meters that exist.
        now: the time of the meters' clock, in Unix seconds.
        wanted: what the requests ask of each meter.
        ahead_s: the furthest slot, in seconds from now.

    Returns:
        The new meters, and the slots.
    """
    meters = {demand.meter: max(known.get(demand.meter, now), now) for demand in wanted}
    waits: list[float] = []
    for nth in range(len(wanted[0].costs)):
        costs = {demand.meter: demand.costs[nth] for demand in wanted}
        # A request that costs more than a burst waits for an empty meter, not for ever.
        at = max(
            meters[one.meter] + costs[one.meter] - max(one.burst_s, costs[one.meter])
            for one in wanted
        )
        at = max(at, now)
        if at > now + ahead_s:
            return meters, Slots(tuple(waits), at - now - ahead_s)
        # A request that waits for one meter reaches the others when it is sent, not now.
        meters = {name: max(ahead, at) + costs[name] for name, ahead in meters.items()}
        waits.append(at - now)
    return meters, Slots(tuple(waits), 0.0)


def charged(
    known: Mapping[str, float], now: float, costs: Mapping[str, float], closed_s: float
) -> tuple[Mapping[str, float], None]:
    """Return meters after a cost that was not reserved, or a refusal.

    Args:
        known: the meters that exist.
        now: the time of the meters' clock, in Unix seconds.
        costs: the seconds to add to each meter; negative for tokens that were not used.
        closed_s: the seconds from now before which the meter is not reached.
    """
    return {
        meter: max(known.get(meter, now) + cost, now + cost, now + closed_s)
        for meter, cost in costs.items()
    }, None
