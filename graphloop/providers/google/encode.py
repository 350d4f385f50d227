"""Encode requests in the Gemini wire format: the settings and tools, then the contents.

The contents come last, and each part is written once: each request begins with the bytes of the
request before it. Neighbours with one role share a content; the results of a turn come first in
theirs, in the order of the calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, assert_never, final

from ...errors import ConfigError
from ...values import (
    AssistantMessage,
    Message,
    ModelRequest,
    OutputSpec,
    Settings,
    SystemMessage,
    ToolChoice,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from ..encoder import CallIds, EncodedHistory, PrefixEncoder
from ..options import options_of
from ..tool_forms import ToolForms, run_by_caller
from ..wire_json import JsonObject, is_object, json_text, object_in, object_text
from .contents import GOOGLE_WIRE, model_parts, result_parts, system_part, user_parts

__all__ = ["TOOLS", "google_encoder"]


def _is_own(tool: ToolSpec, definition: JsonObject) -> bool:  # noqa: ARG001 - it has no name
    return len(definition) == 1 and all(map(is_object, definition.values()))


_RUN_BY_CALLER: Final = frozenset(
    {"computerUse", "computer_use", "functionDeclarations", "function_declarations"}
)

TOOLS: Final = ToolForms(
    GOOGLE_WIRE,
    "Gemini",
    "a definition with one field, such as {'googleSearch': {}}",
    _is_own,
    lambda definition: run_by_caller(definition) if definition.keys() & _RUN_BY_CALLER else "",
    {"responseJsonSchema": dict},
)
"""The tools of Google's server, which have one field and no name."""

_OWNED: Final[Mapping[str, str]] = {
    "contents": "Give the run its messages.",
    "systemInstruction": "Begin the messages with a SystemMessage.",
}
_OWNED_CONFIG: Final[Mapping[str, str]] = {
    "candidateCount": "A run reads one answer.",
    "maxOutputTokens": "Set Settings.max_tokens.",
    "seed": "Set Settings.seed.",
    "stopSequences": "Set Settings.stop_sequences.",
    "temperature": "Set Settings.temperature.",
    "topP": "Set Settings.top_p.",
}
_OWNED_OUTPUT: Final[Mapping[str, str]] = dict.fromkeys(
    ("responseFormat", "responseJsonSchema", "responseMimeType", "responseSchema"),
    "The request's own output is written there.",
)
_OWNED_CHOICE: Final[Mapping[str, str]] = dict.fromkeys(
    ("allowedFunctionNames", "mode"), "Set ToolChoice."
)

_MODES: Final[Mapping[str, str]] = {
    "auto": "",
    "required": "ANY",
    "none": "NONE",
    "tool": "ANY",
}


def google_encoder(*, signed_calls: bool) -> PrefixEncoder:
    """Return a new encoder for the requests of one run.

    Args:
        signed_calls: whether the server refuses a turn whose first call has no signature.
    """
    return PrefixEncoder(partial(_GoogleHistory, signed_calls=signed_calls), _head)


@final
class _GoogleHistory(EncodedHistory):
    def __init__(self, *, signed_calls: bool) -> None:
        super().__init__()
        # A call may come without an id; its result is then found by its position.
        self._call_ids = CallIds(lambda _: True)
        self._signed_calls = signed_calls
        self._role = ""
        # The media of the turn's results, which follow all its results.
        self._apart: list[str] = []

    def add(self, position: int, message: Message) -> None:
        match message:
            case SystemMessage():
                if position == len(self.instructions):  # Only system messages precede this one.
                    self.instructions.append(message.content)
                else:
                    self._append_parts("user", [*self._apart_parts(), *system_part(message)])
            case UserMessage():
                self._append_parts("user", [*self._apart_parts(), *user_parts(message)])
            case ToolResult():
                call_id = self._call_ids.of_result(message, position)
                part, apart = result_parts(message, call_id)
                self._apart += apart
                self._append_parts("user", [part])
            case AssistantMessage():
                self._append_parts("user", self._apart_parts())
                call_ids = self._call_ids.of_turn(message)
                signed = self._signed_calls
                self._append_parts("model", model_parts(message, call_ids, signed_calls=signed))
            case _:
                assert_never(message)

    def end(self, request: ModelRequest) -> bytes:
        del request
        apart = "".join(f",{part}" for part in self._apart)
        return f"{apart}{']}' if self.parts else ''}]}}".encode()

    def _append_parts(self, role: str, parts: Sequence[str]) -> None:
        """Append parts to the open content, or to a new one if the role changes."""
        if not parts:
            return
        joined = ",".join(parts)
        if role == self._role:
            self.push(joined.encode())
        else:
            self.push(f'{{"role":"{role}","parts":[{joined}'.encode(), joint=b"]},")
        self._role = role

    def _apart_parts(self) -> list[str]:
        apart, self._apart = self._apart, []
        return apart


