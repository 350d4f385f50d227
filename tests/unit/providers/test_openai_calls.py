"""Tool calls of the OpenAI chat wire, from fragments as servers really send them."""

from __future__ import annotations

import pytest

from graphloop.providers.base import (
    ServerEvent,
    ToolCallDelta,
)
from graphloop.values import (
    ToolCall,
)
from tests.openai_talk import DONE, calls, chunk, fragment, heard_from, reply


def made(*events: ServerEvent) -> list[tuple[str, str, str]]:
    found = reply(*events, DONE).message.calls
    return [(call.id, call.name, call.arguments) for call in found]


def test_fragments_are_put_together_and_shown_as_they_come() -> None:
    """Id and name come first and once, and are shown so."""
    deltas, found = heard_from(
        calls(fragment(0, "a", "f", "")),
        calls(fragment(0, arguments='{"x"')),
        calls(fragment(0, arguments=":1}"), fragment(1, "b", "g", '{"y":2}')),
        chunk({}, "tool_calls"),
        DONE,
    )

    assert deltas == [
        ToolCallDelta(0, "a", "f", ""),
        ToolCallDelta(0, "", "", '{"x"'),
        ToolCallDelta(0, "", "", ":1}"),
        ToolCallDelta(1, "b", "g", '{"y":2}'),
    ]
    assert found.message.parts == (ToolCall("a", "f", '{"x":1}'), ToolCall("b", "g", '{"y":2}'))


def test_a_missing_index_is_made_up_for_by_the_id_or_the_order() -> None:
    """Mistral sends whole calls without index; others only continue the last."""
    found = made(
        calls(fragment(None, "a", "f", "{"), fragment(None, "b", "g", "[")),
        calls(fragment(None, "a", arguments="}")),
        calls(fragment(None, arguments="]")),
    )

    assert found == [("a", "f", "{}"), ("b", "g", "[]")]


def test_whole_calls_with_neither_index_nor_id_are_told_apart_by_their_names() -> None:
    """A second name can only mean a second call."""
    found = made(
        calls(fragment(name="f", arguments="{}")),
        calls(fragment(name="f", arguments='{"a"'), fragment(arguments=":1}")),
    )

    assert found == [("", "f", "{}"), ("", "f", '{"a":1}')]


def test_another_id_at_a_known_index_begins_another_call() -> None:
    """Gemini's compatible endpoint sends every parallel call at index 0."""
    found = made(
        calls(fragment(0, "a", "f", '{"x":')),
        calls(fragment(0, "a", arguments="1")),
        calls(fragment(0, "b", "g", "{")),
        calls(fragment(0, arguments="}")),
        calls(fragment(0, "a", arguments="}")),
    )

    assert found == [("a", "f", '{"x":1}'), ("b", "g", "{}")]


@pytest.mark.parametrize("index", [0, None])
@pytest.mark.parametrize("call_id", ["c0", "", None])
def test_a_name_after_a_whole_call_begins_another_at_the_same_place(
    index: int | None, call_id: str | None
) -> None:
    """Servers repeat index and id for parallel calls; glued together, both would be lost."""
    given = call_id or ""

    found = made(
        calls(fragment(index, call_id, "a", '{"x":1}')),
        calls(fragment(index, call_id, "b", "")),
        calls(fragment(index, call_id, arguments='{"y":')),
        calls(fragment(index, call_id, arguments="2}")),
        calls(fragment(index, call_id, "b", ' {"y":3}')),
    )

    assert found == [(given, "a", '{"x":1}'), (given, "b", '{"y":2}'), (given, "b", ' {"y":3}')]


def test_a_name_repeated_after_a_whole_call_without_arguments_begins_none() -> None:
    """Servers that repeat it in every fragment end with an empty one; nothing may run twice."""
    found = made(
        calls(fragment(0, "a", "f", '{"x":')),
        calls(fragment(0, "a", "f", "{}}")),
        calls(fragment(0, "a", "f", "")),
        calls(fragment(0, "a", "f")),
    )

    assert found == [("a", "f", '{"x":{}}')]


def test_an_id_may_come_late_or_never() -> None:
    """It is the provider's, for the wire; no key of ours."""
    found = made(
        calls(fragment(0, None, "f", "{")),
        calls(fragment(0, "late", arguments="}")),
        calls(fragment(1, "", "g", "{}")),
    )

    assert found == [("late", "f", "{}"), ("", "g", "{}")]


def test_a_call_is_shown_once_its_name_is_known() -> None:
    """The first piece a listener sees says what is called."""
    deltas, _ = heard_from(
        calls(fragment(0, "a", None, "{")), calls(fragment(0, None, "f", "}")), DONE
    )

    assert [ToolCallDelta(0, "a", "f", "{}")] == deltas


def test_half_a_character_in_a_call_is_joined_too() -> None:
    """Arguments are text as well."""
    deltas, found = heard_from(
        calls(fragment(0, "a", "f", '{"x":"\ud83d')),
        calls(fragment(0, arguments='\udc69"}')),
        calls(fragment(1, "b\ud83d", "g", "\ud83d")),
        DONE,
    )

    assert [call.arguments for call in found.message.calls] == ['{"x":"\U0001f469"}', "\ufffd"]
    assert ToolCallDelta(1, "", "", "\ufffd") == deltas[-1]
    assert found.message.calls[1].id == "b\ufffd"
