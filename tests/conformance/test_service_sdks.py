"""The SDKs of services that speak chat completions, where `.ci/nightly` installs them.

Each SDK's types take the recorded answers and the requests, and each SDK asks at the same address.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, final

import pytest
from pydantic import TypeAdapter

from graphloop.providers import SERVICES, resolve
from graphloop.providers.http import HttpProvider
from graphloop.values import (
    AssistantMessage,
    Message,
    ModelRequest,
    Settings,
    TextPart,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from tests.conformance.test_services import RECORDED
from tests.conformance.test_wires_over_sockets import KEY_HEADERS
from tests.property.wires import WIRES


@final
@dataclass(frozen=True)
class Sdk:
    """Where an SDK has what this page compares.

    Attributes:
        chunk: the type of an event of a stream, as `module:name`.
        request: the type of a request, as `module:name`.
        address: the module whose text has the server's URL.
    """

    chunk: str
    request: str
    address: str


def generated(package: str, chunk: str = "chat_completion_chunk:ChatCompletionChunk") -> Sdk:
    """Return an SDK of the form that most vendors have made for them."""
    params = "completion_create_params:CompletionCreateParams"
    types = f"{package}.types.chat"
    return Sdk(f"{types}.{chunk}", f"{types}.{params}", f"{package}._client")


SDKS: Mapping[str, Sdk] = {
    "cerebras": generated("cerebras.cloud.sdk", "chat_completion:ChatChunkResponse"),
    "fireworks": generated("fireworks"),
    "groq": generated("groq"),
    "mistral": Sdk(
        "mistralai.client.models:CompletionChunk",
        "mistralai.client.models:ChatCompletionStreamRequest",
        "mistralai.client.sdkconfiguration",
    ),
    "openrouter": Sdk(
        "openrouter.components:ChatStreamChunk",
        "openrouter.components:ChatRequest",
        "openrouter.sdkconfiguration",
    ),
    "together": generated("together"),
}
OWN_PAGES = ("anthropic", "google", "openai", "openai-responses")
"""The services whose SDKs are compared by `test_anthropic_sdk.py` and its neighbours."""

ROOT = Path(__file__).parents[2]
CALL = ToolCall("call_1", "count", '{"shop": "Bob"}')
TOOL = ToolSpec("count", "Counts.", '{"type":"object","properties":{"shop":{"type":"string"}}}')
MESSAGES: tuple[Message, ...] = (
    UserMessage("How many?"),
    AssistantMessage((TextPart("I count."), CALL)),
    ToolResult("c0.0", "call_1", "count", "3"),
)
SETTINGS = Settings(7, 0.5, 0.9, ("end",), 3, parallel_tool_calls=False)


def asked_of(service: str) -> Any:
    """Return the body of a request with everything that a service takes."""
    provider = resolve(f"{service}:m", environ={SERVICES[service].key_variable: "key-1"})
    assert isinstance(provider, HttpProvider)
    request = ModelRequest(MESSAGES, (TOOL,), ToolChoice("required"), SETTINGS)
    return json.loads(b"".join(provider.wire.encoder().encode(request)))


@pytest.fixture(params=sorted(SDKS))
def service(request: pytest.FixtureRequest) -> str:
    """A service whose SDK is installed."""
    name = str(request.param)
    module = SDKS[name].chunk.partition(":")[0]
    pytest.importorskip(module, reason=f"needs the SDK of {name}, which `.ci/nightly` installs")
    return name


def found(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def row_of(name: str) -> str:
    """Return the pattern of a service's row in the table of the page."""
    service = SERVICES[name]
    said = [
        f"`{name}:`",
        service.wire.split(".")[1].replace("_", " "),
        f"`{service.base_url}`",
        f"`{service.key_variable}`{'' if service.needs_key else ', if the server wants one'}",
    ]
    compared = r"never \| (nothing|its pages, DAY)"
    if name in {*SDKS, *OWN_PAGES}:
        compared = r"never \| its SDK, DAY"
    if name == "llamacpp":
        compared = r"yes, DAY \| the server itself"
    row = re.escape(f"| {' | '.join(said)} | ") + compared + r" \|"
    return row.replace("DAY", r"2\d{3}-\d\d-\d\d")


def test_the_page_tells_each_service_and_what_it_was_compared_with() -> None:
    """A user looks up the name, the key and the address, and how sure graphloop is of them.

    No row can say more than the tests do: an SDK is one that they import, and only llama.cpp is
    asked itself.
    """
    page = (ROOT / "docs/services.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if re.match(r"\| `[\w-]+:` \|", line)]
    variables = {service.url_variable for service in SERVICES.values() if service.url_variable}

    assert len(rows) == len(SERVICES)
    for name, row in zip(sorted(SERVICES), rows, strict=True):
        assert re.fullmatch(row_of(name), row)
    assert f": {', '.join(f'`{name}`' for name in sorted(variables))}." in page
    assert f"[{len(SERVICES)} services]" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_each_wire_has_a_page_and_keeps_the_promises_of_all() -> None:
    """A new wire joins the properties and the sockets, or its requests were never tried."""
    wires = {service.model("m").name for service in SERVICES.values()}
    pages = {f"{service.wire.split('.')[1].replace('_', '-')}.md" for service in SERVICES.values()}

    assert wires == {spoken.wire.name for spoken in WIRES.values()} == {*KEY_HEADERS}
    assert {*pages, "index.md"} == {path.name for path in (ROOT / "docs/wires").iterdir()}


def test_a_vendors_sdk_takes_the_recorded_answer(service: str) -> None:
    """Each event has all fields that the vendor says that its events have."""
    chunk = TypeAdapter[Any](found(SDKS[service].chunk))

    for event in RECORDED[service].lines:
        if not isinstance(event, str):
            chunk.validate_python(event)


def test_a_vendors_sdk_takes_a_request(service: str) -> None:
    """Also one with tools, results, and all settings that the service has."""
    TypeAdapter[Any](found(SDKS[service].request)).validate_python(asked_of(service))


def test_a_vendors_sdk_asks_at_the_same_address(service: str) -> None:
    """A service that moves says so in its SDK first."""
    text = inspect.getsource(import_module(SDKS[service].address))

    urls = re.findall(r"https://[\w./-]+", text)
    assert any(SERVICES[service].base_url.startswith(url) for url in urls)
