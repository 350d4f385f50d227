"""Tool calls of the OpenAI chat wire, from fragments as servers really send them."""

from __future__ import annotations

import pytest

from graphloop.providers.base import ToolCallDelta
from graphloop.values import ToolCall
from tests.openai_talk import DONE, calls, chunk, fragment, heard_from

# Each turn's events, each event's fragments, and the calls they make: id, name, arguments.
TURNS: dict[str, tuple[list[list[dict[str, object]]], list[tuple[str, str, str]]]] = {
    "Mistral sends whole calls without index, others only go on with the last": (
        [
            [fragment(None, "a", "f", "{"), fragment(None, "b", "g", "[")],
            [fragment(None, "a", arguments="}")],
            [fragment(None, arguments="]")],
        ],
        [("a", "f", "{}"), ("b", "g", "[]")],
    ),
    "with neither index nor id a second name is a second call": (
        [
            [fragment(name="f", arguments="{}")],
            [fragment(name="f", arguments='{"a"'), fragment(arguments=":1}")],
        ],
        [("", "f", "{}"), ("", "f", '{"a":1}')],
    ),
    "Gemini sends every parallel call at index 0, under another id": (
        [
            [fragment(0, "a", "f", '{"x":')],
            [fragment(0, "a", arguments="1")],
            [fragment(0, "b", "g", "{")],
            [fragment(0, arguments="}")],
            [fragment(0, "a", arguments="}")],
        ],
        [("a", "f", '{"x":1}'), ("b", "g", "{}")],
    ),
    "a name repeated behind a whole call without arguments begins none": (
        [
            [fragment(0, "a", "f", '{"x":')],
            [fragment(0, "a", "f", "{}}")],
            [fragment(0, "a", "f", "")],
            [fragment(0, "a", "f")],
        ],
        [("a", "f", '{"x":{}}')],
    ),
    "an id comes late, or never": (
        [
            [fragment(0, None, "f", "{")],
            [fragment(0, "late", arguments="}")],
            [fragment(1, "", "g", "{}")],
        ],
        [("late", "f", "{}"), ("", "g", "{}")],
    ),
    "half a character is joined, or replaced": (
        [
            [fragment(0, "a", "f", '{"x":"\ud83d')],
            [fragment(0, arguments='\udc69"}')],
            [fragment(1, "b\ud83d", "g", "\ud83d")],
        ],
        [("a", "f", '{"x":"\U0001f469"}'), ("b\ufffd", "g", "\ufffd")],
    ),
    **{
        f"a name behind a whole call begins another (index {index}, id {call_id!r})": (
            [
                [fragment(index, call_id, "a", '{"x":1}')],
                [fragment(index, call_id, "b", "")],
                [fragment(index, call_id, arguments='{"y":')],
                [fragment(index, call_id, arguments="2}")],
                [fragment(index, call_id, "b", ' {"y":3}')],
            ],
            [
                (call_id or "", "a", '{"x":1}'),
                (call_id or "", "b", '{"y":2}'),
                (call_id or "", "b", ' {"y":3}'),
            ],
        )
        for index in (0, None)
        for call_id in ("c0", "", None)
    },
}


@pytest.mark.parametrize(("events", "expected"), TURNS.values(), ids=list(TURNS))
def test_fragments_are_put_together_to_the_calls_that_were_meant(
    events: list[list[dict[str, object]]], expected: list[tuple[str, str, str]]
) -> None:
    """Glued together, two calls would be lost; taken apart, one would run twice."""
    deltas, found = heard_from(*[calls(*fragments) for fragments in events], DONE)

    made = [(call.id, call.name, call.arguments) for call in found.message.calls]
    assert made == expected
    for index, (_, _, arguments) in enumerate(expected):
        own = [one for one in deltas if isinstance(one, ToolCallDelta) and one.index == index]
        assert "".join(delta.arguments_delta for delta in own) == arguments


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


def test_a_call_is_shown_once_its_name_is_known() -> None:
    """The first piece a listener sees says what is called."""
    deltas, _ = heard_from(
        calls(fragment(0, "a", None, "{")), calls(fragment(0, None, "f", "}")), DONE
    )

    assert [ToolCallDelta(0, "a", "f", "{}")] == deltas
