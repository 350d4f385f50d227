"""Screens: judge what the user of an agent says, before a model reads it.

Owns the functions that judge; the node that asks them is `graphloop.nodes.Screen`.
Refuses a function without a verdict, so that a forgotten `return` lets nothing pass.
Start with `functions.py`.
"""

from .functions import ScreenCallback, ScreenFunction, ScreenInfo, ScreenVerdict, screen_callback

__all__ = ["ScreenCallback", "ScreenFunction", "ScreenInfo", "ScreenVerdict", "screen_callback"]