def _head(request: ModelRequest, instructions: Sequence[str]) -> bytes:
    """Return the request body up to and including the bracket that opens `contents`."""
    settings = request.settings
    options, server_tools = options_of(settings, _OWNED)
    _check_names(options, {}, "Settings.options")
    config = _generation_config(settings, request.output, options)
    functions = [_function_text(tool) for tool in request.tools if tool.kind != "provider"]
    hosted = [TOOLS.definition(tool) for tool in request.tools if tool.kind == "provider"]
    hosted += TOOLS.of_options(server_tools)
    tool_config = _tool_config(request, options, mixed=bool(functions and hosted))
    texts = [{"text": text} for text in instructions if text]
    fields: JsonObject = {
        **({"systemInstruction": {"parts": texts}} if texts else {}),
        **({"generationConfig": config} if config else {}),
        **options,
        **({"toolConfig": tool_config} if tool_config else {}),
    }
    tools = [f'{{"functionDeclarations":[{",".join(functions)}]}}'] if functions else []
    members = [f'"tools":[{",".join([*tools, *hosted])}]'] if functions or hosted else []
    members.append('"contents":[')
    head = json_text(fields)[1:-1]
    return f"{{{','.join([head, *members] if head else members)}".encode()


def _check_names(fields: object, owned: Mapping[str, str], place: str) -> JsonObject:
    """Return option fields, after a check of their names.

    Raises:
        ConfigError: graphloop writes a field itself, or a name is not in camel case. The API takes
            both spellings, so that another spelling could write a field twice.
    """
    if not is_object(fields):
        raise ConfigError(f"{place}: expected an object, found {fields!r:.80}.")
    for name in fields:
        if "_" in name:
            raise ConfigError(
                f"{place}: expected names in camel case, as Gemini's REST reference has them, "
                f"found {name!r}. Fix: write it so."
            )
        if name in owned:
            raise ConfigError(
                f"{place}: expected only fields that graphloop does not write itself, found "
                f"{name!r}. Leave it out. {owned[name]}"
            )
    return fields


def _generation_config(
    settings: Settings, output: OutputSpec | None, options: JsonObject
) -> JsonObject:
    """Take `generationConfig` out of the options; return it with the request's own settings."""
    owned = _OWNED_CONFIG if output is None else {**_OWNED_CONFIG, **_OWNED_OUTPUT}
    given = options.pop("generationConfig", {})
    given = _check_names(given, owned, "Settings.options, at 'generationConfig'")
    asked: JsonObject = {
        "maxOutputTokens": settings.max_tokens,
        "temperature": settings.temperature,
        "topP": settings.top_p,
        "seed": settings.seed,
        "stopSequences": [*settings.stop_sequences] or None,
    }
    if output is not None:
        schema = object_in(output.schema, place=f"output {output.name!r}: schema")
        about = {"description": output.description} if output.description else {}
        asked["responseMimeType"] = "application/json"
        asked["responseJsonSchema"] = {**about, **schema}
    return {name: value for name, value in asked.items() if value is not None} | given


def _function_text(tool: ToolSpec) -> str:
    parameters = object_text(tool.parameters, place=f"tool {tool.name!r}: parameters")
    about = {"name": tool.name, "description": tool.description, **TOOLS.options(tool)}
    return f'{json_text(about)[:-1]},"parametersJsonSchema":{parameters}}}'


def _tool_config(request: ModelRequest, options: JsonObject, *, mixed: bool) -> JsonObject:
    """Take `toolConfig` out of the options; return it with the request's choice of tools.

    Args:
        request: the request.
        options: the option fields.
        mixed: whether functions and the server's own tools are offered together.
    """
    place = "Settings.options, at 'toolConfig'"
    config = {**_check_names(options.pop("toolConfig", {}), {}, place)}
    calling = {**_check_names(config.pop("functionCallingConfig", {}), _OWNED_CHOICE, place)}
    choice = request.tool_choice if request.tools else ToolChoice()
    mode = _MODES[choice.mode]
    if mixed:
        # The server refuses both kinds of tools together, unless its own calls may be told.
        config.setdefault("includeServerSideToolInvocations", True)
        mode = mode or "VALIDATED"
    if mode:
        calling["mode"] = mode
    if choice.mode == "tool":
        calling["allowedFunctionNames"] = [_function_name(choice.name, request.tools)]
    return {**config, **({"functionCallingConfig": calling} if calling else {})}


def _function_name(name: str, tools: Sequence[ToolSpec]) -> str:
    if any(tool.name == name and tool.kind == "provider" for tool in tools):
        raise ConfigError(
            f"tool_choice: expected a tool that runs here, found {name!r}, which Google's server "
            "runs; the Gemini wire cannot force it. Fix: choose 'auto'."
        )
    return name
