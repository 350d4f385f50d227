"""The Responses wire in tests: output items of a server, and the streams that carry them.

`ITEMS` holds items as OpenAI's reference shows them. `stream` turns items into events, in the form
of OpenAI's server or in one of the forms in which other servers and gateways differ from it.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from graphloop.providers.openai_responses.wire import OpenAIResponses
from graphloop.values import ModelRequest

__all__ = [
    "FORMS",
    "ITEMS",
    "PIXEL",
    "RESPONSES",
    "SEARCH",
    "WIRE",
    "Form",
    "JsonObject",
    "body",
    "call",
    "message",
    "reasoning",
    "recorded",
    "response",
    "stream",
    "text",
]

WIRE = OpenAIResponses("gpt-5")
PIXEL = b"\x89PNG\r\n\x1a\n pixel"
JsonObject: TypeAlias = dict[str, Any]

Form: TypeAlias = Literal[
    "openai",  # Each event as OpenAI's reference shows it.
    "llama",  # No indexes, and no last event of a call's arguments.
    "whole items",  # Items come only with their last event.
    "last event",  # Items come only with the last event of the stream.
    "no output",  # The output of the last event is empty.
    "new ids",  # A gateway gives an item another id in each event.
]
FORMS: Final[tuple[Form, ...]] = get_args(Form)


def message(item_id: str, *content: JsonObject, **more: object) -> JsonObject:
    return {
        "type": "message",
        "id": item_id,
        "status": "completed",
        "role": "assistant",
        "content": list(content),
        **more,
    }


def text(said: str, *annotations: JsonObject) -> JsonObject:
    return {"type": "output_text", "text": said, "annotations": list(annotations), "logprobs": []}


def call(item_id: str, call_id: str, name: str, arguments: object) -> JsonObject:
    return {
        "type": "function_call",
        "id": item_id,
        "call_id": call_id,
        "name": name,
        "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
        "status": "completed",
    }


def reasoning(item_id: str, *summary: str, encrypted: str = "") -> JsonObject:
    return {
        "type": "reasoning",
        "id": item_id,
        "summary": [{"type": "summary_text", "text": said} for said in summary],
        **({"encrypted_content": encrypted} if encrypted else {}),
    }


NOTHING: JsonObject = {}
CITED = {
    "type": "url_citation",
    "url": "https://example.com/",
    "title": "Example",
    "start_index": 0,
    "end_index": 4,
}
SEARCH = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "weather"},
}
THOUGHT = reasoning("rs_1", "First.", "Then.", encrypted="gAAAAA==")
NYC = call("fc_1", "call_a", "get_weather", {"city": "NYC"})
LONDON = call("fc_2", "call_b", "get_weather", {"city": "London"})

PROGRAM = {
    "type": "program",
    "id": "pg_1",
    "call_id": "prog_1",
    "code": "await tools.get_weather({city: 'NYC'})",
    "fingerprint": "gAAAAD==",
}
CALLER = {"type": "program", "caller_id": "prog_1"}

ITEMS: Final[Mapping[str, Sequence[JsonObject]]] = {
    "text": (message("msg_1", text("Sunny in NYC: 72°F. 👩‍🚀")),),
    "two texts": (message("msg_1", text("One."), text("Two.")),),
    "two messages": (
        message("msg_1", text("Let me look."), phase="commentary"),
        message("msg_2", text("Sunny."), phase="final_answer"),
    ),
    "cited": (SEARCH, message("msg_1", text("Cold.", CITED))),
    "refusal": (message("msg_1", {"type": "refusal", "refusal": "I cannot help."}),),
    "call": (NYC,),
    "calls": (message("msg_1", text("Both.")), NYC, LONDON),
    "a program's call": (PROGRAM, {**NYC, "caller": CALLER}, LONDON),
    "same call ids": (NYC, {**LONDON, "call_id": "call_a"}),
    "no arguments": (call("fc_1", "call_a", "now", {}),),
    "bad arguments": (call("fc_1", "call_a", "get_weather", '{"city": NYC}'),),
    "reasoning": (THOUGHT, message("msg_1", text("Sunny."))),
    "reasoning and call": (THOUGHT, NYC),
    "open reasoning": (
        {
            **reasoning("rs_1"),
            "content": [{"type": "reasoning_text", "text": "Hm, NYC."}],
        },
        NYC,
    ),
    "silent reasoning": (reasoning("rs_1", encrypted="gAAAAB=="), NYC),
    "files": (
        {
            "type": "file_search_call",
            "id": "fs_1",
            "status": "completed",
            "queries": ["weather"],
            "results": None,
        },
        message("msg_1", text("Found.")),
    ),
    "code": (
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "status": "completed",
            "code": "1 + 1",
            "container_id": "cntr_1",
            "outputs": [{"type": "logs", "logs": "2"}],
        },
        message("msg_1", text("2.")),
    ),
    "picture": (
        {
            "type": "image_generation_call",
            "id": "ig_1",
            "status": "completed",
            "output_format": "png",
            "result": b64encode(PIXEL).decode(),
        },
        message("msg_1", text("Here it is.")),
    ),
    "compaction": (
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAC=="},
        message("msg_1", text("Go on.")),
    ),
    "made-up parallel call": (
        call(
            "fc_1",
            "call_a",
            "parallel",
            {
                "tool_uses": [
                    {"recipient_name": "functions.get_weather", "parameters": {"city": "NYC"}},
                    {"recipient_name": "functions.now", "parameters": NOTHING},
                ]
            },
        ),
    ),
}

USAGE = {
    "input_tokens": 12,
    "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 2},
    "output_tokens": 8,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 20,
}


def response(
    output: Sequence[JsonObject], status: str, reason: str = "", **more: object
) -> JsonObject:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1741290958,
        "model": "gpt-5-2025-08-07",
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": None,
        "metadata": {},
        "output": list(output),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None if status == "in_progress" else USAGE,
        **more,
    }


def stream(
    items: Sequence[JsonObject],
    form: Form = "openai",
    *,
    status: str = "completed",
    reason: str = "",
    size: int = 4,
) -> list[JsonObject]:
    """Return the events that carry `items`; `size` is the number of characters of a delta."""
    begun = response((), "in_progress")
    if form == "llama":
        begun = {key: begun[key] for key in ("id", "object", "status")}
    events: list[JsonObject] = [{"type": "response.created", "response": begun}]
    if form != "last event":
        for index, item in enumerate(items):
            events += _events(index, item, form, size)
    output = () if form == "no output" else items
    last = response(output, status, reason)
    events.append({"type": f"response.{status}", "response": last})
    for number, event in enumerate(events):
        if form != "llama":
            event["sequence_number"] = number
    return events


def _events(index: int, item: JsonObject, form: Form, size: int) -> Iterator[JsonObject]:
    ids = iter(f"{item['id']}_{at}" for at in range(1000))

    def about(kind: str, **fields: object) -> JsonObject:
        own: JsonObject = {"item_id": next(ids) if form == "new ids" else item["id"]}
        own["output_index"] = index
        event: JsonObject = {"type": f"response.{kind}", **own, **fields}
        if form == "llama":
            return {
                key: event[key] for key in event if key not in {"output_index", "content_index"}
            }
        return event

    def whole(kind: str, value: JsonObject) -> JsonObject:
        shown = {**value, "id": next(ids)} if form == "new ids" else value
        event = {"type": f"response.output_item.{kind}", "item": shown}
        return event if form == "llama" else {**event, "output_index": index}

    if form != "whole items":
        yield whole("added", _started(item))
        for kind, fields in _inside(item, size):
            if form != "llama" or not kind.endswith("arguments.done"):
                yield about(kind, **fields)
    yield whole("done", item)


def _started(item: JsonObject) -> JsonObject:
    empty: JsonObject = {"content": [], "arguments": "", "summary": [], "result": None}
    empty |= {"encrypted_content": "", "code": "", "outputs": None, "status": "in_progress"}
    return {key: empty.get(key, value) for key, value in item.items()}


def _inside(item: JsonObject, size: int) -> Iterator[tuple[str, JsonObject]]:
    yield from _in_content(item, size)
    yield from _in_summary(item, size)
    if item["type"] == "function_call":
        for piece in _pieces(item["arguments"], size):
            yield "function_call_arguments.delta", {"delta": piece}
        done = {"arguments": item["arguments"], "name": item["name"]}
        yield "function_call_arguments.done", done
    for step in _STEPS.get(item["type"], ()):
        yield f"{item['type']}.{step}", {}
    if item["type"] == "image_generation_call":
        preview = {"partial_image_b64": "cA==", "partial_image_index": 0}
        yield "image_generation_call.partial_image", preview


def _in_content(item: JsonObject, size: int) -> Iterator[tuple[str, JsonObject]]:
    for at, part in enumerate(item.get("content", ())):
        field = {"output_text": "text", "refusal": "refusal", "reasoning_text": "text"}
        kind, said = part["type"], part[field[part["type"]]]
        where = {"content_index": at}
        if kind != "reasoning_text":
            yield "content_part.added", {**where, "part": {**part, field[kind]: ""}}
        logprobs: JsonObject = {"logprobs": []} if kind == "output_text" else {}
        for piece in _pieces(said, size):
            yield f"{kind}.delta", {**where, "delta": piece, **logprobs}
        yield f"{kind}.done", {**where, field[kind]: said, **logprobs}
        if kind != "reasoning_text":
            yield "content_part.done", {**where, "part": part}


def _in_summary(item: JsonObject, size: int) -> Iterator[tuple[str, JsonObject]]:
    for at, part in enumerate(item.get("summary", ())):
        where = {"summary_index": at}
        yield "reasoning_summary_part.added", {**where, "part": {**part, "text": ""}}
        for piece in _pieces(part["text"], size):
            yield "reasoning_summary_text.delta", {**where, "delta": piece}
        yield "reasoning_summary_text.done", {**where, "text": part["text"]}
        yield "reasoning_summary_part.done", {**where, "part": part}


_STEPS: Final[Mapping[str, Sequence[str]]] = {
    "web_search_call": ("in_progress", "searching", "completed"),
    "file_search_call": ("in_progress", "searching", "completed"),
    "code_interpreter_call": ("in_progress", "interpreting", "completed"),
    "image_generation_call": ("in_progress", "generating"),
}


def _pieces(said: str, size: int) -> list[str]:
    return [said[at : at + size] for at in range(0, len(said), size)]


def recorded(events: Sequence[JsonObject], end: bytes = b"\n") -> bytes:
    """Return the bytes of a stream of server-sent events; `end` ends a line."""
    return b"".join(
        b"event: %s%sdata: %s%s%s"
        % (event["type"].encode(), end, json.dumps(event).encode(), end, end)
        for event in events
    )


RESPONSES: Final[Mapping[str, bytes]] = {
    name: recorded(stream(items)) for name, items in ITEMS.items()
}
"""Each reply of `ITEMS` as OpenAI's server streams it."""


def body(request: ModelRequest, wire: OpenAIResponses = WIRE) -> JsonObject:
    """Return the request body as the server reads it."""
    return cast("JsonObject", json.loads(b"".join(wire.encoder().encode(request))))
