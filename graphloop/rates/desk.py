"""RateDesk: lets the model calls of one process pass, as the meters of its store allow.

    a model call: wait in line -> reserve, with all that wait -> wait for the slot -> ask the model
                       |                                                                  |
                       +-- the slot is far away: `Postponed`      correct the tokens <- reply

A call without a slot reserves for its whole line, up to `AHEAD_S`. A server's refusal for too many
requests closes the meters for the whole fleet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from functools import partial
from math import inf
from typing import Final, TypeVar, final
from weakref import WeakKeyDictionary

from msgspec import Struct, field

from ..conversation import estimate
from ..errors import ConfigError, Overloaded, ProviderError, RateLimited, StoreError
from ..limits import (
    Rates,
    charged,
    check_rates,
    demands,
    request_costs,
    reserved,
    those_for,
    token_costs,
)
from ..providers import ModelSession, Postponed, StreamItem, UsageSoFar, Waiting
from ..stores import Change, MemoryStore, Meters, Store
from ..values import ModelRequest, Reply

__all__ = ["AHEAD_S", "FleetPace", "RateDesk", "RateDesks"]

T = TypeVar("T")

LOG: Final = logging.getLogger("graphloop")

AHEAD_S: Final = 0.25
"""The furthest slot that is reserved, in seconds: as much is lost if a process dies."""

LOOK_S: Final = 1.0
"""The seconds after which a line asks again, since other calls may give tokens back."""

REFUSED_S: Final = 1.0
"""The seconds for which a refusal without `Retry-After` closes the meters."""

REPLY_TOKENS: Final = 500
"""The tokens that are reserved for a reply without `max_tokens`, until the reply tells them."""

LINE_MAX: Final = 1_000
"""The most calls for which one reservation is made."""


class _Want(Struct, eq=False):
    """A call in line: its tokens and, once it has a slot, the slot's time by the event loop."""

    tokens: float
    at: float | None = None


class _Line(Struct, eq=False):
    """The calls that wait for the same meters.

    Before `next_at` there is no slot, unless tokens are given back; before `ask_at`, no call asks.
    """

    limits: Rates
    wants: list[_Want] = field(default_factory=list[_Want])
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    next_at: float = -inf
    ask_at: float = -inf

    def rest_s(self, want: _Want) -> float:
        """Return the seconds after which a call that waits may get a slot, as far as is known."""
        before = [other.tokens for other in self.wants[: self.wants.index(want)]]
        costs = [sum(demand.costs) for demand in demands(self.limits, before)]
        return max(0.0, self.next_at - _now()) + max(costs)


@final
class RateDesk:
    """The lines of one process and event loop for the meters of a store.

    Args:
        meters: the store.
        patience_s: the furthest slot, in seconds, that a call waits for; it is postponed if its
            slot is further. Only the driver of a run that can park takes a `Postponed`.
    """

    def __init__(self, meters: Meters, *, patience_s: float = inf) -> None:
        self.meters = meters
        self._patience_s = patience_s
        self._lines: dict[frozenset[str], _Line] = {}

    def __repr__(self) -> str:
        return f"<RateDesk of {self.meters!r}: {len(self._lines)} lines>"

    async def admit(
        self, limits: Rates, label: str, tokens: float
    ) -> AsyncGenerator[Waiting, None]:
        """End when a model may be asked; yield a `Waiting` before, if that is not now.

        Args:
            limits: the limits that the call counts for.
            label: the label of the model.
            tokens: the estimated tokens of the request and its reply.

        Raises:
            Postponed: the slot is further away than the desk's patience.
            Overloaded: the store does not answer.
        """
        line = self._lines.setdefault(frozenset(limits), _Line(limits))
        line.limits, want, is_told = limits, _Want(tokens), False
        line.wants.append(want)
        try:
            while want.at is None or want.at > _now():
                if want.at is None:
                    await self._reserve_for(line, want)
                rest_s = line.rest_s(want) if want.at is None else want.at - _now()
                if want.at is None and rest_s > self._patience_s:
                    LOG.info("model %s: a call is postponed by %.1f s, for its rate", label, rest_s)
                    raise Postponed(rest_s)
                if rest_s > 0 and not is_told:
                    is_told = True
                    LOG.info("model %s: a call waits %.3f s, for its rate", label, rest_s)
                    yield Waiting(label, "fleet", rest_s)
                await asyncio.sleep(min(max(0.0, rest_s), LOOK_S))
        finally:
            if want in line.wants:
                line.wants.remove(want)

    async def correct(self, limits: Rates, tokens: float) -> None:
        """Add tokens to the meters; a negative number takes back what was reserved."""
        if costs := token_costs(limits, tokens):
            await self._change_meters(partial(charged, costs=costs, closed_s=0.0), costs)

    async def refused(self, limits: Rates, label: str, seconds: float | None) -> None:
        """Close the meters for all processes, after a server's refusal for too many requests."""
        closed_s = REFUSED_S if seconds is None else seconds
        LOG.info("model %s: its fleet asks nothing for %.1f s, after a refusal", label, closed_s)
        burst_s, costs = max(rate.burst_s for rate in limits.values()), request_costs(limits)
        await self._change_meters(partial(charged, costs=costs, closed_s=closed_s + burst_s), costs)

    async def _reserve_for(self, line: _Line, want: _Want) -> None:
        async with line.lock:
            if want.at is not None or _now() < line.ask_at:
                return
            wants = line.wants[:LINE_MAX]
            wanted = demands(line.limits, [one.tokens for one in wants])
            change = partial(reserved, wanted=wanted, ahead_s=AHEAD_S)
            try:
                slots = await self.meters.metered([one.meter for one in wanted], change)
            except StoreError as error:
                raise Overloaded(f"the rates of the fleet cannot be asked: {error}") from error
            now = _now()
            for one, wait_s in zip(wants, slots.waits_s, strict=False):
                one.at = now + wait_s
            line.wants = [one for one in line.wants if one.at is None]
            line.next_at, line.ask_at = now + slots.next_s, now + min(slots.next_s, LOOK_S)

    async def _change_meters(self, change: Change[None], meters: Collection[str]) -> None:
        """Change meters after a call; a failure does not undo the call."""
        try:
            await self.meters.metered(meters, change)
        except StoreError as error:
            LOG.warning("the rates of the fleet do not hear of a call: %s", error)


