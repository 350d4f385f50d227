"""What Gemini's server asks of a conversation, and what it wants back as it sent it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from graphloop.providers.google.wire import GoogleGemini
from graphloop.values import Message, ModelRequest, ToolResult, UserMessage
from tests.google_talk import FORMS, Form, JsonObject, body, call, recorded, stream
from tests.property.wires import WIRES, histories, joined
from tests.transcripts import decoded


@given(histories(WIRES["google"]).map(joined))
def test_all_results_of_a_turn_answer_its_calls_in_order(history: list[Message]) -> None:
    """The server counts calls and results, and refuses roles that do not take turns."""
    sent = body(ModelRequest(history))["contents"]

    roles = [content["role"] for content in sent]
    assert all(before != after for before, after in pairwise(roles))
    assert all(content["parts"] for content in sent)
    seen: list[str] = []
    nothing: JsonObject = {"role": "user", "parts": []}
    for content, following in pairwise([*sent, nothing]):
        called = about(content, "functionCall")
        answered = about(following, "functionResponse")
        if content["role"] == "model":
            assert [one.get("id") for one in called] == [one.get("id") for one in answered]
            assert [one["name"] for one in called] == [one["name"] for one in answered]
            first = [*following["parts"]][: len(answered)]
            assert all("functionResponse" in part for part in first)
        seen += [one["id"] for one in called if "id" in one]
    assert len(seen) == len(set(seen))


def about(content: JsonObject, field: str) -> list[JsonObject]:
    """Return this field of each part of a content that has it."""
    return [part[field] for part in content["parts"] if field in part]


signatures = st.text("ABCxyz019+/=", min_size=1, max_size=8)
said = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@st.composite
def native_parts(draw: st.DrawFn) -> JsonObject:
    """Return a part that Google's server sends, with a signature where it may have one."""
    own = {"thoughtSignature": draw(signatures)}
    text = draw(said)
    arguments = draw(st.dictionaries(said, said | st.integers() | st.booleans(), max_size=2))
    parts: list[JsonObject] = [
        {"text": text},
        {"text": text, **own},
        {"text": "", **own},
        {"text": text, "thought": True, **own},
        call("f", arguments, text, **own),
        {"executableCode": {"code": text}, **own},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}, **own},
    ]
    return draw(st.sampled_from(parts))


@example([call("f", {"\\": "0"}, "0", thoughtSignature="0")], "partial arguments", 1)
@example([call("f", {"\\0": "0"}, "0", thoughtSignature="0")], "partial arguments", 1)
@example([call("f", {"it's \"\n\u2028": "0"}, "0")], "partial arguments", 1)
@given(st.lists(native_parts(), max_size=6), st.sampled_from(FORMS), st.integers(1, 9))
def test_what_only_the_server_reads_goes_back_byte_for_byte(
    parts: list[JsonObject], form: Form, size: int
) -> None:
    """Each signature and each opaque part, on the very part that it came with, in order."""
    wire = GoogleGemini("gemini-2.5-flash")
    _, reply = decoded(wire, recorded(stream(parts, form, size=size)))
    results = [ToolResult("k", each.id, each.name, "ok") for each in reply.message.calls]

    request = ModelRequest((UserMessage("Go."), reply.message, *results))
    sent = body(request, wire)["contents"]

    unique = [without_ids(part) for part in merged(parts)]
    back: list[JsonObject] = sent[1]["parts"] if parts else []
    assert [without_ids(part) for part in back] == unique


def merged(parts: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the parts with neighbouring plain texts joined: only their pieces are parts."""
    found: list[JsonObject] = []
    for part in parts:
        if found and part.keys() == {"text"} == found[-1].keys():
            found[-1] = {"text": found[-1]["text"] + part["text"]}
        else:
            found.append(part)
    return found


def without_ids(part: JsonObject) -> JsonObject:
    """Return a part without the id of its call, which is changed if it is not the first."""
    made = part.get("functionCall")
    if not made:
        return part
    return {**part, "functionCall": {key: made[key] for key in made if key != "id"}}
