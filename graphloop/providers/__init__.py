"""Providers: wires to models, over one transport.

Owns requests, streams, retries, time limits and prices. A wire is an encoder and a decoder.
Refuses a stream that was cut: it is an error, never an answer.
Start with `base.py`; `registry.py` lists the wires.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door

if TYPE_CHECKING:
    from .base import (
        Delta,
        Live,
        ModelSession,
        Provider,
        ReasoningDelta,
        Restarted,
        StreamItem,
        TextDelta,
        ToolCallDelta,
        UsageSoFar,
    )
    from .openai_chat.messages import REASONING_EXTRA, WIRE
    from .output_schema import unenforced
    from .prices import price, price_with
    from .registry import resolve, wire_of
    from .retries import Retries
    from .script import ScriptedModel
    from .timeouts import Timeouts
    from .wire_json import is_list, is_object, json_text

__all__ = [
    "REASONING_EXTRA",
    "WIRE",
    "Delta",
    "Live",
    "ModelSession",
    "Provider",
    "ReasoningDelta",
    "Restarted",
    "Retries",
    "ScriptedModel",
    "StreamItem",
    "TextDelta",
    "Timeouts",
    "ToolCallDelta",
    "UsageSoFar",
    "is_list",
    "is_object",
    "json_text",
    "price",
    "price_with",
    "resolve",
    "unenforced",
    "wire_of",
]

__getattr__ = front_door(
    __name__,
    {
        ".base": (
            "Delta",
            "Live",
            "ModelSession",
            "Provider",
            "ReasoningDelta",
            "Restarted",
            "StreamItem",
            "TextDelta",
            "ToolCallDelta",
            "UsageSoFar",
        ),
        ".openai_chat.messages": (
            "REASONING_EXTRA",
            "WIRE",
        ),
        ".output_schema": ("unenforced",),
        ".prices": (
            "price",
            "price_with",
        ),
        ".registry": (
            "resolve",
            "wire_of",
        ),
        ".retries": ("Retries",),
        ".script": ("ScriptedModel",),
        ".timeouts": ("Timeouts",),
        ".wire_json": (
            "is_list",
            "is_object",
            "json_text",
        ),
    },
)
