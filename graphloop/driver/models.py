"""Model calls of a run: a session for each model, and the usage of unfinished calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from contextlib import suppress
from math import inf, isfinite
from sys import get_asyncgen_hooks, set_asyncgen_hooks
from time import monotonic
from types import coroutine
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from ..effects import CallModel
from ..errors import BadReply, ConfigError
from ..events import CallCheck, EffectFailed, EffectsStarted, Event, Failure, ModelReplied
from ..graph import NodeGraph
from ..limits import CountedLimit, LimitsSpending
from ..providers import (
    LIVE,
    Live,
    ModelSession,
    Postponed,
    Restarted,
    StreamItem,
    TextDelta,
    UsageSoFar,
    Waiting,
)
from ..run import Run
from ..spending import NOTHING_SPENT, Spent
from ..values import AssistantMessage, FinishReason, Reply, evolve
from .cancellation import cancelled_inside
from .performer import Performer
from .ports import Parked, Ports

__all__ = [
    "NEEDS_DRIVER",
    "ModelCallInFlight",
    "Models",
    "counted_limits",
    "unseen_costs",
]

S = TypeVar("S")

ABANDONED: Final = Failure("Abandoned", "the reply was not needed any more")

NO_CHECKS: Final[tuple[CallCheck, ...]] = ()

VOIDING: Final = frozenset({Restarted, Waiting})
"""Items that say that the model starts over or has not started: what came before is void."""

NEEDS_DRIVER: Final = object()
"""Says that the driver has its turn before the next item."""

NOTHING_YET: Final = Reply(AssistantMessage(()), FinishReason.OTHER)
"""A placeholder for the reply of a call whose server has not reported any usage yet."""


class Models(Struct, Generic[S], eq=False):
    """The model sessions of one run, one for each model, and the calls that are in flight.

    Args:
        ports: the models, their prices and the clock.
        performer: makes the event of a failed call.
        calls: the model calls whose answers are not journaled yet, by effect id.
        due: the monotonic time at which a postponed call, of the run or of a child run, comes
            again; infinite without one.
    """

    ports: Ports[S]
    performer: Performer[S]
    calls: dict[int, ModelCallInFlight[Any]] = {}
    due: float = inf
    _sessions: dict[str, ModelSession] = {}

    @property
    def wake_s(self) -> float | None:
        """The seconds until a postponed call comes again; None without one."""
        return max(0.0, self.due - monotonic()) if self.due < inf else None

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
            session, pace = provider.session(), self.ports.pace
            session = session if pace is None else pace.paced(label, session)
            self._sessions[label] = session
        return session

    def price(self, reply: Reply, label: str) -> float | None:
        """Return the cost in US dollars of a reply of the model with this label.

        The cost is None if the price function gives no number.
        """
        price = self.ports.price
        if price is None:
            return None
        try:
            cost_usd: object = price(reply, label)
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
        return "".join([delta.text for call in self.calls.values() for delta in call.said])

    def are_journaled(self, events: Iterable[Event]) -> None:
        """Remove the calls whose answer or usage is in these journaled events from `calls`."""
        for event in events:
            if type(event) is ModelReplied or type(event) is EffectFailed:
                self.calls.pop(event.effect, None)
            elif type(event) is EffectsStarted and len(event.effects) == 1:
                self.calls.pop(event.effects[0], None)

    async def end_abandoned(
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
                return EffectFailed(at, effect.id, ABANDONED, spent)
        return None

    def so_far(self, at: float) -> EffectsStarted | None:
        """Return an event with the usage of all unfinished calls, and clear it; None without any.

        An aborted run journals it when it parks, because its child runs end elsewhere.
        """
        spent = self.unfinished()
        return None if spent == NOTHING_SPENT else EffectsStarted(at, (), spent)

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

    `run` is the run that asks, for its observers and for the checks of the reply's calls.
    `reported` is the server's latest usage report; None if the call failed before any output.

    `items` yields the deltas, each future that the model waits for, and last `NEEDS_DRIVER`. A
    reader may resume it, and passes all that is no delta to `__anext__`: a delta that has arrived
    costs no wait. Deltas that no stream shows (`is_shown`) are skipped. A model that never waits
    lets other tasks run after `share_s` seconds.
    """

    models: Models[S]
    effect: CallModel
    run: Run[S] | None = None
    said: list[TextDelta] = []
    reported: Reply | None = NOTHING_YET
    items: Generator[object, None, None] | None = None
    is_shown: bool = True
    share_s: float = inf
    _stream: AsyncGenerator[StreamItem, None] | None = None
    answer: ModelReplied | EffectFailed | Parked | None = None
    _cut: BaseException | None = None
    _other_seen: bool = False

    @coroutine
    def __anext__(
        self, yielded: object = NEEDS_DRIVER
    ) -> Generator[object, None, Live | ModelReplied | EffectFailed | Parked]:
        """Return the next delta or, as the last item, the event that answers the call.

        The last item is `Parked` if the call was postponed: then no model was asked.
        `yielded` is what `items` has yielded to a reader.
        """
        if (items := self.items) is None:
            items = self.items = self._resume_model()
        while self.answer is None:
            if yielded is NEEDS_DRIVER:
                yielded = items.send(None)
            else:
                try:
                    yield yielded
                except BaseException as error:  # noqa: BLE001 - the model may handle it
                    yielded = items.throw(error)
                else:
                    yielded = items.send(None)
            if type(yielded) in LIVE:
                return yielded  # type: ignore[return-value]  # As `LIVE` says.
            if self._cut is not None:
                raise self._cut
        return self.answer

    def _resume_model(self) -> Generator[object, None, None]:
        """Yield each item, and each future that the model waits for.

        It is no async generator: the event loop tracks each of these, at a cost per call, and an
        item that has arrived would cost an await.
        """
        say, is_shown, until = self.said.append, self.is_shown, monotonic() + self.share_s
        models, effect, run = self.models, self.effect, self.run
        try:
            models.calls[effect.id] = self
            session, ports, hooks = models.session(effect.model), models.ports, get_asyncgen_hooks()
            # A closing event loop closes all generators that it has seen begin. The driver closes
            # these, and the second of two closers of a generator gets an error.
            set_asyncgen_hooks(firstiter=None)
            try:
                stream = session.stream(effect.request)
                if (observers := ports.observers) is not None and run is not None:
                    stream = observers.around_each(stream, effect, run, ports.wrong)
                self._stream = stream
                coming: Awaitable[StreamItem] | None = anext(stream)
            finally:
                set_asyncgen_hooks(*hooks)
            while self.answer is None:
                if monotonic() > until:
                    yield None
                    until = monotonic() + self.share_s
                item = yield from (coming or anext(stream)).__await__()
                coming = None
                if type(item) is TextDelta:
                    say(item)
                    if is_shown:
                        yield item
                elif self._take_item(item) and is_shown:
                    yield item
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - `__anext__` raises what is no failure
            self._keep_failure(error)
        yield NEEDS_DRIVER

    def _take_item(self, item: StreamItem) -> bool:
        """Whether an item of the stream is a delta; if not, keep the reply or the usage.

        Raises:
            BadReply: the item is none of these.
        """
        if isinstance(item, Reply):
            self.reported, ports, asked = item, self.models.ports, self.effect
            cost_usd = None if ports.price is None else self.models.price(item, asked.model)
            checks, run, calls = NO_CHECKS, self.run, item.message.calls
            # Calls of other tools than the turn's, such as a forced choice, never run.
            if calls and run is not None and run.turn.tools is asked.request.tools:
                checks = self.models.performer.checks_of(calls, run)
            self.answer = ModelReplied(ports.clock(), asked.id, item, cost_usd, checks)
            return False
        if type(item) in LIVE:
            self._other_seen = type(item) not in VOIDING
            if not self._other_seen:
                self.said.clear()
            return True
        label = self.effect.model
        if not isinstance(item, UsageSoFar):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may ignore types
            raise BadReply(f"model {label!r} said {item!r:.80}: neither a delta nor a reply")
        self.reported = evolve(
            NOTHING_YET, usage=item.usage, model=label.partition(":")[2] or label
        )
        return False

    def _keep_failure(self, error: BaseException) -> None:
        """Keep the failure that answers the call, or what is no failure, such as a cancellation."""
        if isinstance(error, asyncio.CancelledError):
            with suppress(asyncio.CancelledError):  # The task itself was cancelled.
                error = cancelled_inside(error)
        elif isinstance(error, StopAsyncIteration):
            error = BadReply(f"model {self.effect.model!r} ended its stream without a reply")
        if not isinstance(error, Exception):
            self._cut = error
            return
        if isinstance(error, Postponed):
            due = monotonic() + error.seconds
            self.models.calls.pop(self.effect.id)
            self.models.due = min(self.models.due, due)
            self.answer = Parked(self.effect.id, due)
            return
        used = self.reported is not None and self.reported.usage != NOTHING_YET.usage
        content_seen = self._other_seen or bool(self.said)
        if not (used or content_seen):
            self.reported = None
        failed = self.models.performer.fail(self.effect, error)
        self.answer = evolve(failed, spent=self.spent, content_seen=content_seen)

    async def aclose(self) -> None:
        """Close the stream of the reply and its connection.

        A stream that fails to close is a warning of the run: what is known must still be journaled.
        """
        self.items = None  # It holds this object.
        if self._stream is not None:
            try:
                await self._stream.aclose()
            except Exception as error:  # noqa: BLE001 - the code of a provider
                text = f"model {self.effect.model!r}: its stream could not be closed: {error!r}"
                self.models.ports.wrong[text] = None

    @property
    def spent(self) -> Spent:
        """The usage and cost of the call, as far as the server has reported its usage."""
        reply = self.reported
        if reply is None:
            return Spent()
        return Spent.on(reply.usage, self.models.price(reply, self.effect.model))


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
    nodes = [node for node in graph.every_node if isinstance(node, LimitsSpending)]
    return tuple([limit for node in nodes for limit in node.counted_limits])
