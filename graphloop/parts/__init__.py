"""Stream parts: the values that a caller receives during a run.

Owns the parts, and the conversion of a run's steps into parts. It performs and stores nothing.
Start with `kinds.py`, which defines the parts; `parts.py` makes them, and `objects.py` adds partial
answers.
"""

from .kinds import (
    ErrorPart,
    Finish,
    ObjectDelta,
    Part,
    RunStart,
    StepRetry,
    StepStart,
    SubAgent,
    ToolCallPart,
    ToolResultPart,
    ToolState,
    Warned,
)
from .objects import ObjectView, RunView, texts_of
from .parts import PartView

__all__ = [
    "ErrorPart",
    "Finish",
    "ObjectDelta",
    "ObjectView",
    "Part",
    "PartView",
    "RunStart",
    "RunView",
    "StepRetry",
    "StepStart",
    "SubAgent",
    "ToolCallPart",
    "ToolResultPart",
    "ToolState",
    "Warned",
    "texts_of",
]
