"""The conversation of a run: functions that repair, steer, shorten and measure its messages.

Owns pure functions of messages: none performs an effect or asks a model.
Refuses a change that would leave a call without its result.
Start with `repair`; `compaction` makes a long history smaller.
"""

from .answer import (
    answer_at_hand,
    clear_ending,
    ended_answer,
    ended_media,
    latest_answer,
    reject_answer,
    said_after_calls,
)
from .compaction import (
    ORIGIN,
    PRUNED_NOTE,
    Compaction,
    prune,
    summarized,
    summary_request,
    to_summarize,
    without_media,
)
from .repair import Repaired, open_calls, repaired
from .steering import (
    BLOCKED_NOTE,
    add_notes,
    adopt_open_calls,
    apply_steering,
    hand_over,
    mark_screened,
    steered,
    unanswered,
    unscreened,
    with_screens,
    withhold,
)
from .tokens import Calibration, estimate

__all__ = [
    "BLOCKED_NOTE",
    "ORIGIN",
    "PRUNED_NOTE",
    "Calibration",
    "Compaction",
    "Repaired",
    "add_notes",
    "adopt_open_calls",
    "answer_at_hand",
    "apply_steering",
    "clear_ending",
    "ended_answer",
    "ended_media",
    "estimate",
    "hand_over",
    "latest_answer",
    "mark_screened",
    "open_calls",
    "prune",
    "reject_answer",
    "repaired",
    "said_after_calls",
    "steered",
    "summarized",
    "summary_request",
    "to_summarize",
    "unanswered",
    "unscreened",
    "with_screens",
    "withhold",
    "without_media",
]
