"""The Gemini encoder: what a request says, and what it refuses to say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graphloop.errors import ConfigError
from graphloop.media import FileId, Inline, MediaPart, Url
from graphloop.providers import (
    google_code_execution,
    google_file_search,
    google_maps,
    google_search,
    google_url_context,
)
from graphloop.providers.google.wire import GoogleGemini
from graphloop.values import (
    AssistantMessage,
    Message,
    ModelRequest,
    OpaquePart,
    OutputSpec,
    ReasoningPart,
    Settings,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from tests.google_talk import ITEMS, WIRE, body, recorded, stream
from tests.transcripts import decoded

GO = UserMessage("Go.")
PAY = ToolSpec("pay", "Pay.", '{"type":"object","properties":{}}')
PICTURE = MediaPart("image/png", Inline(b"hi"))
OLD = GoogleGemini("gemini-2.5-flash")


def asked(
    *messages: Message,
    tools: tuple[ToolSpec, ...] = (),
    choice: ToolChoice | None = None,
    settings: Settings | None = None,
    output: OutputSpec | None = None,
    wire: GoogleGemini = WIRE,
) -> dict[str, Any]:
    """Return the body of a request."""
    request = ModelRequest(
        messages or (GO,), tools, choice or ToolChoice(), settings or Settings(), output
    )
    return body(request, wire)


def said(role: str, *parts: object) -> dict[str, object]:
    """Return a content of a request."""
    return {"role": role, "parts": list(parts)}


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("gemini-3-flash", "/v1beta/models/gemini-3-flash:streamGenerateContent?alt=sse"),
        ("models/gemini-3", "/v1beta/models/gemini-3:streamGenerateContent?alt=sse"),
        ("tunedModels/mine", "/v1beta/tunedModels/mine:streamGenerateContent?alt=sse"),
        ("a b?c#d", "/v1beta/models/a%20b%3Fc%23d:streamGenerateContent?alt=sse"),
    ],
)
def test_the_model_is_in_the_path(model: str, path: str) -> None:
    """And nothing else of a URL is."""
    assert GoogleGemini(model).path == path


def test_the_key_is_in_a_header() -> None:
    """A server of one's own needs none."""
    assert WIRE.headers("k") == {"x-goog-api-key": "k"}
    assert WIRE.headers("") == {}


def test_a_request_has_its_contents_last() -> None:
    """Each request begins with the bytes of the one before it."""
    sent = asked(SystemMessage("Be brief."), SystemMessage("Be kind."), GO, tools=(PAY,))

    assert sent == {
        "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]},
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "pay",
                        "description": "Pay.",
                        "parametersJsonSchema": {"type": "object", "properties": {}},
                    }
                ]
            }
        ],
        "contents": [said("user", {"text": "Go."})],
    }
    assert list(sent)[-1] == "contents"
    assert asked() == {"contents": [said("user", {"text": "Go."})]}
    assert asked(SystemMessage("Be brief."))["contents"] == []


def test_settings_have_the_names_of_the_wire() -> None:
    """And options of the caller go along.

    The API has no field for one call at a time: the loop runs several one after another.
    """
    options: dict[str, object] = {
        "generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}, "topK": 4},
        "safetySettings": [],
        "cachedContent": "cachedContents/a",
    }
    settings = Settings(
        max_tokens=9,
        temperature=0.5,
        top_p=0.9,
        seed=7,
        stop_sequences=("END",),
        parallel_tool_calls=False,
        options=json.dumps(options),
    )

    sent = asked(settings=settings)

    assert sent["generationConfig"] == {
        "maxOutputTokens": 9,
        "temperature": 0.5,
        "topP": 0.9,
        "seed": 7,
        "stopSequences": ["END"],
        "thinkingConfig": {"thinkingLevel": "LOW"},
        "topK": 4,
    }
    assert sent["cachedContent"] == "cachedContents/a"
    assert sent["safetySettings"] == []


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (Settings(options='{"contents":[]}'), "found 'contents'"),
        (Settings(options='{"systemInstruction":{}}'), "found 'systemInstruction'"),
        (Settings(options='{"system_instruction":{}}'), "camel case.*found 'system_instruction'"),
        (Settings(options='{"generationConfig":1}'), "at 'generationConfig': expected an object"),
        (Settings(options='{"generationConfig":{"topP":1}}'), "found 'topP'.*Set Settings.top_p"),
        (Settings(options='{"generationConfig":{"top_p":1}}'), "camel case.*found 'top_p'"),
        (Settings(options='{"generationConfig":{"candidateCount":2}}'), "reads one answer"),
        (Settings(options='{"toolConfig":[]}'), "at 'toolConfig': expected an object"),
        (
            Settings(options='{"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}'),
            "found 'mode'.*Set ToolChoice",
        ),
    ],
)
def test_what_the_wire_cannot_express_is_refused(settings: Settings, told: str) -> None:
    """An option that is dropped without a word is a wrong answer."""
    with pytest.raises(ConfigError, match=told):
        asked(settings=settings)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ToolChoice("required"), {"mode": "ANY"}),
        (ToolChoice("none"), {"mode": "NONE"}),
        (ToolChoice("tool", "pay"), {"mode": "ANY", "allowedFunctionNames": ["pay"]}),
    ],
)
def test_a_choice_is_a_mode(choice: ToolChoice, expected: object) -> None:
    """Other fields of the tool configuration stay beside it."""
    given = {"retrievalConfig": {"languageCode": "de"}}
    settings = Settings(options=json.dumps({"toolConfig": given}))

    sent = asked(tools=(PAY,), choice=choice, settings=settings)

    assert sent["toolConfig"] == {**given, "functionCallingConfig": expected}
    assert "toolConfig" not in asked(tools=(PAY,))
    assert "toolConfig" not in asked(choice=choice)


