"""The standard agent loop, as a table: its only definition.

`Agent` runs exactly this table, `graphloop draw agent` draws it, and the README shows it. To build
a loop of your own, take the same nodes and write another table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .graph import END, Edges
from .nodes import Append, Compact, Execute, Extend, Gate, ModelCall, PrepareStep, StopCheck, Verify
from .outcomes import (
    Aborted,
    Accepted,
    Answered,
    AnsweredCalls,
    ApprovalNeeded,
    Blocked,
    Calls,
    Cannot,
    Compacted,
    ContextFull,
    Done,
    Empty,
    Failed,
    Final,
    FollowUp,
    GiveUp,
    Go,
    Overflow,
    Passed,
    Paused,
    Ready,
    Refused,
    Rejected,
    Resend,
    Retry,
    Settled,
    Stop,
    Truncated,
)

if TYPE_CHECKING:
    # Imported for types only: a loop without screens loads no code of them.
    from .nodes import Screen, Screened

__all__ = ["Standard", "standard_edges"]


class Standard(NamedTuple):
    """The nodes of the standard loop that have parameters.

    The loop has no `screen`, which judges what the user says, unless one is given. A `Screened`
    model node calls the model while the screens judge.
    """

    prepare: PrepareStep = PrepareStep()
    compact: Compact = Compact()
    model: ModelCall | Screened[None] = ModelCall()
    gate: Gate = Gate()
    execute: Execute = Execute()
    verify: Verify = Verify()
    stop: StopCheck = StopCheck()
    screen: Screen | None = None

    @property
    def start(self) -> PrepareStep | Screen:
        """The first node of a run; each later turn begins there too."""
        return self.prepare if self.screen is None else self.screen


def standard_edges(nodes: Standard) -> Edges[None]:
    """Return the table of the standard loop with these nodes in it."""
    prepare, compact, model, gate, execute, verify, stop, screen = nodes
    extend, append, start = Extend(), Append(), nodes.start
    screen_row: Edges[None] = {}
    if screen is not None:
        screen_row = {screen: {Passed: prepare, Blocked: append, Failed: END, Aborted: END}}
    # `Failed` leads to END, as no call waits: its turn is empty (prepare, compact, screen, stop),
    # or `append` has closed it (verify), or no reply came (model).
    # `Aborted` leads to `append` where the turn may hold a reply, or messages that a caller added
    # in mid-turn (notes): `append` gives a result to each call without one, and keeps all of it.
    return {
        **screen_row,
        # A conversation may begin with calls that have no result yet: they go to the gate.
        prepare: {Ready: model, Overflow: compact, Calls: gate, Failed: END, Aborted: END},
        compact: {Compacted: start, Cannot: append, Failed: END, Aborted: append},
        model: {
            Calls: gate,
            Answered: append,
            Paused: append,
            Truncated: extend,
            Empty: extend,
            ContextFull: compact,
            Refused: append,
            **({Blocked: append} if Blocked in model.outcomes else {}),
            Failed: END,
            Aborted: append,
        },
        extend: {Retry: model, GiveUp: append},
        gate: {Settled: execute, Aborted: append},
        execute: {Done: append, ApprovalNeeded: gate, Aborted: append},
        append: {AnsweredCalls: stop, Resend: stop, Final: verify, Refused: END, Aborted: END},
        verify: {Accepted: END, FollowUp: stop, Rejected: append, Failed: END, Aborted: END},
        stop: {Go: start, Stop: END, Failed: END, Aborted: END},
    }
