"""Violation: a promise that a run has not kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

__all__ = ["INVARIANTS", "Violation"]

INVARIANTS: Final[Mapping[str, str]] = {
    "broken": "no node raises, leaves the process, or breaks the protocol",
    "stuck": "a run ends, or waits for a person, a client or a child",
    "endless": "a run is over within the event limit",
    "ending": "a run that is over waits for nothing and says why it ended",
    "replay": "the journal leads to the run again, and the same choices to the same run",
    "history": "calls and results pair one-to-one, in order, in every conversation and record",
    "past": "the messages of a conversation stay, but for those that a Compact shortens",
    "prefix": "a request is the conversation, and begins with the request before it",
    "answers": "every call of the model is answered in the history, by what came of it",
    "gate": "no tool runs that no gate let through, or that a person had to approve first",
    "once": "no call that has run runs again",
    "stopped": "a run that was stopped asks for nothing",
    "room": "no more is under way than the node and the budget have room for",
    "bound": "no more models are asked, and no node is visited more often, than is proven",
    "rule": "the temporal rules hold",
    "unjudged": "the fuzzer can trace and judge the run",
}
"""What every run keeps, by the code of its violation."""


@final
@dataclass(frozen=True, slots=True)
class Violation:
    """A thing that a run did and must not do.

    Args:
        code: one of `INVARIANTS`.
        what: what was found.
        event: after which event, counted from 1; 0 for the run as a whole.
    """

    code: str
    what: str
    event: int = 0

    def __str__(self) -> str:
        place = f" (event {self.event})" if self.event else ""
        return f"{self.code}: {self.what}{place}"
