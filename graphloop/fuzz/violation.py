"""Violation: a promise that a run has not kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

__all__ = ["INVARIANTS", "Violation"]

INVARIANTS: Final[Mapping[str, str]] = {
    "broken": "no node raises, leaves the process, or breaks the protocol",
    "stuck": "a run ends, or waits for somebody outside",
    "endless": "a run is over within the event limit",
    "ending": "a run that is over waits for nothing and says why it ended",
    "replay": "the journal leads to the run again, and the same choices to the same run",
    "history": "calls and results pair one-to-one, in order, in every conversation and record",
    "past": "what stands in a conversation stays, but for what a Compact shortens",
    "prefix": "a model is sent the conversation, which begins with what it was sent before",
    "answers": "every call that the model made is answered in the history, by what came of it",
    "gate": "no tool runs that no gate let through, or that a person had to approve first",
    "once": "nothing that has run runs again",
    "stopped": "nothing is asked for once a run was stopped",
    "room": "no more is under way than the node and the budget have room for",
    "bound": "no more models are asked, and no node is visited more often, than is proven",
    "rule": "the temporal rules hold",
    "unjudged": "the fuzzer can tell and judge the run",
}
"""What every run keeps, by the word that a violation of it has."""


@final
@dataclass(frozen=True, slots=True)
class Violation:
    """Something that a run did and must not.

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