def test_functions_and_tools_of_the_server_go_together() -> None:
    """The server refuses both, unless it may tell of its own calls; a run resends them."""
    search = google_search().spec
    streaming = {"toolConfig": {"functionCallingConfig": {"streamFunctionCallArguments": True}}}
    settings = Settings(options=json.dumps({**streaming, "tools": [{"codeExecution": {}}]}))

    both = asked(tools=(PAY, search), settings=settings)

    assert [list(tool) for tool in both["tools"]] == [
        ["functionDeclarations"],
        ["googleSearch"],
        ["codeExecution"],
    ]
    assert both["toolConfig"] == {
        "includeServerSideToolInvocations": True,
        "functionCallingConfig": {"streamFunctionCallArguments": True, "mode": "VALIDATED"},
    }
    assert "toolConfig" not in asked(tools=(search,))
    with pytest.raises(ConfigError, match="cannot force it"):
        asked(tools=(PAY, search), choice=ToolChoice("tool", "google_search"))


def test_the_tools_of_the_server_have_their_definitions() -> None:
    """As the pages of the provider show them."""
    tools = (
        google_search(),
        google_search(image_search=True, exclude_domains=["a.b"]),
        google_file_search(["fileSearchStores/a"], metadata_filter="year = 2026", top_k=3),
        google_maps(widget=True),
        google_url_context(),
        google_code_execution(),
    )

    sent = [asked(tools=(tool.spec,))["tools"] for tool in tools]

    assert sent == [
        [{"googleSearch": {}}],
        [
            {
                "googleSearch": {
                    "searchTypes": {"webSearch": {}, "imageSearch": {}},
                    "excludeDomains": ["a.b"],
                }
            }
        ],
        [
            {
                "fileSearch": {
                    "fileSearchStoreNames": ["fileSearchStores/a"],
                    "metadataFilter": "year = 2026",
                    "topK": 3,
                }
            }
        ],
        [{"googleMaps": {"enableWidget": True}}],
        [{"urlContext": {}}],
        [{"codeExecution": {}}],
    ]
    names = ["file_search", "google_maps", "url_context", "code_execution"]
    assert [tool.name for tool in tools[2:]] == names


def test_an_output_schema_is_json_schema() -> None:
    """Other fields of the generation stay beside it."""
    settings = Settings(options='{"generationConfig":{"topK":4}}')

    sent = asked(output=OutputSpec("a", '{"type":"object"}', "An answer."), settings=settings)

    assert sent["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": {"description": "An answer.", "type": "object"},
        "topK": 4,
    }
    with pytest.raises(ConfigError, match="found 'responseSchema'"):
        asked(
            output=OutputSpec("a", "{}"),
            settings=Settings(options='{"generationConfig":{"responseSchema":{}}}'),
        )


