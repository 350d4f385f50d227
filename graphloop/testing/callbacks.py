"""Callbacks: random answers that replace calls of the user's functions during fuzzing.

A replaced function may return any outcome that its node declares. So a topology that is safe only
because a function behaves well fails here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from json import dumps
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from ..effects import AskAgent, AskModel, AskPerson, Request, Tell
from ..events import (
    AnswerChecked,
    BranchesJoined,
    CallbackAnswer,
    Changes,
    ItemsListed,
    NodeReturned,
    RequestYielded,
    StopRequested,
)
from ..node_protocol import Node, unwrapped
from ..nodes import Function, MapOver, Parallel, RequestLimits
from ..outcomes import Aborted, Failed, Outcome
from ..values import ToolChoice, UserMessage
from .choices import Choices

__all__ = ["answered_by_a_callback"]

OWN: Final = frozenset({Failed, Aborted})
JUNK: Final[tuple[CallbackAnswer, ...]] = (
    *(
        NodeReturned("Nowhere"),
        Changes(),
        StopRequested(("junk",)),
        AnswerChecked(accepted=True),
        BranchesJoined("junk"),
    ),
    NodeReturned("Failed", None, '{"no": "such field"}'),
)
CHANGES: Final = (
    *(Changes(active_tools=()), Changes(tool_choice=ToolChoice("none"))),
    *(Changes(tool_choice=ToolChoice("required")), Changes(model="another")),
)
SAMPLES: Final[Mapping[object, tuple[object, ...]]] = {
    str: ("a", ""),
    int: (0, 1, -1),
    float: (0.0, 1.5),
    bool: (False, True),
    type(None): (None,),
    list: ([],),
    tuple: ([],),
    dict: ({},),
}
"""Sample JSON values for an outcome's fields, by field type; any other type gets a text."""


def answered_by_a_callback(
    node: Node[Any, Outcome], callback: str, choices: Choices
) -> CallbackAnswer:
    """Return a random answer in place of the function that `node` invokes as `callback`.

    Raises:
        Exception: the choices make the function fail.
    """
    fate = choices.draw(16)
    if fate == 15:
        return choices.pick(JUNK)
    if fate == 14:
        raise ValueError(f"{callback} failed")
    functions = [inner for inner in unwrapped([node]) if isinstance(inner, Function)]
    own = next((function for function in functions if function.callback == callback), None)
    match "pure" if own is not None else node.kind:
        case "prepare":
            return choices.pick(CHANGES) if choices.chance(4) else Changes()
        case "stop":
            return StopRequested((callback,) if choices.chance(4) else ())
        case "check" | "model":  # A `Screened` judges in the place of its model.
            return AnswerChecked(choices.chance(2), "Do better.", retry=not choices.chance(4))
        case "graph":
            return _of_a_fan_out(node, callback, choices)
        case _:
            asks = None if own is None else own.asks
            asks_on = asks is not None and not choices.chance(3)
            return (
                RequestYielded(_draw_request(asks, choices))
                if asks and asks_on
                else _draw_outcome(node, choices)
            )


def _of_a_fan_out(node: Node[Any, Outcome], callback: str, choices: Choices) -> CallbackAnswer:
    """Return the items of a map, the prompts of a parallel, or the answers joined."""
    inner = [one for one in unwrapped([node]) if isinstance(one, MapOver | Parallel)]
    for one in inner:
        if isinstance(one, MapOver) and one.into and callback == one.lister:
            return ItemsListed(
                tuple([f"item {at}" for at in range(choices.draw(one.max_items + 2))])
            )
        if isinstance(one, Parallel) and callback == one.prompts:
            return ItemsListed(tuple([f"prompt {at}" for at in range(len(one.branches))]))
    if callback.startswith("field:into"):
        return NodeReturned("Answered")
    return BranchesJoined(choices.pick(("All.", "")))


def _draw_request(asks: RequestLimits, choices: Choices) -> Request:
    """Return a random request of the kinds in `asks`; the kernel refuses a forbidden request."""
    kinds = sorted(asks.kinds, key=lambda kind: kind.__name__)
    whole = choices.chance(2)
    match choices.pick(kinds).__name__:
        case "AskModel":
            return AskModel("Well?", conversation=whole)
        case "AskPerson":
            return AskPerson("Well?")
        case "AskAgent":
            return AskAgent(choices.pick([name for name, _ in asks.agents]), "Well?", whole)
        case _:
            return Tell(UserMessage("Well."))


def _draw_outcome(node: Node[Any, Outcome], choices: Choices) -> NodeReturned:
    own = [*(node.outcomes - OWN)] or [*node.outcomes]
    kind = choices.pick(sorted(own, key=lambda outcome: outcome.__name__))
    values: dict[str, object] = {}
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        values = {
            field.name: _draw_value(hints.get(field.name, str), choices) for field in fields(kind)
        }
    return NodeReturned(kind.__name__, None, dumps(values) if values else "")


def _draw_value(hint: object, choices: Choices) -> object:
    origin: object = get_origin(hint)
    if origin is Literal:
        return choices.pick(get_args(hint))
    if origin is UnionType or origin is Union:
        return _draw_value(choices.pick(get_args(hint)), choices)
    return choices.pick(SAMPLES.get(origin or hint, ("a",)))
