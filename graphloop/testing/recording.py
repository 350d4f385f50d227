"""Recording: the replies of a real model, kept as a script, and replayed without a network.

    agent = Agent(recorded("anthropic:claude-opus-4-8", "tests/talks/weather.yaml"))

The first run asks the model and writes the file; later runs read it. Each entry of the file is an
entry of a script with the request that it answers (`asked`), so `graphloop run --script` and
`ScriptedModel.from_file` read the file, too. A request that was not recorded is an error that shows
the difference. The file never holds a key, a header or provider options.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from copy import copy
from os import environ
from pathlib import Path
from typing import Final, Literal, TypeAlias, Unpack, final, get_args

from msgspec import to_builtins
from msgspec.structs import asdict

from ..errors import ConfigError, ProviderError
from ..providers import (
    Access,
    ModelSession,
    Provider,
    Restarted,
    ScriptedModel,
    StreamItem,
    TextDelta,
    accessed,
    check_content,
    check_tools,
    entry_text,
    resolve,
)
from ..values import (
    AssistantMessage,
    ModelRequest,
    ReasoningPart,
    Reply,
    TextPart,
    ToolCall,
    ToolSpec,
)

__all__ = ["RecordedModel", "recorded"]

Mode: TypeAlias = Literal["auto", "record", "append", "replay"]

HEAD: Final = "# Recorded by graphloop: delete this file to record it again.\n"


def recorded(
    model: str | Provider,
    path: str | Path,
    *,
    mode: Mode = "auto",
    **access: Unpack[Access],
) -> Provider:
    """Return a model whose replies are recorded in a file, or replayed from it.

        agent = Agent(recorded("openai:gpt-5", "talk.yaml"), tools=[get_weather])

    A replay needs no API key. Equal requests get their replies in the recorded order; further
    equal requests get the last of these replies. The text of a reply streams again word by word.
    A replayed run has the journal of the live run but for times. Give each model its own file.

    Args:
        model: `"provider:model"`, or a provider.
        path: the YAML file.
        mode: `"record"` asks the model and replaces the file, `"append"` asks it and adds to the
            file, `"replay"` only reads the file, and `"auto"` replays a file that exists, and
            records otherwise.
        access: access to a model given by name, for a recording; see `connect`.

    Raises:
        ConfigError: the mode, the model or the folder of the file is wrong, or a recording would
            replace a file that is none.
        ScriptError: the file cannot be read, or is not a valid script.
    """
    if mode not in get_args(Mode):
        raise ConfigError(f"`mode`: expected auto, record, append or replay, found {mode!r}.")
    file = Path(path)
    if mode == "replay" or (mode == "auto" and file.exists()):
        label = model if isinstance(model, str) else model.label
        return ScriptedModel.from_file(file, label=label)
    if not file.absolute().parent.is_dir():
        raise ConfigError(
            f"a recording: expected a folder at {str(file.parent)!r}, found none. Fix: create it."
        )
    if file.exists() and not file.read_bytes().startswith(HEAD.encode()):
        raise ConfigError(
            f"a recording: expected no file at {str(file)!r}, or an earlier recording, found "
            "another file, which would be lost. Fix: name another file."
        )
    asked = resolve(model, environ=environ, **access)
    return RecordedModel(asked, file, appends=mode == "append" and file.exists())


@final
class RecordedModel:
    """A model that writes each of its replies and failures to a file; make one with `recorded`.

    A reply that the caller cuts short, such as by an abort, is not recorded.

    Args:
        model: the model that answers.
        path: the file.
        appends: whether the file has earlier replies, which stay; else the first reply replaces it.
    """

    def __init__(self, model: Provider, path: Path, *, appends: bool = False) -> None:
        self.label = model.label
        self._model, self._path = model, path
        self._written = [path] if appends else []  # Mutable on purpose: `copy(self)` shares it.

    def accessed(self, **access: object) -> RecordedModel:
        """Return this model with other `timeouts` or `headers`, writing to the same file."""
        changed = copy(self)
        changed._model = accessed(self._model, access)
        return changed

    def check_tool(self, tool: ToolSpec) -> None:
        """Raise a ConfigError if no request to the model can carry `tool`."""
        check_tools(self._model, (tool,))

    def check_content(self, request: ModelRequest) -> None:
        """Raise a ConfigError if the model's wire format cannot carry `request`."""
        check_content(self._model, request)

    def session(self) -> ModelSession:
        """Return a new session for the model calls of one run."""
        return _Session(self, self._model.session())

    async def aclose(self) -> None:
        """Close the connections of the model that answers."""
        await self._model.aclose()

    def write(self, request: ModelRequest, reply: Mapping[str, object]) -> None:
        """Append a reply and its request to the file."""
        text = entry_text(request, reply)
        with self._path.open("a" if self._written else "w", encoding="utf-8") as file:
            file.write(text if self._written else HEAD + text)
        self._written.append(self._path)


@final
class _Session:
    def __init__(self, owner: RecordedModel, session: ModelSession) -> None:
        self._owner, self._session = owner, session

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield the items of the model's stream, and write its reply before the caller reads it."""
        said: list[str] = []
        try:
            async with aclosing(self._session.stream(request)) as items:
                async for item in items:
                    if isinstance(item, TextDelta):
                        said.append(item.text)
                    elif isinstance(item, Restarted):
                        said.clear()
                    elif isinstance(item, Reply):
                        self._owner.write(request, _script_entry(item))
                    yield item
        except ProviderError as error:
            self._owner.write(request, _failure_entry("".join(said), error))
            raise


def _script_entry(reply: Reply) -> Mapping[str, object]:
    """Return a reply as an entry of a script, without what is at its default."""
    message, reason = reply.message, reply.finish_reason.value
    counts = asdict(reply.usage) | asdict(reply.usage.details)
    del counts["details"]
    raw = reply.raw_finish_reason
    fields: dict[str, object] = {
        **_fields_for_people(message),
        "wire": message.wire,
        "extra": message.extra,
        "service": message.service,
        "model": reply.model,
        "raw_finish_reason": "" if raw == reason else raw,
        "metadata": reply.metadata,
    }
    return {
        **{name: value for name, value in fields.items() if value},
        "finish_reason": reason,
        "usage": {name: count for name, count in counts.items() if count},
    }


def _fields_for_people(message: AssistantMessage) -> Mapping[str, object]:
    """Return the parts of a message in the fields for people, if these say all of them."""
    reasoning, text, calls = message.reasoning, message.text, message.calls
    plain = (
        *([ReasoningPart(reasoning)] if reasoning else ()),
        *([TextPart(text)] if text else ()),
        *[ToolCall(call.id, call.name, call.arguments) for call in calls],
    )
    if plain != message.parts:
        return {"parts": to_builtins(message.parts)}
    named = [{"name": one.name, "arguments": one.arguments, "id": one.id} for one in calls]
    return {"reasoning": reasoning, "text": text, "calls": named}


def _failure_entry(said: str, error: ProviderError) -> Mapping[str, object]:
    details: dict[str, object] = {"type": type(error).__name__, "message": str(error)}
    if error.status:
        details["status"] = error.status
    if error.retry_after_s is not None:
        details["retry_after_s"] = error.retry_after_s
    return {**({"text": said} if said else {}), "error": details}
