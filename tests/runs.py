"""A run with some of its facts changed, whichever of its parts holds them."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec.structs import replace

from graphloop.run import Counters, Inbox, RuleState, Run, RunRecord
from graphloop.turn import Turn

__all__ = ["changed"]

S = TypeVar("S")

PARTS = {
    "inbox": Inbox,
    "counters": Counters,
    "watch": RuleState,
    "record": RunRecord,
    "turn": Turn,
}


def changed(run: Run[S], **facts: Any) -> Run[S]:
    """Return the run with these facts: fields of its own, or of one of its parts."""
    for name, fact in facts.items():
        homes = [part for part, kind in PARTS.items() if name in kind.__struct_fields__]
        if name in Run.__struct_fields__:
            run = replace(run, **{name: fact})
        else:
            (part,) = homes
            run = replace(run, **{part: replace(getattr(run, part), **{name: fact})})
    return run
