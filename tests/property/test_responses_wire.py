"""What OpenAI's Responses server asks of a conversation, and what it wants back as it sent it."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from graphloop.values import Message, ModelRequest, ToolResult, UserMessage
from tests.property.wires import WIRES, histories, joined
from tests.responses_talk import (
    FORMS,
    SEARCH,
    WIRE,
    Form,
    JsonObject,
    body,
    call,
    message,
    reasoning,
    recorded,
    stream,
    text,
)
from tests.transcripts import decoded


@given(histories(WIRES["responses"]).map(joined))
def test_every_call_is_answered_under_an_id_of_its_own(history: list[Message]) -> None:
    """The server refuses a call without a result, and a result without a call."""
    sent = body(ModelRequest(history))["input"]

    called = [item["call_id"] for item in sent if item.get("type") == "function_call"]
    answered = [item["call_id"] for item in sent if item.get("type") == "function_call_output"]
    assert called == answered
    assert len(called) == len(set(called))
    assert all(0 < len(call_id) <= 64 for call_id in called)


encrypted = st.text("ABCxyz019+/=", min_size=1, max_size=8)
plain = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


def native_item(number: int) -> st.SearchStrategy[JsonObject]:
    """Draw an output item of OpenAI's server, with an id of its own."""
    thought = encrypted.map(lambda data: reasoning(f"rs_{number}", encrypted=data))
    shown = plain.map(lambda said: reasoning(f"rs_{number}", said, encrypted=f"e{number}"))
    said = plain.map(lambda said: message(f"msg_{number}", text(said), phase="commentary"))
    called = plain.map(lambda said: call(f"fc_{number}", f"call_{number}", "f", {"said": said}))
    searched: JsonObject = {**SEARCH, "id": f"ws_{number}"}
    unknown = encrypted.map(
        lambda data: {"type": "new", "id": f"n_{number}", "encrypted_content": data}
    )
    return thought | shown | said | called | st.just(searched) | unknown


native_items = st.integers(0, 6).flatmap(lambda size: st.tuples(*map(native_item, range(size))))


@given(
    native_items,
    st.sampled_from([form for form in FORMS if form != "new ids"]),
    st.integers(1, 9),
)
def test_what_only_the_server_reads_goes_back_byte_for_byte(
    items: Sequence[JsonObject], form: Form, size: int
) -> None:
    """Encrypted reasoning, ids, and items that graphloop does not know, each at its place."""
    _, reply = decoded(WIRE, recorded(stream(items, form, size=size)))
    results = [ToolResult("k", each.id, each.name, "ok") for each in reply.message.calls]

    sent = body(ModelRequest((UserMessage("Go."), reply.message, *results)))["input"][1:]

    last = max([at for at, item in enumerate(items) if item["type"] != "reasoning"], default=-1)
    answers = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "ok"}
        for item in items
        if item["type"] == "function_call"
    ]
    assert sent == [*map(sent_back, items[: last + 1]), *answers]


def sent_back(item: JsonObject) -> JsonObject:
    """Return an item without what the server does not read, and with what it wants."""
    match item["type"]:
        case "reasoning":
            return {"content": [], **item}
        case "function_call":
            return {key: item[key] for key in item if key != "status"}
        case "message":
            parts = [
                {key: part[key] for key in part if key != "logprobs"} for part in item["content"]
            ]
            return {**item, "content": parts}
        case _:
            return item
