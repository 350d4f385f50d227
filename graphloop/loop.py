"""The standard agent loop, as a table: its only definition.

`Agent` runs exactly this table, `graphloop draw agent` draws it, and the README shows it. To build
a loop of your own, take the same nodes and write another table.
"""

from __future__ import annotations

from typing import NamedTuple

from .graph import END, Edges
from .nodes import Append, Compact, Execute, Extend, Gate, ModelCall, PrepareStep, StopCheck, Verify
from .outcomes import (
    Aborted,
    Accepted,
    Answered,
    AnsweredCalls,
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
    Held,
    Overflow,
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

__all__ = ["Standard", "standard_edges"]


class Standard(NamedTuple):
    """The nodes of the standard loop that have parameters."""

    prepare: PrepareStep = PrepareStep()
    compact: Compact = Compact()
    model: ModelCall = ModelCall()
    gate: Gate = Gate()
    execute: Execute = Execute()
    verify: Verify = Verify()
    stop: StopCheck = StopCheck()


def standard_edges(nodes: Standard) -> Edges[None]:
    """Return the table of the standard loop with these nodes in it."""
    prepare, compact, model, gate, execute, verify, stop = nodes
    extend, append = Extend(), Append()
    return {
        # A conversation may begin with calls that have no result yet: they go to the gate.
        prepare: {Ready: model, Overflow: compact, Calls: gate, Failed: END, Aborted: END},
        compact: {Compacted: prepare, Cannot: append, Failed: END, Aborted: append},
        model: {
            Calls: gate,
            Answered: append,
            Paused: append,
            Truncated: extend,
            Empty: extend,
            ContextFull: compact,
            Refused: append,
            Failed: END,
            Aborted: append,
        },
        extend: {Retry: model, GiveUp: append},
        gate: {Settled: execute, Aborted: append},
        execute: {Done: append, Held: gate, Aborted: append},
        append: {AnsweredCalls: stop, Resend: stop, Final: verify, Refused: END, Aborted: END},
        verify: {Accepted: END, FollowUp: stop, Rejected: append, Failed: END, Aborted: END},
        stop: {Go: prepare, Stop: END, Failed: END, Aborted: END},
    }
