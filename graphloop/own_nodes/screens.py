"""Screens: nodes that judge what the user says, made from functions and agents."""

from __future__ import annotations

from typing import Any

from ..agent import Screen, screens_of
from ..node_protocol import Node
from ..nodes import Screen as ScreenNode
from ..nodes import Screened
from ..outcomes import Outcome
from .carrying_node import CarryingNode

__all__ = ["screen", "screened"]


def screen(*screens: Screen, name: str = "screen") -> CarryingNode:
    """Return a node that judges what the user says before a model reads it.

        guard = screen(on_topic, moderator)
        edges = {guard: {Passed: prepare, Blocked: append, ...: END}, …}

    Args:
        screens: functions of the user's text and agents, as for `Agent(screen=…)`.
        name: the node's name.

    Raises:
        ConfigError: a screen is neither a function nor an agent with an `output_type`, two screens
            have one name, or there is none.
    """
    functions, agents = screens_of(screens, {})
    node = ScreenNode(tuple(functions), tuple(agents), name)
    return CarryingNode.of(node, functions, agents)


def screened(model: Node[Any, Outcome], *screens: Screen, name: str = "") -> CarryingNode:
    """Return a node that asks a model while screens judge; its reply waits for their verdict.

        asked = screened(ModelCall(), on_topic)

    Args:
        model: the node that asks the model.
        screens: functions and agents, as for `screen`.
        name: the node's name; by default, the name of `model`.

    Raises:
        ConfigError: as for `screen`; or `model` is no node that asks a model.
    """
    functions, agents = screens_of(screens, {})
    node = Screened[Any](model, tuple(functions), tuple(agents), name)
    return CarryingNode.of(node, functions, agents)