@final
class RateDesks:
    """The desks of the runs of one agent: one for each event loop.

    Args:
        limits: the limits of the agent.

    Raises:
        ConfigError: the limits are no mapping of patterns to rates.
    """

    def __init__(self, limits: Rates) -> None:
        check_rates(limits)
        self._limits = limits
        self._known: WeakKeyDictionary[asyncio.AbstractEventLoop, RateDesk] = WeakKeyDictionary()
        self._alone = MemoryStore()

    def pace(self, store: Store, *, given: bool) -> FleetPace:
        """Return the pace of a run.

        Args:
            store: the store of the run; its meters are those of the fleet.
            given: whether the caller gave the store. If not, a store in memory lives for one run
                only, and the run uses meters of this agent.

        Raises:
            ConfigError: the store has no meters.
        """
        meters = store if given or not isinstance(store, MemoryStore) else self._alone
        if not isinstance(meters, Meters):
            raise ConfigError(
                f"`limits`: expected a store with meters, found {meters!r}. Fix: keep the runs in "
                "a database, store='runs.db'."
            )
        loop = asyncio.get_running_loop()
        desk = self._known.get(loop)
        if desk is None or desk.meters is not meters:
            desk = self._known[loop] = RateDesk(meters)
        return FleetPace(desk, self._limits)


@final
class FleetPace(Struct, frozen=True):
    """The limits of one run's model calls, and the desk of its process."""

    desk: RateDesk
    limits: Rates

    def for_child(self, own: FleetPace | None) -> FleetPace:
        """Return the pace of a child run, which has these limits and its own."""
        return self if own is None else FleetPace(self.desk, {**self.limits, **own.limits})

    def paced(self, label: str, session: ModelSession) -> ModelSession:
        """Return a session of a model that waits for the limits; without any, the session."""
        limits = those_for(self.limits, label)
        return _PacedSession(self.desk, limits, label, session) if limits else session


@final
class _PacedSession(Struct, frozen=True):
    """A session of a model whose calls wait for the rates of the fleet."""

    desk: RateDesk
    limits: Rates
    label: str
    session: ModelSession

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Wait for a slot, and send the request; see `ModelSession.stream`."""
        desk, limits, used = self.desk, self.limits, None
        tokens = estimate(request.messages) + (request.settings.max_tokens or REPLY_TOKENS)
        async with aclosing(desk.admit(limits, self.label, tokens)) as waits:
            async for waiting in waits:
                yield waiting
        try:
            async with aclosing(self.session.stream(request)) as items:
                async for item in items:
                    match item:
                        case Waiting(reason="rate_limited", seconds=seconds):
                            await desk.refused(limits, self.label, seconds)
                        case UsageSoFar() | Reply():
                            used = item.usage.total_tokens
                        case _:
                            pass
                    if type(item) is Reply:
                        tokens = await self._correct(tokens, used or 0)
                    yield item
        except ProviderError as error:
            if isinstance(error, RateLimited):
                await desk.refused(limits, self.label, error.retry_after_s)
            used = used or 0
            raise
        finally:
            # A call that was broken off without a word of its usage keeps its estimate.
            if used is not None:
                await self._correct(tokens, used)

    async def _correct(self, tokens: int, used: int) -> int:
        """Replace the estimate by the tokens that were used, and return these."""
        if used != tokens:
            await self.desk.correct(self.limits, used - tokens)
        return used


def _now() -> float:
    return asyncio.get_running_loop().time()
