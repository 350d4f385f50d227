"""Needs: what a running tool may need of its run: a person's answer, or a model of its own.

A tool asks by raising `ToolAsks`. The call ends there, the run parks, and the tool is called again
with the answer (`ToolContext.answer`), perhaps in another process. By `kept` a tool has its state
journaled, and goes on with it. Usage of the tool's own models is counted in the run's budget
(`CallSpending`). A run that ends first tells what the tool keeps open (`Withdraws`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

from msgspec import Struct

from ..effects import ToolQuestion
from ..run import Run
from ..spending import NOTHING_SPENT, Budget, Spent
from ..values import Reply

__all__ = ["CallSpending", "Meter", "ToolAsks", "kept", "paid"]


@final
class ToolAsks(Exception):
    """Raised by a tool's function to ask a person a question.

    Args:
        text: the question.
        takes: the JSON Schema text of the answer.
        state: text that the tool gets back with the answer.
    """

    def __init__(self, text: str, takes: str, state: str) -> None:
        super().__init__(text)
        self.question: Final = ToolQuestion(text, takes, state)


def kept(state: str) -> ToolAsks:
    """Return the exception by which a tool has its state journaled; no person is asked.

    The tool is called again at once with the state, in `ToolContext.answer.question.state`. After
    a stop of the process it is called with this state again: so work that a tool has begun
    elsewhere is begun once.
    """
    return ToolAsks("", "", state)


@final
class CallSpending:
    """The spending of a running call on models of its own, within the budget of its run.

    Args:
        budget: the run's limits.
        before: returns what the run and its other running calls have spent.
        price: returns the cost in US dollars of a reply of the model with this label, or None if it
            is not known.

    Attributes:
        spent: the spending of this call so far.
    """

    __slots__ = ("_before", "_budget", "_price", "spent")

    def __init__(
        self,
        budget: Budget,
        before: Callable[[], Spent],
        price: Callable[[Reply, str], float | None] | None,
    ) -> None:
        self._budget, self._before, self._price = budget, before, price
        self.spent = NOTHING_SPENT

    @property
    def reached(self) -> tuple[str, ...]:
        """The names of the budget's limits that are reached; the tool asks no model then."""
        return self._budget.tripped(self._before() + self.spent)

    def add(self, reply: Reply, label: str) -> None:
        """Count the reply of the model with this label."""
        cost_usd = None if self._price is None else self._price(reply, label)
        self.spent += Spent.on(reply.usage, cost_usd)


class Meter(Struct, frozen=True, eq=False):
    """Returns the spending of a running call; calls that run beside it count in the same budget."""

    known: dict[int, CallSpending]
    effect: int
    run: Run[Any]
    price: Callable[[Reply, str], float | None] | None

    def __call__(self) -> CallSpending:
        """Return the spending of the call, and keep it in `known` by the id of its effect."""
        if self.effect not in self.known:
            budget = self.run.setup.budget
            self.known[self.effect] = CallSpending(budget, self._before, self.price)
        return self.known[self.effect]

    def _before(self) -> Spent:
        others = [at for at in self.run.pending if at != self.effect and at in self.known]
        return sum([self.known[at].spent for at in others], self.run.spent)


def paid(known: dict[int, CallSpending], effect: int) -> Spent:
    """Return what a call has spent; its event reports that, so `known` keeps it no longer."""
    spending = known.pop(effect, None)
    return NOTHING_SPENT if spending is None else spending.spent
