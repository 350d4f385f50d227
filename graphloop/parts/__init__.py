"""Stream parts: what a caller sees of a run while it goes on.

Owns the parts, and how they are made of steps. It drives nothing and keeps nothing.
Start with `kinds.py`; `parts.py` makes them.
"""

from .kinds import (
    ErrorPart,
    Finish,
    ObjectDelta,
    RunStart,
    StepRetry,
    StepStart,
    ToolCallPart,
    ToolResultPart,
    ToolState,
    Warned,
)
from .objects import ObjectView
from .parts import Part, PartView, SubAgent

__all__ = [
    "ErrorPart",
    "Finish",
    "ObjectDelta",
    "ObjectView",
    "Part",
    "PartView",
    "RunStart",
    "StepRetry",
    "StepStart",
    "SubAgent",
    "ToolCallPart",
    "ToolResultPart",
    "ToolState",
    "Warned",
]
