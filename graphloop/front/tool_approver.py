"""The user's `approve_tool_call`, told of a call as somebody outside knows it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

from ..approvals import Approval, refuse_edit
from ..drivers.asks import Pending, ask_key, parameters_of
from ..effects import AskHuman
from ..run import Run
from .answers import approval_of

__all__ = ["Decide", "ToolApprover"]

Decide: TypeAlias = Callable[[Pending], bool | Approval | Awaitable[bool | Approval]]


@final
@dataclass(frozen=True)
class ToolApprover:
    """Asks `decide` about the calls of one run; `agents` are those it is in, outermost first."""

    decide: Decide
    agents: tuple[str, ...] = ()

    def within(self, agent: str) -> ToolApprover:
        """Return the same for the runs of an agent that the run calls."""
        return replace(self, agents=(*self.agents, agent))

    async def __call__(self, effect: AskHuman, run: Run[Any]) -> Approval:
        """Ask about one call; everything that is not exactly an approval denies it.

        Raises:
            ConfigError: the answer edits a call that may have run.
        """
        call, key, path = effect.call, ask_key(effect), run.id.partition("/")[2]
        pending = Pending(
            "approval",
            f"{path}/{key}" if path else key,
            call.id,
            call.name,
            call.arguments,
            self.agents,
            expires_at=effect.expires_at,
            unknown=effect.unknown,
            parameters=parameters_of(run, effect),
            in_words=bool(effect.takes),
        )
        answer = self.decide(pending)
        if inspect.isawaitable(answer):
            answer = await answer
        approval = approval_of(answer)
        refuse_edit(pending.key, approval, unknown=pending.unknown)
        return approval
