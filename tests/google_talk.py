"""The Gemini wire in tests: parts of a server's answers, and the streams that carry them.

`ITEMS` holds the parts of answers as Google's documentation and recorded streams show them.
`stream` turns parts into chunks, in the form of Google's server or in one of the forms in which
models, gateways and options make it differ.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from graphloop.providers import is_list, is_object
from graphloop.providers.google.wire import GoogleGemini
from graphloop.values import ModelRequest

__all__ = [
    "FORMS",
    "GOOGLE",
    "ITEMS",
    "PIXEL",
    "USAGE",
    "WIRE",
    "Form",
    "body",
    "call",
    "chunk",
    "recorded",
    "stream",
]

WIRE = GoogleGemini("gemini-3-flash")
PIXEL = b"\x89PNG\r\n\x1a\n pixel"
JsonObject: TypeAlias = dict[str, Any]

Form: TypeAlias = Literal[
    "google",  # A text comes in pieces, and each other part in a chunk of its own.
    "one chunk",  # All parts come with the finish reason.
    "parts together",  # All parts come in one chunk, and the finish reason in another.
    "no content",  # The last chunk has a candidate without content.
    "no parts",  # The content of the last chunk has no parts.
    "partial arguments",  # The arguments of a call come by their JSON paths.
    "no last call",  # So they do, and the last chunk of a call with arguments is missing.
]
FORMS: Final[tuple[Form, ...]] = get_args(Form)


def call(
    name: str, args: JsonObject | None = None, call_id: str = "", **more: object
) -> JsonObject:
    about = {"name": name, **({} if args is None else {"args": args})}
    return {"functionCall": about | ({"id": call_id} if call_id else {}), **more}


def _text(said: str, **more: object) -> JsonObject:
    return {"text": said, **more}


def _medium(media_type: str, data: bytes, **more: object) -> JsonObject:
    return {"inlineData": {"mimeType": media_type, "data": b64encode(data).decode()}, **more}


# Signatures are opaque to all but the server; any base64 text may come.
_SIGNED: JsonObject = {"thoughtSignature": "CiMBjz1rX25KieIB4d4AwFn8/WbsHTRN+A=="}
_SIGNED_TOO: JsonObject = {"thoughtSignature": "AY89a19ZkXSMGh/bSOlwTCxl62lQdtTZ"}
NYC = call("get_weather", {"city": "NYC"}, "call_345658", **_SIGNED)
LONDON = call("get_weather", {"city": "London"}, "call_345659")
_THOUGHT = _text("First, the city.\n\nThen its weather.", thought=True)
_CODE = {"executableCode": {"language": "PYTHON", "code": "print(1 + 1)", "id": "code_1"}}
_RAN = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2\n", "id": "code_1"}}
_FAILED = {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "no"}}
_SEARCH = {"toolCall": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["tide"]}}}
_FOUND = {"toolResponse": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"n": 3}}}
_READ = {"toolCall": {"id": "u1", "toolType": "URL_CONTEXT", "args": {"urls": ["https://a.b"]}}}
_PAGE = {"toolResponse": {"id": "u1", "toolType": "URL_CONTEXT", "response": {"n": 1}}}
_NESTED: JsonObject = {
    "recipe": {
        "name": 'Lasagne "al forno" 👩‍🍳',
        "steps": [{"do": "mix", "minutes": 5}, {"do": "bake", "minutes": 45.5}],
        "tags": ["hot", "good"],
        "grid": [[1, 2], [3]],
        "hot": True,
        "note": None,
        "odd key.[0]": "x",
    }
}

ITEMS: Final[Mapping[str, Sequence[JsonObject]]] = {
    "text": (_text("Sunny in NYC: 72°F. 👩‍🚀"),),
    "signed text": (_text("Sunny."), _text("", **_SIGNED)),
    "text that is signed": (_text("Sunny in NYC."), _text(" And dry.", **_SIGNED)),
    "thought": (_THOUGHT, _text("Sunny.")),
    "signed thought": (_text("Hm.", thought=True, **_SIGNED), _text("Sunny.")),
    "thought between texts": (_text("One."), _text("Hm.", thought=True), _text("Two.")),
    "call": (NYC,),
    "call without id": (call("get_weather", {"city": "NYC"}),),
    "text and call": (_text("Let me look."), NYC),
    "thought and call": (_THOUGHT, NYC),
    "calls": (NYC, LONDON),
    "calls without ids": (call("get_weather", {"city": "NYC"}, **_SIGNED), call("now", {})),
    "same call ids": (NYC, call("now", {}, "call_345658")),
    "no arguments": (call("now", **_SIGNED),),
    "nested arguments": (call("cook", _NESTED, **_SIGNED), LONDON),
    "call and signed end": (NYC, _text("", **_SIGNED_TOO)),
    "code": (_CODE | _SIGNED, _RAN, _text("2.")),
    "failed code": (_CODE, _FAILED, _text("It failed.")),
    "search": (_SEARCH | _SIGNED, _FOUND, _text("High tide at noon."), NYC),
    "two searches": (_SEARCH, _READ, _PAGE, _FOUND, _text("Noon.")),
    "picture": (_text("Here it is."), _medium("image/png", PIXEL, **_SIGNED)),
    "two pictures": (_medium("image/png", PIXEL), _medium("image/png", PIXEL)),
    "sound": (_medium("audio/L16;codec=pcm;rate=24000", b"\x00\x01" * 4),),
    "thought picture": (_medium("image/png", PIXEL, thought=True), _text("Drawn.")),
    "stored file": ({"fileData": {"mimeType": "video/mp4", "fileUri": "https://a.b/c"}},),
    "part with metadata": (_text("Hi.", partMetadata={"source": "a"}), _text("Bye.")),
    "nothing": (),
}

USAGE: JsonObject = {
    "promptTokenCount": 12,
    "cachedContentTokenCount": 5,
    "toolUsePromptTokenCount": 2,
    "candidatesTokenCount": 8,
    "thoughtsTokenCount": 3,
    "totalTokenCount": 25,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 12}],
}


def chunk(
    parts: Sequence[JsonObject] | None, finish: str = "", usage: JsonObject | None = None
) -> JsonObject:
    """Return a chunk of a stream; None for a candidate without content."""
    content = {} if parts is None else {"content": {"parts": list(parts), "role": "model"}}
    return {
        "candidates": [{**content, **({"finishReason": finish} if finish else {}), "index": 0}],
        "usageMetadata": USAGE if usage is None else usage,
        "modelVersion": "gemini-3-flash-preview",
        "responseId": "vQRpaqzAPN2M9MoPxPq2uQ4",
    }


def stream(
    parts: Sequence[JsonObject], form: Form = "google", *, finish: str = "STOP", size: int = 4
) -> list[JsonObject]:
    """Return the chunks that carry `parts`; `size` is the number of characters of a piece."""
    if form == "one chunk":
        return [chunk(parts or None, finish)]
    pieces = [[each] for each in _pieces(parts, form, size)]
    pieces = [[*parts]] if form == "parts together" else pieces
    # The counts grow from chunk to chunk.
    chunks = [
        chunk(each, usage={"promptTokenCount": 12, "candidatesTokenCount": min(8, at)})
        for at, each in enumerate(pieces, 1)
    ]
    last = chunk(None if form == "no content" else [{"text": ""}], finish)
    if form == "no parts":
        del last["candidates"][0]["content"]["parts"]
    return [*chunks, last]


def _pieces(parts: Sequence[JsonObject], form: Form, size: int) -> Iterator[JsonObject]:
    for part in parts:
        about = part.get("functionCall", {})
        if form in {"partial arguments", "no last call"} and about.get("args"):
            yield from _partial(part, form, size)
        elif "text" in part and part.keys() <= {"text", "thought"}:
            for piece in _cut(part["text"], size):
                yield {**part, "text": piece}
        elif part.get("inlineData", {}).get("mimeType", "").startswith("audio/"):
            blob = part["inlineData"]
            for piece in _cut(blob["data"], size * 4):
                yield {"inlineData": {**blob, "data": piece}}
        else:
            yield part


def _partial(part: JsonObject, form: Form, size: int) -> Iterator[JsonObject]:
    about = {key: part["functionCall"][key] for key in part["functionCall"] if key != "args"}
    yield {**part, "functionCall": {**about, "willContinue": True}}
    pieces = [
        {"functionCall": {"partialArgs": [piece], "willContinue": True}}
        for piece in _values("$", part["functionCall"]["args"], size)
    ]
    if form == "no last call":
        del pieces[-1]["functionCall"]["willContinue"]
        yield from pieces
    else:
        yield from pieces
        yield {"functionCall": {}}


def _values(path: str, value: object, size: int) -> Iterator[JsonObject]:
    """Yield the partial arguments of a value, as Gemini 3.1 sends them."""
    if is_object(value):
        for name, inner in value.items():
            # Quoted as RFC 9535 says: controls are escaped, and quotes of the other kind are not.
            quoted = json.dumps(name)[1:-1].replace('\\"', '"').replace("'", "\\'")
            step = f".{name}" if name.isalnum() else f"['{quoted}']"
            yield from _values(path + step, inner, size)
        return
    if is_list(value):
        for index, inner in enumerate(value):
            yield from _values(f"{path}[{index}]", inner, size)
        return
    match value:
        case str():
            for piece in _cut(value, size):
                yield {"jsonPath": path, "stringValue": piece, "willContinue": True}
            yield {"jsonPath": path, "stringValue": ""}
        case bool():
            yield {"jsonPath": path, "boolValue": value}
        case None:
            yield {"jsonPath": path, "nullValue": "NULL_VALUE"}
        case _:
            yield {"jsonPath": path, "numberValue": value}


def _cut(said: str, size: int) -> list[str]:
    return [said[at : at + size] for at in range(0, len(said), size)]


def recorded(chunks: Sequence[JsonObject], end: bytes = b"\r\n") -> bytes:
    """Return the bytes of a stream of server-sent events; `end` ends a line."""
    return b"".join(b"data: %s%s%s" % (json.dumps(each).encode(), end, end) for each in chunks)


GOOGLE: Final[Mapping[str, bytes]] = {
    name: recorded(stream(parts), b"\n") for name, parts in ITEMS.items()
}
"""Each reply of `ITEMS` as Google's server streams it, but for its line ends."""


def body(request: ModelRequest, wire: GoogleGemini = WIRE) -> JsonObject:
    """Return the request body as the server reads it."""
    return cast("JsonObject", json.loads(b"".join(wire.encoder().encode(request))))
