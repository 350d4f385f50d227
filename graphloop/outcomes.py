"""The outcomes that nodes leave by: types, so that a table can be checked before it runs.

An outcome belongs to the closed union of the node that leaves by it. Your own outcomes are frozen
dataclasses that derive from `Outcome`; the name on a diagram is the class name in snake case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = [
    "LIBRARY_OUTCOMES",
    "Aborted",
    "Accepted",
    "Answered",
    "AnsweredCalls",
    "Calls",
    "Cannot",
    "Compacted",
    "ContextFull",
    "Done",
    "Empty",
    "Failed",
    "Final",
    "FollowUp",
    "GiveUp",
    "Go",
    "Held",
    "Outcome",
    "Overflow",
    "Paused",
    "Ready",
    "Refused",
    "Rejected",
    "Resend",
    "Retry",
    "Settled",
    "Stop",
    "Truncated",
    "Unplanned",
    "Unrouted",
    "outcome_name",
]


@dataclass(frozen=True, init=False)
class Outcome:
    """The way a node is left; derive one frozen dataclass for each way."""


class Ready(Outcome):
    """The step is prepared: ask the model."""


class Overflow(Outcome):
    """The conversation is about to outgrow the model's context window."""


class Compacted(Outcome):
    """The conversation is shorter than it was: go on with it."""


class Cannot(Outcome):
    """The conversation cannot be made short enough."""


class Calls(Outcome):
    """The model asked for at least one tool, completely."""


class Answered(Outcome):
    """The model answered in text alone."""


class Paused(Outcome):
    """The server paused its own tools and wants the turn back unchanged."""


class Truncated(Outcome):
    """The reply was cut at its token limit inside a tool call, which must not run."""


class Empty(Outcome):
    """The model said nothing at all."""


class ContextFull(Outcome):
    """The conversation has reached the model's context window."""


class Refused(Outcome):
    """The model, or a filter before it, refused; its tools never run."""


class Failed(Outcome):
    """An effect failed for good; the run ends in an error."""


class Aborted(Outcome):
    """The run was stopped."""


class Retry(Outcome):
    """Ask once more, with more room."""


class GiveUp(Outcome):
    """Asking once more has not helped; keep what there is."""


class Settled(Outcome):
    """Every call of the batch carries a verdict."""


class Done(Outcome):
    """Every call of the batch carries a result."""


class Held(Outcome):
    """The calls that need no human have run; the others of the batch wait for one."""


class AnsweredCalls(Outcome):
    """The calls and their results are in the history."""


class Resend(Outcome):
    """The history is complete as it is and goes to the model again."""


class Final(Outcome):
    """The answer is in the history."""


class Accepted(Outcome):
    """The answer was judged good enough."""


class FollowUp(Outcome):
    """The answer was judged good enough, and the caller has more to say."""


class Rejected(Outcome):
    """The answer was judged wanting; the feedback is noted for the next turn."""


class Go(Outcome):
    """Nothing stops the run: another turn."""


class Stop(Outcome):
    """A bound was reached or a stop condition held."""


class Unrouted(Outcome):
    """No route was chosen, or none that there is."""


class Unplanned(Outcome):
    """The latest answer is no list of items that could be worked on."""


def outcome_name(outcome: type[Outcome]) -> str:
    """Return the outcome's name in tables and diagrams: its class name in snake case."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", outcome.__name__).lower()


LIBRARY_OUTCOMES: Mapping[str, type[Outcome]] = {
    outcome_name(one): one for one in Outcome.__subclasses__()
}
"""The outcomes above by name: each says what its node has done, and proofs rely on that."""
