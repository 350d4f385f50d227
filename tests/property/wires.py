"""What the four wires have in common, for their properties: histories, streams, hostile servers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final, final

from hypothesis import strategies as st

from graphloop.events import ModelReplied
from graphloop.media import Inline, MediaPart, Url
from graphloop.providers.base import ServerEvent, Wire
from graphloop.stores.codec import Codec
from graphloop.values import (
    AssistantMessage,
    AssistantPart,
    Message,
    ModelRequest,
    OpaquePart,
    ReasoningPart,
    Reply,
    ResultStatus,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from tests import anthropic_talk, google_talk, openai_talk, responses_talk
from tests.transcripts import ANTHROPIC, OPENAI, any_text, event

__all__ = ["WIRES", "Spoken", "block_values", "encoded", "histories", "joined", "kept_and_sent"]

History = Sequence[Sequence[Message]]
"""What a conversation begins with, and what each turn appends."""


@final
@dataclass(frozen=True)
class Spoken:
    """A wire, and what its properties are tried with.

    Args:
        wire: the wire.
        parts: the parts of a reply that it has to encode, calls among them.
        ids: ids of calls that a server or a caller may have given.
        picture: a medium that the result of a call may hold.
        ends: what closes a request behind its last message, from the outside in.
        streams: recorded streams by name.
        resized: the same in smaller and in larger pieces.
        cuts: the places in a stream before which it is no answer.
        pieces: the events of a text that comes in these pieces.
        hostile: what a server may send, its last event included.
        values: JSON that a server may send in the place of an answer.
        opening: parts without which a reply would say nothing, and so be no turn of its own.
        tools: tools of its requests.
    """

    wire: Wire
    parts: st.SearchStrategy[AssistantPart]
    ids: st.SearchStrategy[str]
    picture: MediaPart
    ends: tuple[bytes, ...]
    streams: Mapping[str, bytes]
    cuts: Callable[[bytes], Iterable[int]]
    pieces: Callable[[Sequence[str]], Iterable[ServerEvent]]
    hostile: st.SearchStrategy[Sequence[ServerEvent]]
    values: st.SearchStrategy[Any]
    resized: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    opening: tuple[AssistantPart, ...] = ()
    tools: tuple[ToolSpec, ...] = (ToolSpec("f", "", "{}"),)


objects = st.dictionaries(any_text, st.none() | st.integers() | any_text, max_size=2).map(
    json.dumps
)
extras = st.just("") | objects
users = st.builds(UserMessage, any_text)
texts = st.builds(TextPart, any_text, extras)
thoughts = st.builds(ReasoningPart, any_text, any_text, st.just(""), extras)
inline = MediaPart("image/png", Inline(b"hi"))
NUMBERED: Final = ("", "call_0", "call_1", "call00001")


STATUSES: st.SearchStrategy[ResultStatus] = st.sampled_from(["ok", "error", "not_run"])


def _calls(ids: st.SearchStrategy[str]) -> st.SearchStrategy[ToolCall]:
    arguments = objects | any_text | st.sampled_from(["", "{", '{"a": 1}', "[]", '{"b":"\\n"}'])
    return st.builds(ToolCall, ids, st.sampled_from("fg") | any_text, arguments, extras)


@st.composite
def _turns(draw: st.DrawFn, spoken: Spoken) -> list[Message]:
    """Draw what a loop appends in one turn: a reply, a result a call, sometimes a user's text."""
    parts = draw(st.lists(spoken.parts | _calls(spoken.ids), max_size=5))
    maker = draw(st.sampled_from([spoken.wire.name, "another", ""]))
    message = AssistantMessage((*spoken.opening, *parts), maker, draw(extras))
    contents = any_text | st.tuples(st.builds(TextPart, any_text), st.just(spoken.picture))
    results = [
        ToolResult("k", draw(spoken.ids | any_text), call.name, draw(contents), draw(STATUSES))
        for call in message.calls
    ]
    return [message, *results, *draw(st.lists(users, max_size=2))]


def histories(spoken: Spoken) -> st.SearchStrategy[History]:
    """Draw a conversation."""
    start = st.lists(st.builds(SystemMessage, any_text) | users, min_size=1, max_size=3)
    later = st.lists(_turns(spoken), max_size=6)
    return st.tuples(start, later).map(lambda drawn: [drawn[0], *drawn[1]])


