"""Performing one effect: every wish but a model call becomes the event that answers it.

This is the effect boundary: whatever a user's function raises becomes `EffectFailed`, with its
traceback kept. Cancellation is not a failure and passes through.
"""

from __future__ import annotations

import asyncio
import traceback
from math import isfinite
from typing import Generic, TypeVar, assert_never

from ..effects import AskHuman, CallTool, CheckCalls, Effect, Invoke
from ..errors import ConfigError, ToolError
from ..events import (
    CallbackReturned,
    CallCheck,
    CallsChecked,
    Changes,
    Decided,
    EffectFailed,
    Event,
    Failure,
    Left,
    ToolReturned,
    Tripped,
)
from ..run import Run
from ..tools import ToolContext
from ..values import Reply, ToolCall, call_key, call_place
from .ports import Approval, Ports

__all__ = ["Performer", "cancelled_inside", "failed"]

S = TypeVar("S")


class Performer(Generic[S]):
    """Performs effects through ports; keeps the last exception for the front door."""

    def __init__(self, ports: Ports[S]) -> None:
        self._ports = ports
        self.exception: Exception | None = None

    def can_perform(self, effect: Effect) -> bool:
        """Whether somebody in this process can answer; if not, the run parks with it."""
        if isinstance(effect, CallTool):
            return not effect.client
        return not isinstance(effect, AskHuman) or self._ports.approve is not None

    async def perform(
        self, effect: CheckCalls | CallTool | AskHuman | Invoke, run: Run[S]
    ) -> Event:
        """Perform one effect and return the event that answers it."""
        try:
            match effect:
                case CallTool():
                    return await self._call_tool(effect, run)
                case CheckCalls():
                    return await self._check_calls(effect, run)
                case AskHuman():
                    return await self._ask_human(effect, run)
                case Invoke():
                    return await self._invoke(effect, run)
                case _:
                    assert_never(effect)
        except asyncio.CancelledError as error:
            return self.fail(effect, cancelled_inside(error))
        except Exception as error:  # noqa: BLE001 - the effect boundary
            return self.fail(effect, error)

    def price(self, reply: Reply) -> float | None:
        """Return what a reply cost; a price that cannot be told must not lose the reply."""
        try:
            cost_usd: object = self._ports.price(reply)
        except Exception:  # noqa: BLE001 - the user's own function
            return None
        if isinstance(cost_usd, bool) or not isinstance(cost_usd, int | float):
            return None
        return float(cost_usd) if isfinite(cost_usd) else None

    def fail(self, effect: Effect, error: Exception) -> EffectFailed:
        """Return the event of an effect that raised, and keep the exception."""
        self.exception = error
        return failed(self._ports.clock(), effect, error)

    async def _call_tool(self, effect: CallTool, run: Run[S]) -> Event:
        call = effect.call
        tool = self._ports.toolbox.get(call.name)
        if tool is None:
            raise ConfigError(
                f"the run's tool {call.name!r} is not among the tools given to this driver: "
                "resume with the tools it was started with"
            )
        verdict = run.turn.verdicts[call_place(effect.key)] if run.turn.verdicts else None
        if verdict is None or verdict.kind != "run":
            raise ConfigError(
                f"no gate has let call {effect.key} of tool {call.name!r} through: lead every way "
                "to a node that runs tools through a Gate"
            )
        outcome = await tool.run(call.arguments, _context(run, effect.key, call))
        return ToolReturned(self._ports.clock(), effect.id, outcome.content, outcome.status)

    async def _check_calls(self, effect: CheckCalls, run: Run[S]) -> Event:
        # Two calls may be equal, even the same object: their places tell them apart.
        verdicts = run.turn.verdicts or (None,) * len(run.turn.calls)
        places = [at for at, verdict in enumerate(verdicts) if verdict is None]
        checks = [
            await self._check(call_key(effect.turn, at), call, run)
            for at, call in zip(places, effect.calls, strict=True)
        ]
        return CallsChecked(self._ports.clock(), effect.id, tuple(checks))

    async def _check(self, key: str, call: ToolCall, run: Run[S]) -> CallCheck:
        tool = self._ports.toolbox.get(call.name)
        if tool is None:
            return CallCheck(f"Not run: tool {call.name!r} is not available in this process.")
        problem = tool.validate(call.arguments)
        if problem is not None:
            return CallCheck(problem)
        if tool.needs_approval is False:
            return UNGATED
        needed = await tool.approval_needed(call.arguments, _context(run, key, call))
        return CallCheck(needs_approval=True) if needed else UNGATED

    async def _ask_human(self, effect: AskHuman, run: Run[S]) -> Event:
        approve = self._ports.approve
        assert approve is not None, "can_perform has been asked"
        approval = self._checked(effect, await approve(effect, run))
        return Decided(
            self._ports.clock(),
            effect.id,
            approval.approved,
            approval.reason,
            approval.edit,
        )

    def _checked(self, effect: AskHuman, approval: Approval) -> Approval:
        """Deny an approval whose edited arguments could not run."""
        tool = self._ports.toolbox.get(effect.call.name)
        if not approval.approved or not approval.arguments or tool is None:
            return approval
        problem = tool.validate(approval.edit)
        return (
            approval
            if problem is None
            else Approval(approved=False, reason=f"edited arguments: {problem}")
        )

    async def _invoke(self, effect: Invoke, run: Run[S]) -> Event:
        callback = self._ports.callbacks.get(effect.callback)
        if callback is None:
            raise ConfigError(
                f"the graph calls {effect.callback!r}, which this driver was not given; "
                f"it has {sorted(self._ports.callbacks) or 'no callbacks'}"
            )
        answer = await callback(run)
        if not isinstance(answer, Changes | Tripped | Left):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"callback {effect.callback!r} returns Changes, Tripped or Left; "
                f"found {type(answer).__name__}"
            )
        return CallbackReturned(self._ports.clock(), effect.id, answer)


UNGATED = CallCheck()


def cancelled_inside(error: asyncio.CancelledError) -> Exception:
    """Return the failure of what was cancelled without anybody cancelling this task.

    Raises:
        CancelledError: somebody did: then it is no failure, and passes through.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise error
    return ToolError("cancelled from inside: it awaited something that somebody else cancelled")


def failed(at: float, effect: Effect, error: Exception) -> EffectFailed:
    """Return the event that says how an effect failed."""
    trace = "".join(traceback.format_exception(error))
    return EffectFailed(at, effect.id, Failure(type(error).__name__, str(error), trace))


def _context(run: Run[S], key: str, call: ToolCall) -> ToolContext:
    return ToolContext(
        run_id=run.id, key=key, call_id=call.id, turn=run.turn.number, messages=run.messages
    )
