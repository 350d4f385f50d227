"""Functions that are nodes, and a state that goes through them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from graphloop import NodeContext, node
from graphloop.outcomes import Outcome

__all__ = ["Again", "Billing", "Open", "Technical", "Ticket", "judge", "route"]


@dataclass(frozen=True)
class Ticket:
    """A state of the user's."""

    text: str
    team: str = ""
    tries: int = 0


@dataclass
class Open:
    """A state that can be changed in place."""

    text: str


class Billing(Outcome):
    """A way to leave."""


class Technical(Outcome):
    """Another."""


@dataclass(frozen=True)
class Again(Outcome):
    """Once more; it says why."""

    reason: str = ""


@node
async def route(ticket: Ticket) -> Billing | Technical:
    """Decide by the text."""
    return Billing() if "invoice" in ticket.text else Technical()


@node(cap={Again: 2})
def judge(ticket: Ticket, context: NodeContext) -> tuple[Billing | Again, Ticket]:
    """Try until it has been tried often enough."""
    tried = replace(ticket, tries=ticket.tries + 1)
    return (Again(context.key) if tried.tries < 3 else Billing()), tried
