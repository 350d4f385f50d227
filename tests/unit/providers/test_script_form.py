"""What may stand in a script, and what is said about everything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop.errors import ScriptError
from graphloop.providers.base import ReasoningDelta, TextDelta, ToolCallDelta
from graphloop.providers.script_form import load_script, ready_reply
from graphloop.values import (
    AssistantMessage,
    FinishReason,
    ReasoningPart,
    Reply,
    TextPart,
    ToolCall,
    Usage,
)


def test_every_field_of_a_reply_takes_effect() -> None:
    """Parts stand in the order in which models speak: thoughts, text, calls."""
    entry = {
        "text": "Let me see.",
        "reasoning": "Paris?",
        "calls": [
            {"name": "look", "arguments": {"city": "Zürich"}},
            {"name": "look", "arguments": '{"city": ', "id": "mine"},
            {"name": "now"},
        ],
        "finish_reason": "length",
        "usage": {"input_tokens": 1, "cache_read_tokens": 2},
    }

    ready = ready_reply(entry, "here", "m1")

    calls = (
        ToolCall("call_0", "look", '{"city": "Zürich"}'),
        ToolCall("mine", "look", '{"city": '),
        ToolCall("call_2", "now", "{}"),
    )
    message = AssistantMessage((ReasoningPart("Paris?"), TextPart("Let me see."), *calls), "script")
    usage = Usage(input_tokens=1, cache_read_tokens=2)
    assert ready.end == Reply(message, FinishReason.LENGTH, usage, "length", "m1")
    assert ready.deltas == (
        ReasoningDelta("Paris?"),
        *(TextDelta(word) for word in ("Let ", "me ", "see.")),
        *(ToolCallDelta(at, call.id, call.name, call.arguments) for at, call in enumerate(calls)),
    )


@pytest.mark.parametrize(
    ("entry", "reason", "output_tokens"),
    [
        ({"calls": [{"name": "look"}]}, FinishReason.TOOL_CALLS, 5),
        ({"text": "two words"}, FinishReason.STOP, 2),
        ({}, FinishReason.STOP, 0),
    ],
)
def test_defaults_follow_from_what_is_said(
    entry: dict[str, object], reason: FinishReason, output_tokens: int
) -> None:
    """The same script always bills the same tokens."""
    end = ready_reply(entry, "here", "m1").end

    assert isinstance(end, Reply)
    assert (end.finish_reason, end.usage.output_tokens) == (reason, output_tokens)


def test_deltas_are_the_pieces_of_the_text() -> None:
    """To cut a text where a real server would, in the middle of a word."""
    ready = ready_reply({"deltas": ["a", "b c"], "text": "ab c"}, "here", "m1")

    assert ready.deltas == (TextDelta("a"), TextDelta("b c"))
    assert isinstance(ready.end, Reply)
    assert ready.end.message.text == "ab c"


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (True, r"here: expected a text, a mapping of text, .* found True. Fix: quote it"),
        ({"txt": "x"}, r"here: Object contains unknown field `txt`. Fix: .* text, reasoning"),
        ({1: "x"}, r"here: "),
        ({"text": 5}, r"here: Expected `str`, got `int` - at `\$.text`"),
        ({"calls": {}}, r"here: Expected `array`, got `object` - at `\$.calls`"),
        ({"calls": [{"nam": "x"}]}, r"unknown field `nam` - at `\$.calls\[0\]`"),
        ({"calls": [{"id": "x"}]}, r"missing required field `name` - at `\$.calls\[0\]`"),
        ({"calls": [{"name": "x", "arguments": 5}]}, r"got `int` - at .*arguments`"),
        ({"calls": [{"name": "x", "arguments": {"a": {1}}}]}, r"expected JSON values, found"),
        ({"finish_reason": "stopped"}, r"Invalid enum value 'stopped' - at `\$.finish_reason`"),
        ({"media": ["a.png"]}, r"here, media\[0\]: `source`: expected a URL, found 'a.png'"),
        ({"media": ["data:image/png,x"]}, r"here, media\[0\]: `source`: expected 'data:<type>"),
        ({"usage": {"tokens": 5}}, r"usage: expected counts of 0 or more of"),
        ({"usage": {"input_tokens": -1}}, r"usage: expected counts of 0 or more"),
        ({"usage": {"input_tokens": True}}, r"Expected `int`, got `bool`"),
        ({"error": "x", "usage": {}}, r"expected neither 'usage' .* beside 'error'"),
        ({"deltas": ["a", 1]}, r"got `int` - at `\$.deltas\[1\]`"),
        ({"deltas": ["a"], "text": "b"}, r"deltas that make up the text 'b', found 'a'"),
    ],
)
def test_a_complaint_says_where_what_and_what_else(entry: object, says: str) -> None:
    """Scripts are written by hand; the message is the manual."""
    with pytest.raises(ScriptError, match=says):
        ready_reply(entry, "here", "m1")


@pytest.mark.parametrize(
    ("name", "content", "script"),
    [
        ("a.yaml", "- one\n- text: two\n", (["one", {"text": "two"}], "scripted")),
        ("a.json", '{"model": "m", "replies": ["one"]}', (["one"], "m")),
        ("a.yml", "replies: ['one']\n", (["one"], "scripted")),
    ],
)
def test_a_file_is_a_list_or_a_mapping_of_replies(
    tmp_path: Path, name: str, content: str, script: tuple[list[object], str]
) -> None:
    """The short form for examples, the long one to name the model."""
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")

    assert load_script(path) == script


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.yaml", b"text: hello", r"a\.yaml: Object .* Fix: write a mapping of replies, model"),
        ("a.yaml", b"model: 5\nreplies: []", r"a\.yaml: Expected `str`, got `int`"),
        ("a.yaml", b"model: m", r"missing required field `replies`"),
        ("a.yaml", b"just text", r"expected a list of replies, .* found str"),
        ("a.yaml", b"- a: [", r"a\.yaml: expected YAML or JSON in UTF-8, found:"),
        ("a.yaml", b"- !!python/name:os.system x", r"expected YAML or JSON"),
        ("a.json", b"[1,", r"a\.json: expected YAML or JSON"),
        ("a.json", b"\xff", r"a\.json: expected YAML or JSON in UTF-8"),
        ("a.yaml", None, r"a\.yaml: expected a script .* cannot be read \(No such file"),
    ],
)
def test_a_file_that_is_no_script_is_named(
    tmp_path: Path, name: str, content: bytes | None, says: str
) -> None:
    """Also one that would run code: the loader is the safe one."""
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(ScriptError, match=says):
        load_script(path)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("deep.yaml", "[" * 3_000 + "]" * 3_000, "RecursionError"),
        ("deep.json", "[" * 200_000, "RecursionError"),
        ("passwd", "root:x:0:0:root", "found str"),
        ("secret.yaml", "a: [b\nsecret: hunter2", "expected ',' or ']'.* on line 2"),
        ("secret.json", '{"secret": hunter2}', "on line 1"),
        ("bytes.yaml", b"secret \xff", "in UTF-8"),
        ("tagged.yaml", "- !!int hunter2", "ValueError"),
        ("keyed.yaml", "? [hunter2]\n: b", "found unhashable key"),
    ],
)
def test_a_file_that_is_no_script_is_not_quoted(
    tmp_path: Path, name: str, content: str | bytes, said: str
) -> None:
    """It may be any file: the path came from elsewhere."""
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())

    with pytest.raises(ScriptError, match=said) as told:
        load_script(path)

    assert "hunter2" not in str(told.value)
    assert "root:x" not in str(told.value)
