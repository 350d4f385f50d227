"""Screens: judge what the user of an agent says, before a model reads it.

Owns the functions that judge; the node that asks them is `graphloop.nodes.Screen`.
Refuses a function without a verdict, so that a forgotten `return` lets nothing pass.
Start with `functions.py`.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door

if TYPE_CHECKING:
    from .functions import (
        ScreenCallback,
        ScreenFunction,
        ScreenInfo,
        ScreenVerdict,
        screen_callback,
    )

__all__ = ["ScreenCallback", "ScreenFunction", "ScreenInfo", "ScreenVerdict", "screen_callback"]

# Imported at first use: an agent without screens loads no code of them.
__getattr__ = front_door(
    __name__,
    {
        ".functions": (
            "ScreenCallback",
            "ScreenFunction",
            "ScreenInfo",
            "ScreenVerdict",
            "screen_callback",
        ),
    },
)
