"""Asking models: one session for each model of a run, and what a call has used before it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, Generic, TypeVar

from ..effects import CallModel
from ..errors import BadReply, ConfigError
from ..events import EffectFailed, Event, ModelReplied
from ..providers.base import (
    Live,
    ModelSession,
    ReasoningDelta,
    Restarted,
    TextDelta,
    ToolCallDelta,
    UsageSoFar,
)
from ..spending import Spent
from ..values import AssistantMessage, FinishReason, Reply, Usage, evolve
from .caller import cancelled_inside
from .perform import Performer
from .ports import Ports

__all__ = ["DELTAS", "Models"]

S = TypeVar("S")

DELTAS: Final = (TextDelta, ReasoningDelta, ToolCallDelta, Restarted)

NOTHING_YET: Final = Reply(AssistantMessage(()), FinishReason.OTHER)
"""A call whose server has told no usage: whatever model it asks, its price is not known."""


class Models(Generic[S]):
    """Asks the models of one run; `said` is the text of a reply that has not ended.

    Args:
        ports: where the models are, and the clock.
        performer: what prices a reply and words a failure.
    """

    def __init__(self, ports: Ports[S], performer: Performer[S]) -> None:
        self._ports = ports
        self._performer = performer
        self._sessions: dict[str, ModelSession] = {}
        self._so_far: dict[int, Reply] = {}
        self.said: list[str] = []

    async def ask(
        self, effect: CallModel
    ) -> AsyncGenerator[Live | ModelReplied | EffectFailed, None]:
        """Yield a model's deltas and, last, the event that it replied or failed."""
        seen = False
        self._so_far[effect.id] = NOTHING_YET
        self.said.clear()
        try:
            async with aclosing(self._session(effect.model).stream(effect.request)) as stream:
                async for item in stream:
                    if isinstance(item, DELTAS):
                        seen = type(item) is not Restarted
                        if isinstance(item, TextDelta):
                            self.said.append(item.text)
                        elif not seen:
                            self.said.clear()
                        yield item
                    elif isinstance(item, Reply):
                        self._so_far[effect.id] = item
                        cost_usd = self._performer.price(item)
                        yield ModelReplied(self._ports.clock(), effect.id, item, cost_usd)
                        return
                    elif isinstance(item, UsageSoFar):  # pyright: ignore[reportUnnecessaryIsInstance] - types can be ignored
                        self._so_far[effect.id] = _so_far(effect.model, item.usage)
                    else:
                        raise BadReply(  # noqa: TRY301 - as below
                            f"model {effect.model!r} said {item!r:.80}: neither a delta nor a reply"
                        )
            raise BadReply(  # noqa: TRY301 - one boundary for what the provider and we find
                f"model {effect.model!r} ended its stream without a reply"
            )
        except asyncio.CancelledError as error:
            yield self._failed(effect, cancelled_inside(error), seen=seen)
        except Exception as error:  # noqa: BLE001 - the effect boundary
            yield self._failed(effect, error, seen=seen)

    def counted(self, event: Event) -> None:
        """Forget what a call has used that this event answers: the journal knows it now."""
        if isinstance(event, (ModelReplied, EffectFailed)):
            self._so_far.pop(event.effect, None)
            self.said.clear()

    def unfinished(self) -> Spent:
        """Return what the calls without an answer have used, as far as their servers said."""
        spent = Spent()
        for effect_id in self._so_far:
            spent += self._used(effect_id)
        self._so_far.clear()
        return spent

    def _failed(self, effect: CallModel, error: Exception, *, seen: bool) -> EffectFailed:
        failed = self._performer.fail(effect, error)
        if not seen and self._so_far[effect.id].usage == Usage():
            del self._so_far[effect.id]  # No server bills a refusal.
        return evolve(failed, spent=self._used(effect.id), content_seen=seen)

    def _used(self, effect_id: int) -> Spent:
        reply = self._so_far.get(effect_id)
        if reply is None:
            return Spent()
        return Spent.on(reply.usage, self._performer.price(reply))

    def _session(self, label: str) -> ModelSession:
        session = self._sessions.get(label)
        if session is None:
            provider = self._ports.models.get(label)
            if provider is None:
                raise ConfigError(
                    f"the graph asks model {label!r}, which this driver was not given; "
                    f"it has {', '.join(map(repr, self._ports.models)) or 'no models'}"
                )
            session = self._sessions[label] = provider.session()
        return session


def _so_far(label: str, usage: Usage) -> Reply:
    """Return what a call has used, as a reply that can be priced."""
    model = label.partition(":")[2] or label
    return Reply(AssistantMessage(()), FinishReason.OTHER, usage, model=model)
