"""The outcomes by which nodes leave: types, so that a table can be checked before it runs.

Each node declares the closed union of its outcomes. Your own outcomes are frozen dataclasses that
derive from `Outcome`; a diagram shows the class name in snake case.
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
    "ApprovalNeeded",
    "Blocked",
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
    "Outcome",
    "Overflow",
    "Passed",
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
    """The base class of all outcomes; derive a frozen dataclass for each outcome of your own."""


class Ready(Outcome):
    """The turn is prepared, so the model can be asked."""


class Passed(Outcome):
    """The screens let through what the user said."""


class Blocked(Outcome):
    """A screen blocked what the user said; its refusal is the reply."""


class Overflow(Outcome):
    """The conversation is about to outgrow the model's context window."""


class Compacted(Outcome):
    """The conversation is shorter now, and the run can go on with it."""


class Cannot(Outcome):
    """The compaction failed: the conversation cannot be made short enough."""


class Calls(Outcome):
    """The model's complete reply has at least one tool call."""


class Answered(Outcome):
    """The model replied with text, without tool calls."""


class Paused(Outcome):
    """The server paused its own tools; it continues once the turn is sent back unchanged."""


class Truncated(Outcome):
    """The reply reached its token limit inside a tool call, so this call must not run."""


class Empty(Outcome):
    """The model's reply is empty."""


class ContextFull(Outcome):
    """The conversation has reached the model's context window."""


class Refused(Outcome):
    """The model or a content filter refused to answer; calls in the reply never run.

    A model node leaves by it, and then `Append`, which has put the reply into the conversation.
    """


class Failed(Outcome):
    """An effect failed after its last retry; the run ends in an error."""


class Aborted(Outcome):
    """A caller or a time limit stopped the run."""


class Retry(Outcome):
    """The model is asked again; after a cut reply, with a higher token limit."""


class GiveUp(Outcome):
    """Another attempt did not help; the run keeps the reply that it has."""


class Settled(Outcome):
    """Every call of the turn has a verdict of the gate."""


class Done(Outcome):
    """Every call of the turn has a result."""


class ApprovalNeeded(Outcome):
    """The calls that need no approval have run; the other calls of the turn wait for a person."""


class AnsweredCalls(Outcome):
    """The calls and their results are in the history."""


class Resend(Outcome):
    """The history is complete without new results, and is sent to the model again."""


class Final(Outcome):
    """The final answer is in the history."""


class Accepted(Outcome):
    """The check accepted the answer."""


class FollowUp(Outcome):
    """The check accepted the answer, and the caller has queued another message."""


class Rejected(Outcome):
    """The check rejected the answer; its feedback is noted for the next turn."""


class Go(Outcome):
    """No limit or stop condition ends the run, so another turn begins."""


class Stop(Outcome):
    """A limit was reached, or a stop condition was true."""


class Unrouted(Outcome):
    """The router chose no route, or a route that does not exist."""


class Unplanned(Outcome):
    """The latest answer is not a list of items to work on."""


def outcome_name(outcome: type[Outcome]) -> str:
    """Return the outcome's name in tables and diagrams: its class name in snake case."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", outcome.__name__).lower()


LIBRARY_OUTCOMES: Mapping[str, type[Outcome]] = {
    outcome_name(one): one for one in Outcome.__subclasses__()
}
"""The outcomes of this module by name; proofs rely on the meaning of each."""
