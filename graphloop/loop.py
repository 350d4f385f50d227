"""The standard agentic loop, as a table: the one place it is written down.

`Agent` runs exactly this table, `graphloop draw agent` draws it, and the README shows it. To build
a loop of your own, take the same nodes and write another table.
"""

from __future__ import annotations

from .graph import END, Edges
from .nodes.append import Append
from .nodes.execute import Execute
from .nodes.extend import Extend
from .nodes.gate import Gate
from .nodes.model_call import ModelCall
from .nodes.prepare_step import PrepareStep
from .nodes.stop_check import StopCheck
from .outcomes import (
    Aborted,
    Answered,
    AnsweredCalls,
    Calls,
    ContextFull,
    Done,
    Empty,
    Failed,
    Final,
    GiveUp,
    Go,
    Paused,
    Ready,
    Refused,
    Resend,
    Retry,
    Settled,
    Stop,
    Truncated,
)

__all__ = ["standard_edges"]


def standard_edges(prepare: PrepareStep, execute: Execute, stop: StopCheck) -> Edges[None]:
    """Return the table of the standard loop around these three nodes."""
    model, extend, gate, append = ModelCall(), Extend(), Gate(), Append()
    return {
        prepare: {Ready: model, Failed: END, Aborted: END},
        model: {
            Calls: gate,
            Answered: append,
            Paused: append,
            Truncated: extend,
            Empty: extend,
            ContextFull: append,
            Refused: append,
            Failed: END,
            Aborted: END,
        },
        extend: {Retry: model, GiveUp: append},
        gate: {Settled: execute, Aborted: append},
        execute: {Done: append, Aborted: append},
        append: {AnsweredCalls: stop, Resend: stop, Final: END, Refused: END, Aborted: END},
        stop: {Go: prepare, Stop: END, Failed: END, Aborted: END},
    }