def joined(history: History) -> list[Message]:
    """Return all messages of a conversation."""
    return [message for turn in history for message in turn]


def encoded(wire: Wire, *messages: Message) -> dict[str, Any]:
    """Return the body of a request, which has no constant that JSON does not know."""
    body: dict[str, Any] = json.loads(
        b"".join(wire.encoder().encode(ModelRequest(messages))), parse_constant=_refused
    )
    return body


def kept_and_sent(wire: Wire, reply: Reply) -> None:
    """Assert that a reply comes back from a journal as it was, and goes back to its server."""
    str(reply).encode()
    replied = ModelReplied(0.0, 0, reply)
    assert Codec().decode(Codec().encode(0, replied)) == (0, replied)
    encoded(wire, UserMessage("Go."), reply.message)


def _refused(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def _starts_of_events(whole: bytes) -> list[int]:
    """Return where each event of a stream begins: a stream cut there is cut between events."""
    *events, _ = whole.split(b"\n\n")
    return list(accumulate((len(each) + 2 for each in events[:-1]), initial=0))


def _any_json(
    fields: st.SearchStrategy[str], words: st.SearchStrategy[Any], leaves: int = 12
) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | any_text | words,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fields, inner, max_size=4),
        max_leaves=leaves,
    )


def _sent(
    chunks: st.SearchStrategy[Any], last: st.SearchStrategy[Any]
) -> st.SearchStrategy[Sequence[ServerEvent]]:
    """Draw a stream of these chunks, with an end that may make it an answer."""
    return st.tuples(st.lists(chunks, max_size=6), last).map(
        lambda drawn: [event(one) for one in (*drawn[0], drawn[1])]
    )


# OpenAI chat


def _chat_cuts(whole: bytes) -> Iterable[int]:
    """Any byte before the finish reason of choice 0 has come whole."""
    finish = max(at for at in range(len(whole)) if _is_finish(whole, at))
    return range(whole.index(b"\n", finish) - 1)


def _is_finish(whole: bytes, at: int) -> bool:
    if not whole.startswith(b'"finish_reason":"', at):
        return False
    return b'"index":0,"delta"' in whole[whole.rindex(b"data:", 0, at) : at]


CHAT_FIELDS = st.sampled_from(
    (
        *("choices", "delta", "content", "tool_calls", "function", "name", "arguments", "id"),
        *("index", "finish_reason", "usage", "error", "code", "type", "message", "reasoning"),
        *("reasoning_details", "refusal", "text", "thinking", "model", "timings"),
    )
)
chat_values = _any_json(CHAT_FIELDS, st.nothing())
choices = st.fixed_dictionaries(
    {"delta": st.dictionaries(CHAT_FIELDS, chat_values, max_size=4)},
    optional={"finish_reason": chat_values},
)
chat_chunks = st.fixed_dictionaries(
    {"choices": st.lists(choices, max_size=2)},
    optional=dict.fromkeys(("usage", "model", "error", "id"), chat_values),
)


# Anthropic


def _messages_cuts(whole: bytes) -> Iterable[int]:
    """Every third byte of the stream's first answer."""
    end = b"event: message_stop"
    return range(0, whole.index(end, whole.index(b"event: message_start")) + len(end), 3)


BLOCK_WORDS = st.sampled_from(
    (
        *("message_start", "content_block_start", "content_block_delta", "content_block_stop"),
        *("message_delta", "message_stop", "error", "text", "tool_use", "thinking", "text_delta"),
        *("input_json_delta", "fallback", "partial_json", "redacted_thinking", "citations_delta"),
    )
)
block_values = _any_json(any_text, st.nothing(), leaves=8)
near_events = st.recursive(
    block_values | BLOCK_WORDS | st.integers(0, 1),
    lambda inner: st.dictionaries(
        st.sampled_from(
            ("type", "index", "delta", "content_block", "message", "usage", "error", "text", "id")
        ),
        inner,
        max_size=5,
    ),
    max_leaves=20,
)


@st.composite
def _block_events(draw: st.DrawFn) -> dict[str, object]:
    """Draw an event that names a block and has some of the fields one may have."""
    names = st.sampled_from(("text", "thinking", "partial_json", "input", "id", "citation", "data"))
    fields = st.dictionaries(names, block_values)
    return {
        "type": draw(BLOCK_WORDS),
        "index": draw(st.integers(0, 1)),
        draw(st.sampled_from(("content_block", "delta"))): {
            **draw(fields),
            "type": draw(BLOCK_WORDS),
        },
    }