def test_neighbours_of_one_role_share_a_content() -> None:
    """The API expects the roles in turns; empty texts are left out."""
    yes = AssistantMessage((TextPart("Yes."),))
    sent = asked(
        GO,
        SystemMessage("Be brief."),
        UserMessage(""),
        UserMessage((TextPart(""), TextPart("And?"), PICTURE)),
        yes,
        AssistantMessage((TextPart(""),)),
        yes,
        GO,
    )

    assert sent["contents"] == [
        said(
            "user",
            {"text": "Go."},
            {"text": "<system>\nBe brief.\n</system>"},
            {"text": "And?"},
            {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
        ),
        said("model", {"text": "Yes."}, {"text": "Yes."}),
        said("user", {"text": "Go."}),
    ]


def test_results_answer_the_calls_before_them_in_order() -> None:
    """By the server's own ids, which the loop makes unique; without ids, by their positions."""
    calls = [ToolCall("c", "f", "{}"), ToolCall("c", "g", '{"a":1}'), ToolCall("", "h", "bad")]
    turn = AssistantMessage((*calls, ToolCall("", "h", "")), "google")
    results = [ToolResult("k", "c", name, name) for name in "fghh"]

    _, called, answered = asked(GO, turn, *results, GO, wire=OLD)["contents"]

    assert called["parts"] == [
        {"functionCall": {"name": "f", "id": "c", "args": {}}},
        {"functionCall": {"name": "g", "id": "call00001", "args": {"a": 1}}},
        {"functionCall": {"name": "h", "args": {}}},
        {"functionCall": {"name": "h", "args": {}}},
    ]
    responses = [part["functionResponse"] for part in answered["parts"][:-1]]
    assert responses == [
        {"id": "c", "name": "f", "response": {"output": "f"}},
        {"id": "call00001", "name": "g", "response": {"output": "g"}},
        {"name": "h", "response": {"output": "h"}},
        {"name": "h", "response": {"output": "h"}},
    ]
    assert answered["parts"][-1] == {"text": "Go."}
    with pytest.raises(ConfigError, match="after all 0 call"):
        asked(GO, results[0])


@pytest.mark.parametrize(
    "later", [(), (GO,), (AssistantMessage((TextPart("Done."),)),), (SystemMessage("Stop."),)]
)
def test_media_of_results_follow_all_results(later: tuple[Message, ...]) -> None:
    """Models before Gemini 3 take no media in a result, and all results come together."""
    turn = AssistantMessage((ToolCall("a", "f", "{}"), ToolCall("b", "g", "{}")))
    results = (
        ToolResult("k", "a", "f", (TextPart("look"), PICTURE, TextPart("here")), status="error"),
        ToolResult("l", "b", "g", "no disk", status="error"),
    )

    parts = asked(GO, turn, *results, *later)["contents"][2]["parts"]

    assert parts[:4] == [
        {"functionResponse": {"id": "a", "name": "f", "response": {"error": "look\nhere"}}},
        {"functionResponse": {"id": "b", "name": "g", "response": {"error": "no disk"}}},
        {"text": "Attached to the result of tool f:"},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
    ]


def test_media_elsewhere_have_an_address() -> None:
    """A type with a star is no type; the server then looks at the file."""
    parts = (
        MediaPart("image/*", Url("https://example.org/a")),
        MediaPart("video/mp4", FileId("https://a.b/v1beta/files/c"), extra='{"videoMetadata":{}}'),
    )

    (content,) = asked(UserMessage(parts))["contents"]

    assert content["parts"] == [
        {"fileData": {"fileUri": "https://example.org/a"}},
        {
            "fileData": {"fileUri": "https://a.b/v1beta/files/c", "mimeType": "video/mp4"},
            "videoMetadata": {},
        },
    ]


@pytest.mark.parametrize("name", ITEMS)
def test_the_parts_of_a_reply_go_back_as_they_came(name: str) -> None:
    """Signatures, thoughts, and the runs of the server's tools, each at its place."""
    reply = decoded(OLD, recorded(stream(ITEMS[name])))[1]

    sent = asked(GO, reply.message, wire=OLD)["contents"][1:]

    expected = [json.loads(json.dumps(part)) for part in ITEMS[name]]
    for part in expected:
        if "functionCall" in part:
            part["functionCall"].setdefault("args", {})
    if name == "same call ids":
        expected[1]["functionCall"]["id"] = "call00001"
    assert sent == ([said("model", *expected)] if expected else [])


def test_the_first_call_of_a_turn_is_signed_where_the_server_asks_for_it() -> None:
    """A call of another model has no signature; Gemini 3 refuses a turn that begins with it."""
    calls = (ToolCall("a", "f", "{}", '{"thoughtSignature":"x"}'), ToolCall("b", "f", "{}"))
    foreign, own = AssistantMessage(calls, "anthropic"), AssistantMessage(calls, "google")

    def signatures(message: Message, wire: GoogleGemini) -> list[object]:
        (_, content) = asked(GO, message, wire=wire)["contents"]
        return [part.get("thoughtSignature") for part in content["parts"]]

    skip = "skip_thought_signature_validator"
    assert signatures(foreign, WIRE) == [skip, None]
    assert signatures(own, WIRE) == ["x", None]
    assert signatures(foreign, OLD) == [None, None]
    assert signatures(foreign, GoogleGemini("gemma-4-26b")) == [None, None]
    assert signatures(foreign, GoogleGemini("gemini-flash-latest")) == [skip, None]
    assert signatures(foreign, GoogleGemini("mine", signed_calls=False)) == [None, None]
    assert signatures(foreign, GoogleGemini("gemini-2.5-pro", signed_calls=True)) == [skip, None]


def test_a_turn_of_another_wire_says_only_what_every_wire_says() -> None:
    """Its reasoning, opaque parts and extra fields are its own server's."""
    parts = (
        ReasoningPart("hm", "signed"),
        OpaquePart('{"type":"x"}'),
        TextPart("Yes.", '{"id":"x"}'),
        PICTURE,
        ToolCall("a", "functions.f", "{}", '{"id":"x"}'),
    )

    sent = asked(GO, AssistantMessage(parts, "anthropic"), wire=OLD)["contents"]

    assert sent == [
        said("user", {"text": "Go."}),
        said(
            "model",
            {"text": "Yes."},
            {"functionCall": {"name": "functions_f", "id": "a", "args": {}}},
        ),
    ]
