"""Model calls of a run: a session for each model, and the usage of unfinished calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from math import isfinite
from typing import Any, Final, Generic, TypeAlias, TypeVar

from msgspec import Struct

from ..effects import CallModel
from ..errors import BadReply, ConfigError
from ..events import CallCheck, EffectFailed, EffectsStarted, Event, Failure, ModelReplied
from ..graph import NodeGraph
from ..limits import CostExceeds, TotalTokensExceed, parts_of
from ..nodes import PrepareStep, StopCheck
from ..providers import (
    LIVE,
    Live,
    ModelSession,
    Restarted,
    StreamItem,
    TextDelta,
    UsageSoFar,
    Waiting,
)
from ..run import Run
from ..spending import Spent
from ..values import AssistantMessage, FinishReason, Reply, evolve
from .cancellation import cancelled_inside
from .performer import Performer
from .ports import Ports

__all__ = ["CountedLimit", "ModelCallInFlight", "Models", "counted_limits", "unseen_costs"]

S = TypeVar("S")

CountedLimit: TypeAlias = tuple[bool, str]
"""A limit of a node: whether it is one on costs (else on tokens), and its text."""

UNWANTED: Final = Failure("Unwanted", "the reply was not needed any more")

NO_CHECKS: Final[tuple[CallCheck, ...]] = ()

VOIDING: Final = frozenset({Restarted, Waiting})
"""Items that say that the model starts over or has not started: what came before is void."""

NOTHING_YET: Final = Reply(AssistantMessage(()), FinishReason.OTHER)
"""A placeholder for the reply of a call whose server has not reported any usage yet."""


class Models(Struct, Generic[S], eq=False):
    """The model sessions of one run, one for each model, and the calls that are in flight.

    Args:
        ports: the models, their prices and the clock.
        performer: makes the event of a failed call.
        calls: the model calls whose answers are not journaled yet, by effect id.
    """

    ports: Ports[S]
    performer: Performer[S]
    calls: dict[int, ModelCallInFlight[Any]] = {}
    _sessions: dict[str, ModelSession] = {}

    def session(self, label: str) -> ModelSession:
        """Return the session of the model with this label; the first call opens the session.

        Raises:
            ConfigError: this driver was not given the model.
        """
        session = self._sessions.get(label)
        if session is None:
            provider = self.ports.models.get(label)
            if provider is None:
                raise ConfigError(
                    f"the graph asks model {label!r}, which this driver was not given; "
                    f"it has {', '.join(map(repr, self.ports.models)) or 'no models'}"
                )
            session = self._sessions[label] = provider.session()
        return session

    def price(self, reply: Reply) -> float | None:
        """Return the cost of a reply in US dollars; None if the price function gives no number."""
        price = self.ports.price
        if price is None:
            return None
        try:
            cost_usd: object = price(reply)
        except Exception:  # noqa: BLE001 - the user's own function
            return None
        if isinstance(cost_usd, bool) or not isinstance(cost_usd, int | float):
            return None
        # A price of 0 is no price if the server has not reported the usage.
        reported = cost_usd or reply.usage.total_tokens
        return float(cost_usd) if reported and isfinite(cost_usd) else None

    @property
    def said(self) -> str:
        """The text that all unfinished replies have streamed so far."""
        return "".join([text for call in self.calls.values() for text in call.said])

    def are_journaled(self, events: Iterable[Event]) -> None:
        """Remove the calls whose answer or usage is in these journaled events from `calls`."""
        for event in events:
            if type(event) is ModelReplied or type(event) is EffectFailed:
                self.calls.pop(event.effect, None)
            elif type(event) is EffectsStarted and len(event.effects) == 1:
                self.calls.pop(event.effects[0], None)

    async def end_unwanted(
        self, run: Run[S], at: float, drop: Callable[[CallModel], Awaitable[None]]
    ) -> EffectFailed | None:
        """End the abandoned model call of a run, and return its end with its usage, or None.

        Args:
            run: the run, which waits for effects that no node needs any longer.
            at: the current time, in seconds since the epoch.
            drop: ends the call in the run's driver.
        """
        for effect in run.pending.values():
            if isinstance(effect, CallModel):
                await drop(effect)
                call = self.calls.get(effect.id)
                spent = Spent() if call is None else call.spent
                return EffectFailed(at, effect.id, UNWANTED, spent)
        return None

    def unfinished(self) -> Spent:
        """Return the usage of all unfinished calls, also those of tools, and forget them."""
        of_tools = self.performer.spendings
        spent = sum([call.spent for call in self.calls.values()], Spent())
        spent = sum([call.spent for call in of_tools.values()], spent)
        self.calls.clear()
        of_tools.clear()
        return spent


class ModelCallInFlight(Struct, Generic[S], eq=False):
    """A model call: `__anext__` returns each delta and, last, the event that answers the call.

    It is no async generator, because the event loop tracks each generator, at a cost per call.
    `run` is the run that asks, for its observers and for the checks of the reply's calls.
    `reported` is the server's latest usage report; None if the call failed before any output.
    `stream` is the reply of the session, from the first `__anext__` on. A caller may await its
    items; it passes each to `hear`, and an exception to `fail`.
    """

    models: Models[S]
    effect: CallModel
    run: Run[S] | None = None
    said: list[str] = []
    reported: Reply | None = NOTHING_YET
    stream: AsyncGenerator[StreamItem, None] | None = None
    _answer: ModelReplied | EffectFailed | None = None
    _other_seen: bool = False

    async def __anext__(self) -> Live | ModelReplied | EffectFailed:
        """Return the next delta or, as the last item, the event that answers the call."""
        models, effect = self.models, self.effect
        while self._answer is None:
            try:
                if self.stream is None:
                    models.calls[effect.id] = self
                    items, ports = models.session(effect.model).stream(effect.request), models.ports
                    seen_by, run = ports.observers, self.run
                    self.stream = (
                        items
                        if seen_by is None or run is None
                        else seen_by.around_each(items, effect, run, ports.wrong)
                    )
                delta = self.hear(await self.stream.__anext__())
            except BaseException as error:  # noqa: BLE001 - `fail` raises what is no failure
                self.fail(error)
            else:
                if delta is not None:
                    return delta
        return self._answer

    def hear(self, item: StreamItem) -> Live | None:
        """Return an item of the stream that is a delta; keep a reply or usage, and return None.

        Raises:
            BadReply: the item is none of these.
        """
        if type(item) is TextDelta:
            self.said.append(item.text)
            return item
        if isinstance(item, Reply):
            self.reported, ports, asked = item, self.models.ports, self.effect
            cost_usd = None if ports.price is None else self.models.price(item)
            checks, run, calls = NO_CHECKS, self.run, item.message.calls
            # Calls of other tools than the turn's, such as a forced choice, never run.
            if calls and run is not None and run.turn.tools is asked.request.tools:
                checks = self.models.performer.checks_of(calls, run)
            self._answer = ModelReplied(ports.clock(), asked.id, item, cost_usd, checks)
            return None
        if isinstance(item, LIVE):
            self._other_seen = type(item) not in VOIDING
            if not self._other_seen:
                self.said.clear()
            return item
        label = self.effect.model
        if not isinstance(item, UsageSoFar):  # pyright: ignore[reportUnnecessaryIsInstance] - types can be ignored
            raise BadReply(f"model {label!r} said {item!r:.80}: neither a delta nor a reply")
        self.reported = evolve(
            NOTHING_YET, usage=item.usage, model=label.partition(":")[2] or label
        )
        return None

    def fail(self, error: BaseException) -> None:
        """Keep the failure that answers the call; raise what is no failure, like a cancellation."""
        if isinstance(error, asyncio.CancelledError):
            error = cancelled_inside(error)
        elif isinstance(error, StopAsyncIteration):
            error = BadReply(f"model {self.effect.model!r} ended its stream without a reply")
        if not isinstance(error, Exception):
            raise error
        used = self.reported is not None and self.reported.usage != NOTHING_YET.usage
        content_seen = self._other_seen or bool(self.said)
        if not (used or content_seen):
            self.reported = None
        failed = self.models.performer.fail(self.effect, error)
        self._answer = evolve(failed, spent=self.spent, content_seen=content_seen)

    async def aclose(self) -> None:
        """Close the stream of the reply and its connection."""
        if self.stream is not None:
            await self.stream.aclose()

    @property
    def spent(self) -> Spent:
        """The usage and cost of the call, as far as the server has reported its usage."""
        reply = self.reported
        return Spent() if reply is None else Spent.on(reply.usage, self.models.price(reply))


def unseen_costs(limits: Iterable[CountedLimit], run: Run[S]) -> tuple[str, ...]:
    """Return a warning for each cost or token limit that cannot count all model calls of a run.

    A cost limit cannot count calls without a known price. A token limit cannot count calls without
    reported usage. `limits` are those of the run's graph (`counted_limits`).
    """
    spent, limit = run.spent, run.setup.budget
    unpriced, untold = spent.unpriced_calls, spent.unreported_calls
    if not (unpriced or untold):
        return ()
    bounds: list[str] = []
    if unpriced and limit.usd is not None:
        bounds.append(f"budget(usd={limit.usd:g})")
    if untold and limit.tokens is not None:
        bounds.append(f"budget(tokens={limit.tokens})")
    bounds += [text for is_cost, text in limits if (unpriced if is_cost else untold)]
    if not bounds:
        return ()
    why = "a server told no usage" if untold else "a price is not known"
    fix = "bound the run by steps or seconds" if untold else "give `prices=` or `price=`"
    if not limit.refuse_uncounted:
        fix += ", or end such a run by budget(refuse_uncounted=True)"
    said = f"cannot count all model calls: {why}. Fix: {fix}"
    return tuple([f"{bound} {said}" for bound in bounds])


def counted_limits(graph: NodeGraph[Any]) -> tuple[CountedLimit, ...]:
    """Return the limits of a graph's nodes on costs and tokens."""
    found: list[CountedLimit] = []
    for node in graph.nodes.values():
        if isinstance(node, StopCheck):
            for part in [part for one in node.conditions for part in parts_of(one)]:
                if isinstance(part, CostExceeds):
                    found.append((True, f"stop.cost_exceeds({part.usd_max:g})"))
                elif isinstance(part, TotalTokensExceed):
                    found.append((False, f"stop.total_tokens_exceed({part.tokens_max})"))
        elif isinstance(node, PrepareStep) and node.compaction is not None:
            window = node.compaction.context_window
            found.append((False, f"Compaction(context_window={window})"))
    return tuple(found)