def _in_a_message(events: Sequence[object]) -> list[ServerEvent]:
    opening = {"type": "message_start", "message": {"id": "m", "stop_reason": "end_turn"}}
    return [
        ServerEvent("", one) if isinstance(one, bytes) else event(one)
        for one in (opening, *events, {"type": "message_stop"})
    ]


def _text_block(pieces: Sequence[str]) -> list[ServerEvent]:
    return [
        anthropic_talk.START,
        anthropic_talk.block_start(0, type="text", text=""),
        *(anthropic_talk.block_delta(0, type="text_delta", text=each) for each in pieces),
        anthropic_talk.block_stop(0),
        anthropic_talk.message_delta(stop_reason="end_turn"),
        anthropic_talk.STOP,
    ]


# Gemini

GEMINI_FIELDS = st.sampled_from(
    (
        *("text", "thought", "thoughtSignature", "functionCall", "name", "args", "id", "index"),
        *("partialArgs", "jsonPath", "stringValue", "numberValue", "willContinue", "inlineData"),
        *("mimeType", "data", "executableCode", "codeExecutionResult", "toolCall", "toolType"),
        *("toolResponse", "outcome", "content", "parts", "candidates", "finishReason", "error"),
        *("promptFeedback", "blockReason", "usageMetadata", "promptTokenCount", "modelVersion"),
        "candidatesTokenCount",
    )
)
gemini_words = st.sampled_from(
    ["STOP", "SAFETY", "image/png", "audio/L16", "aGk=", "f", "$.a", "$.b[0]"]
)
gemini_values = _any_json(GEMINI_FIELDS, gemini_words)
argument_pieces = st.fixed_dictionaries(
    {"jsonPath": st.sampled_from(["$.a", "$.b[0]", "$.b[1].c", "$['a'].b", "$", "x"])},
    optional={"stringValue": any_text}
    | dict.fromkeys(("numberValue", "nullValue", "willContinue"), gemini_values),
)
gemini_calls = st.fixed_dictionaries(
    {},
    optional={
        "name": any_text,
        "id": gemini_values,
        "args": gemini_values,
        "partialArgs": st.lists(argument_pieces, max_size=3),
        "willContinue": st.booleans(),
    },
)
gemini_parts = gemini_values | st.fixed_dictionaries(
    {},
    optional={
        "functionCall": gemini_calls,
        "text": any_text,
        "thought": st.booleans(),
        "thoughtSignature": any_text,
    },
)
gemini_chunks = gemini_values | st.builds(google_talk.chunk, st.lists(gemini_parts, max_size=4))
gemini_end = st.builds(google_talk.chunk, st.lists(gemini_parts, max_size=2), gemini_words)


def _gemini_streams(*sizes: int) -> dict[str, bytes]:
    return {
        f"{name}, {form}, {size}": google_talk.recorded(
            google_talk.stream(parts, form, size=size), b"\n"
        )
        for name, parts in google_talk.ITEMS.items()
        for form in google_talk.FORMS
        for size in sizes
    }


# OpenAI Responses

ITEM_KINDS = st.sampled_from(
    (
        *("response.created", "response.output_item.added", "response.output_item.done"),
        *("response.content_part.added", "response.output_text.delta", "response.refusal.done"),
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        *("response.reasoning_summary_text.delta", "response.completed", "response.incomplete"),
        "response.web_search_call.searching",
        "response.image_generation_call.partial_image",
        *("message", "reasoning", "function_call", "web_search_call", "image_generation_call"),
        *("output_text", "refusal", "summary_text"),
    )
)
ITEM_FIELDS = st.sampled_from(
    (
        *("type", "item", "item_id", "id", "output_index", "content_index", "summary_index"),
        *("delta", "text", "arguments", "call_id", "name", "content", "summary", "status"),
        *("encrypted_content", "response", "output", "usage", "error", "incomplete_details"),
        *("reason", "model", "result"),
    )
)
item_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text | ITEM_KINDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(ITEM_FIELDS, inner, max_size=4)
        | st.fixed_dictionaries(
            {"type": ITEM_KINDS},
            optional={"id": st.just("i"), "content": inner, "status": inner, "arguments": inner},
        )
    ),
    max_leaves=12,
)
item_events = st.fixed_dictionaries(
    {"type": ITEM_KINDS},
    optional={
        "item": item_values,
        "item_id": st.just("i"),
        "output_index": st.integers(0, 2),
        "content_index": st.integers(0, 2),
        "response": item_values,
    }
    | dict.fromkeys(("delta", "text", "arguments"), any_text),
)
completed = st.fixed_dictionaries(
    {"output": st.lists(item_values, max_size=3)},
    optional=dict.fromkeys(("status", "model", "incomplete_details", "usage"), item_values),
).map(lambda response: {"type": "response.completed", "response": response})


