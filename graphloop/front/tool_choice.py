"""Which tools a model is offered, and must call: names and choices that a run can keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..errors import ConfigError, nearest
from ..values import ToolChoice, ToolSpec
from .hooks import ChoiceInput
from .options import strings

__all__ = ["choice_from_now", "choice_of", "known_tools", "offered"]

MODES: Final = ("auto", "required", "none")


def offered(tools: Sequence[ToolSpec], active: Sequence[str] | None) -> tuple[ToolSpec, ...]:
    """Return the tools that are active; None is all of them."""
    return tuple(one for one in tools if active is None or one.name in active)


def known_tools(option: str, given: Sequence[str], tools: Sequence[ToolSpec]) -> tuple[str, ...]:
    """Return tool names that exist.

    Raises:
        ConfigError: one does not; a list that silently offers less would starve the model.
    """
    known = [tool.name for tool in tools]
    names = strings(option, given)
    for name in names:
        if name not in known:
            raise ConfigError(
                f"`{option}` names {name!r}, which is not among the tools "
                f"({', '.join(known) or 'none'}).{nearest(name, known)}"
            )
    return names


def choice_from_now(choice: ChoiceInput, tools: Sequence[ToolSpec]) -> ToolChoice:
    """Return a tool choice that is made in the middle of a run.

    Raises:
        ConfigError: as of `choice_of`; or it is for the first step only.
    """
    if isinstance(choice, ToolChoice) and choice.scope == "first_step":
        raise ConfigError(
            "`tool_choice` with scope='first_step' has no effect in the middle of a run: leave the "
            "scope out; prepare_step chooses for its own step, set_params for all later ones"
        )
    return choice_of(choice, tools)


def choice_of(choice: ChoiceInput, tools: Sequence[ToolSpec]) -> ToolChoice:
    """Return a tool choice as a value.

    Raises:
        ConfigError: it is none, or names or requires a tool that is not there.
    """
    if isinstance(choice, str):
        choice = ToolChoice(choice)
    if choice.mode not in (*MODES, "tool"):
        raise ConfigError(
            f"`tool_choice`: expected {', '.join(MODES)}, or ToolChoice('tool', name), "
            f"found {choice.mode!r}.{nearest(str(choice.mode), MODES)}"
        )
    if choice.mode == "tool":
        known_tools("tool_choice", [choice.name], tools)
    elif choice.name:
        raise ConfigError(
            f"`tool_choice` names {choice.name!r}, which has no effect in mode {choice.mode!r}: "
            "say ToolChoice('tool', name)"
        )
    if choice.mode == "required" and not tools:
        raise ConfigError("`tool_choice` is 'required', but there are no tools")
    return choice
