"""Tool choice: what cannot work, or would have no effect, is refused before anything is sent."""

from __future__ import annotations

import pytest

from graphloop.errors import ConfigError
from graphloop.front.hooks import ChoiceInput
from graphloop.front.tool_choice import choice_of, known_tools
from graphloop.values import ToolChoice
from tests.strategies import spec

TOOLS = [spec("read"), spec("write")]


def test_names_of_tools_must_exist() -> None:
    """And be a list, for a string is a list of letters."""
    assert ("write",) == known_tools("active_tools", ["write"], TOOLS)
    with pytest.raises(ConfigError, match=r"'raed', which is not among the tools .* Did you mean"):
        known_tools("active_tools", ["raed"], TOOLS)
    with pytest.raises(ConfigError, match=r"\(none\)"):
        known_tools("active_tools", ["read"], [])
    with pytest.raises(ConfigError, match="`active_tools`: expected a list of strings"):
        known_tools("active_tools", "read", TOOLS)


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        ("auto", ToolChoice()),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        (ToolChoice("tool", "read"), ToolChoice("tool", "read")),
        (
            ToolChoice("required", scope="first_step"),
            ToolChoice("required", scope="first_step"),
        ),
    ],
)
def test_a_choice_becomes_a_value(given: ChoiceInput, choice: ToolChoice) -> None:
    """Words for the common ones."""
    assert choice == choice_of(given, TOOLS)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("requird", "Did you mean 'required'"),
        (ToolChoice("tool", "gone"), "names 'gone'"),
        (ToolChoice("required"), "there are no tools"),
        (ToolChoice("auto", "read"), "names 'read', which has no effect in mode 'auto'"),
    ],
)
def test_a_choice_that_cannot_be_made_is_refused(given: ChoiceInput, found: str) -> None:
    """A forced tool that is not there would make every request fail."""
    tools = [] if given == ToolChoice("required") else TOOLS

    with pytest.raises(ConfigError, match=found):
        choice_of(given, tools)
