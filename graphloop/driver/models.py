"""Model calls: one session for each model of a run, and what a call has used before it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from math import isfinite
from typing import Final, Generic, TypeVar

from ..effects import CallModel
from ..errors import BadReply, ConfigError
from ..events import EffectFailed, Event, ModelReplied
from ..providers import (
    Live,
    ModelSession,
    ReasoningDelta,
    Restarted,
    StreamItem,
    TextDelta,
    ToolCallDelta,
    UsageSoFar,
)
from ..spending import Spent
from ..values import AssistantMessage, FinishReason, Reply, Usage, evolve
from .cancellation import cancelled_inside
from .performer import Performer
from .ports import Ports

__all__ = ["DELTAS", "ModelCallInFlight", "Models"]

S = TypeVar("S")

DELTAS: Final = (TextDelta, ReasoningDelta, ToolCallDelta, Restarted)

NOTHING_YET: Final = Reply(AssistantMessage(()), FinishReason.OTHER)
"""A call whose server has reported no usage: its price is not known, whatever the model."""


class Models(Generic[S]):
    """Asks the models of one run; `said` is the text of a reply that has not ended.

    Args:
        ports: where the models are, their prices, and the clock.
        performer: words a failure.
    """

    def __init__(self, ports: Ports[S], performer: Performer[S]) -> None:
        self._ports = ports
        self._performer = performer
        self._sessions: dict[str, ModelSession] = {}
        self._so_far: dict[int, Reply] = {}
        self.said: list[str] = []

    def ask(self, effect: CallModel) -> ModelCallInFlight:
        """Begin a model call."""
        self._so_far[effect.id] = NOTHING_YET
        self.said.clear()
        return ModelCallInFlight(self, effect)

    def stream(self, effect: CallModel) -> AsyncGenerator[StreamItem, None]:
        """Open the stream of a call.

        Raises:
            ConfigError: this driver was not given the model.
        """
        session = self._sessions.get(effect.model)
        if session is None:
            provider = self._ports.models.get(effect.model)
            if provider is None:
                raise ConfigError(
                    f"the graph asks model {effect.model!r}, which this driver was not given; "
                    f"it has {', '.join(map(repr, self._ports.models)) or 'no models'}"
                )
            session = self._sessions[effect.model] = provider.session()
        return session.stream(effect.request)

    def replied(self, effect: CallModel, reply: Reply) -> ModelReplied:
        """Return the event of a complete reply."""
        self._so_far[effect.id] = reply
        return ModelReplied(self._ports.clock(), effect.id, reply, self._price(reply))

    def note(self, effect: CallModel, item: Live | UsageSoFar) -> None:
        """Remember what the run must know of a call that does not end."""
        if isinstance(item, TextDelta):
            self.said.append(item.text)
        elif isinstance(item, Restarted):
            self.said.clear()
        elif isinstance(item, UsageSoFar):
            model = effect.model.partition(":")[2] or effect.model
            self._so_far[effect.id] = evolve(NOTHING_YET, usage=item.usage, model=model)

    def failed(self, effect: CallModel, error: Exception, *, content_seen: bool) -> EffectFailed:
        """Return the event of a call that failed, with what it has used."""
        failed = self._performer.fail(effect, error)
        if not content_seen and self._so_far[effect.id].usage == Usage():
            del self._so_far[effect.id]  # No server bills a refusal.
        return evolve(failed, spent=self._used(effect.id), content_seen=content_seen)

    def counted(self, event: Event) -> None:
        """Forget what the call has used that this event answers: the journal knows it now."""
        if isinstance(event, (ModelReplied, EffectFailed)):
            self._so_far.pop(event.effect, None)
            self.said.clear()

    def unfinished(self) -> Spent:
        """Return what the calls without an answer have used, as far as servers reported it."""
        spent = Spent()
        for effect_id in self._so_far:
            spent += self._used(effect_id)
        self._so_far.clear()
        return spent

    def _used(self, effect_id: int) -> Spent:
        reply = self._so_far.get(effect_id)
        return Spent() if reply is None else Spent.on(reply.usage, self._price(reply))

    def _price(self, reply: Reply) -> float | None:
        """Return what a reply cost; a price that cannot be known must not lose the reply."""
        try:
            cost_usd: object = self._ports.price(reply)
        except Exception:  # noqa: BLE001 - the user's own function
            return None
        if isinstance(cost_usd, bool) or not isinstance(cost_usd, int | float):
            return None
        # Of a usage that no server reported, 0 is the price of nothing.
        reported = cost_usd or reply.usage.total_tokens
        return float(cost_usd) if reported and isfinite(cost_usd) else None


class ModelCallInFlight:
    """One model call: iterate it for its deltas and, last, the event that answers the call.

    It is no generator: the event loop keeps a book of those, which costs more than a delta.
    """

    def __init__(self, models: Models[S], effect: CallModel) -> None:
        self._models = models
        self._effect = effect
        self._stream: AsyncGenerator[StreamItem, None] | None = None
        self._content_seen = self._is_over = False

    def __aiter__(self) -> ModelCallInFlight:
        """Return the call itself."""
        return self

    async def __anext__(self) -> Live | ModelReplied | EffectFailed:
        """Return the next delta, or the event that answers the call: that is the last item."""
        models, effect, stream = self._models, self._effect, self._stream
        if self._is_over:
            raise StopAsyncIteration
        try:
            if stream is None:
                stream = self._stream = models.stream(effect)
            async for item in stream:
                if isinstance(item, Reply):
                    self._is_over = True
                    return models.replied(effect, item)
                if isinstance(item, DELTAS):
                    self._content_seen = type(item) is not Restarted
                    models.note(effect, item)
                    return item
                if not isinstance(item, UsageSoFar):  # pyright: ignore[reportUnnecessaryIsInstance] - types can be ignored
                    raise BadReply(  # noqa: TRY301 - one boundary for the provider and the driver
                        f"model {effect.model!r} said {item!r:.80}: neither a delta nor a reply"
                    )
                models.note(effect, item)
            raise BadReply(  # noqa: TRY301 - as above
                f"model {effect.model!r} ended its stream without a reply"
            )
        except asyncio.CancelledError as error:
            return self._failed(cancelled_inside(error))
        except Exception as error:  # noqa: BLE001 - the effect boundary
            return self._failed(error)

    async def aclose(self) -> None:
        """Close the stream, and with it the connection."""
        if self._stream is not None:
            await self._stream.aclose()

    def _failed(self, error: Exception) -> EffectFailed:
        self._is_over = True
        return self._models.failed(self._effect, error, content_seen=self._content_seen)