def _item_streams(*sizes: int) -> dict[str, bytes]:
    return {
        f"{name}, {form}, {size}": responses_talk.recorded(
            responses_talk.stream(items, form, size=size)
        )
        for name, items in responses_talk.ITEMS.items()
        for form in responses_talk.FORMS
        for size in sizes
    }


def _as_items(pieces: Sequence[str]) -> list[ServerEvent]:
    message = responses_talk.message("msg_1", responses_talk.text("".join(pieces)))
    events = iter(pieces)
    return [
        event({**one, "delta": next(events)} if "delta" in one else one)
        for one in responses_talk.stream([message], size=len(pieces[0]) if pieces else 1)
    ]


WIRES: Final[Mapping[str, Spoken]] = {
    "anthropic": Spoken(
        wire=anthropic_talk.WIRE,
        parts=st.one_of(
            st.builds(TextPart, any_text),
            st.builds(ReasoningPart, any_text, any_text, st.sampled_from(["", "data"])),
            st.just(OpaquePart('{"type":"server_tool_use","id":"s"}')),
        ),
        ids=st.sampled_from(["", "call_0", "toolu_1", "call00001", "a b", "é"]) | any_text,
        picture=inline,
        ends=(b"]}",),
        streams=ANTHROPIC,
        cuts=_messages_cuts,
        pieces=_text_block,
        hostile=st.lists(_block_events() | near_events | st.binary(max_size=9), max_size=12).map(
            _in_a_message
        ),
        values=near_events,
        opening=(TextPart("So:"),),
        tools=(ToolSpec("s", "", "", "provider", definition='{"type":"web_search_1","name":"s"}'),),
    ),
    "google": Spoken(
        wire=google_talk.WIRE,
        parts=texts
        | thoughts
        | st.builds(OpaquePart, st.sampled_from(['{"toolCall":{}}', '{"executableCode":{}}']))
        | st.just(inline),
        ids=st.sampled_from(NUMBERED),
        picture=inline,
        ends=(b"]}", b"]}"),
        streams=_gemini_streams(4),
        resized=_gemini_streams(1, 1000),
        cuts=_starts_of_events,
        pieces=lambda pieces: [
            *(event(google_talk.chunk([{"text": each}])) for each in pieces),
            event(google_talk.chunk([{"text": ""}], "STOP")),
        ],
        hostile=_sent(gemini_chunks, gemini_end),
        values=gemini_values,
    ),
    "openai": Spoken(
        wire=openai_talk.WIRE,
        parts=st.builds(TextPart, any_text) | st.builds(ReasoningPart, any_text),
        ids=st.sampled_from([*NUMBERED, "call00000", "call00002"]),
        picture=MediaPart("image/*", Url("u")),
        ends=(b"]}",),
        streams=OPENAI,
        cuts=_chat_cuts,
        pieces=lambda pieces: [
            *(openai_talk.chunk({"content": each}) for each in pieces),
            openai_talk.chunk({}, "stop"),
            openai_talk.DONE,
        ],
        hostile=st.lists(chat_chunks | chat_values, max_size=5).map(
            lambda sent: [*map(event, sent), openai_talk.DONE]
        ),
        values=chat_values,
    ),
    "responses": Spoken(
        wire=responses_talk.WIRE,
        parts=texts
        | thoughts
        | st.builds(OpaquePart, st.sampled_from(['{"type":"compaction"}', '{"type":"mcp_call"}'])),
        ids=st.sampled_from(NUMBERED),
        picture=inline,
        ends=(b"]}",),
        streams=_item_streams(4),
        resized=_item_streams(1, 1000),
        cuts=_starts_of_events,
        pieces=_as_items,
        hostile=_sent(item_events | item_values, completed),
        values=item_values,
    ),
}
