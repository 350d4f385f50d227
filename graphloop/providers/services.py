"""Services: the table of model services by name, each with its wire format, address and key.

A new service is a row here, one in `docs/services.md`, and a sample answer in
`tests/conformance/test_services.py`. A row's facts come from the service's own pages. A wire's
module is imported only for a model that needs it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, cast, final

from msgspec import Struct, field

from ..errors import ConfigError
from .base import Wire

__all__ = [
    "ANTHROPIC",
    "OPENAI_CHAT",
    "SERVICES",
    "Service",
    "has_prices",
    "loaded",
    "service_of",
    "usual_model",
]

ANTHROPIC: Final = ".anthropic.wire:AnthropicMessages"
GOOGLE: Final = ".google.wire:GoogleGemini"
OPENAI_CHAT: Final = ".openai_chat.wire:OpenAIChat"
OPENAI_RESPONSES: Final = ".openai_responses.wire:OpenAIResponses"

_places = re.compile(r"\{(\w+)\}").findall


@final
class Service(Struct, frozen=True):
    """A model service that a label such as `"openai:NAME"` selects, and its settings.

    Args:
        wire: the class of the service's wire format, as `module:class`.
        base_url: the default URL of the server. `{NAME}` is the value of an environment variable.
        key_variable: the environment variable that holds the API key.
        url_variable: the environment variable that overrides `base_url`.
        quirks: keyword arguments for the wire class, such as `finish_words` for finish reasons
            that only this server sends.
        keeps_output: whether the server enforces the output schema of a request.
        usual_model: the default model of the command line; empty for none.
        output_limits: `module:function` that describes the part of an output schema that the server
            refuses; empty for a server that accepts every schema.
        needs_key: whether the server at `base_url` refuses requests without a key.
        prices: the id of the service in genai-prices; empty if a model's name tells its price, and
            None for a server without prices, such as one on this machine.
    """

    wire: str
    base_url: str
    key_variable: str
    url_variable: str = ""
    quirks: Mapping[str, object] = field(default_factory=dict[str, object])
    keeps_output: bool = True
    usual_model: str = ""
    output_limits: str = ""
    needs_key: bool = True
    prices: str | None = ""

    def model(self, name: str, *, stream: bool = True) -> Wire:
        """Return the service's wire format for the model `name`.

        Raises:
            ConfigError: the wire format always streams, and `stream` is False.
        """
        wire = loaded(self.wire)
        if stream:
            return cast("Wire", wire(name, **self.quirks))
        if "stream" not in getattr(wire, "__dataclass_fields__", ()):
            raise ConfigError(
                f"stream: expected True for {name!r}, whose wire always streams, found False. "
                "Fix: leave it out."
            )
        return cast("Wire", wire(name, stream=False, **self.quirks))

    def url(self, environ: Mapping[str, str]) -> str:
        """Return the service's own URL, with the values of its environment variables.

        Raises:
            ConfigError: a variable is not set; the message names it.
        """
        url = self.base_url
        for name in _places(url):
            value = environ.get(name)
            if not value:
                raise ConfigError(
                    f"base_url: expected the environment variable {name} for {self.base_url!r}, "
                    f"found none. Fix: set it, or pass base_url=…."
                )
            url = url.replace(f"{{{name}}}", value.rstrip("/"))
        return url

    def refused_output(self, schema: str, *, place: str) -> str:
        """Describe the part of `schema` that the server refuses; empty if it accepts the schema.

        Raises:
            ConfigError: `schema` is not a JSON object; the message names `place`.
        """
        if not self.output_limits:
            return ""
        return cast("str", loaded(self.output_limits)(schema, place=place))


def _compatible_service(
    base_url: str, key_variable: str, prices: str, *, keeps_output: bool = False, **quirks: object
) -> Service:
    """Return a hosted service that speaks chat completions."""
    return Service(
        OPENAI_CHAT,
        base_url,
        key_variable,
        quirks=quirks,
        keeps_output=keeps_output,
        prices=prices,
    )


def _local_service(name: str, port: int) -> Service:
    """Return a server on this machine that speaks chat completions and needs no key."""
    return Service(
        OPENAI_CHAT,
        f"http://localhost:{port}/v1",
        f"{name}_API_KEY",
        f"{name}_BASE_URL",
        keeps_output=False,
        needs_key=False,
        prices=None,
    )


SERVICES: Final[dict[str, Service]] = {
    "anthropic": Service(
        wire=ANTHROPIC,
        base_url="https://api.anthropic.com",
        key_variable="ANTHROPIC_API_KEY",
        url_variable="ANTHROPIC_BASE_URL",
        usual_model="claude-opus-4-8",
        output_limits=".anthropic.output_schema:refused_part",
    ),
    "openai": Service(
        wire=OPENAI_CHAT,
        base_url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        url_variable="OPENAI_BASE_URL",
        usual_model="gpt-5",
    ),
    "openai-responses": Service(
        wire=OPENAI_RESPONSES,
        base_url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        url_variable="OPENAI_BASE_URL",
    ),
    "google": Service(
        wire=GOOGLE,
        base_url="https://generativelanguage.googleapis.com",
        key_variable="GEMINI_API_KEY",
        url_variable="GOOGLE_GEMINI_BASE_URL",
        keeps_output=False,  # Models before Gemini 3 refuse an output schema beside tools.
        usual_model="gemini-flash-latest",
    ),
    # A deployment's name does not tell its model; all models accept this field.
    "azure": _compatible_service(
        "{AZURE_OPENAI_ENDPOINT}/openai/v1",
        "AZURE_OPENAI_API_KEY",
        "azure",
        keeps_output=True,
        max_tokens_field="max_completion_tokens",
    ),
    # AWS recommends this endpoint for new work, on both wires; OpenAI's own tools are not on it.
    "bedrock": Service(
        wire=OPENAI_RESPONSES,
        base_url="https://bedrock-runtime.{AWS_REGION}.amazonaws.com/openai/v1",
        key_variable="AWS_BEARER_TOKEN_BEDROCK",
        prices="aws",
    ),
    "bedrock-anthropic": Service(
        wire=ANTHROPIC,
        base_url="https://bedrock-runtime.{AWS_REGION}.amazonaws.com/anthropic",
        key_variable="AWS_BEARER_TOKEN_BEDROCK",
        quirks={"bearer": True},
        output_limits=".anthropic.output_schema:refused_part",
        prices="aws",
    ),
    "cerebras": _compatible_service(
        "https://api.cerebras.ai/v1",
        "CEREBRAS_API_KEY",
        "cerebras",
        max_tokens_field="max_completion_tokens",
        unknown_fields=False,
    ),
    "deepseek": _compatible_service("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek"),
    "fireworks": _compatible_service(
        "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY", "fireworks", keeps_output=True
    ),
    "github": _compatible_service("https://models.github.ai/inference", "GITHUB_TOKEN", "azure"),
    "groq": _compatible_service(
        "https://api.groq.com/openai/v1",
        "GROQ_API_KEY",
        "groq",
        max_tokens_field="max_completion_tokens",
        unknown_fields=False,
    ),
    # The API answers 422 to fields that it does not know, and 400 to call ids of other servers.
    "mistral": _compatible_service(
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        "mistral",
        keeps_output=True,
        max_tokens_field="max_tokens",
        seed_field="random_seed",
        asks_usage=False,
        call_id="[a-zA-Z0-9]{9}",
        reasoning="never",
        unknown_fields=False,
    ),
    "openrouter": _compatible_service(
        "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "openrouter"
    ),
    "together": _compatible_service("https://api.together.ai/v1", "TOGETHER_API_KEY", "together"),
    "xai": _compatible_service("https://api.x.ai/v1", "XAI_API_KEY", "x-ai", keeps_output=True),
    # Grok's reasoning and new models come here first; xAI calls chat completions deprecated.
    "xai-responses": Service(
        wire=OPENAI_RESPONSES,
        base_url="https://api.x.ai/v1",
        key_variable="XAI_API_KEY",
        prices="x-ai",
    ),
    "llamacpp": _local_service("LLAMACPP", 8080),
    "lmstudio": _local_service("LMSTUDIO", 1234),
    "ollama": _local_service("OLLAMA", 11434),
    "vllm": _local_service("VLLM", 8000),
}
"""The services by name, which is the part of the label `"service:model"` before the colon."""


def service_of(label: str) -> Service | None:
    """Return the service of a model label such as `"openai:NAME"`, or None if it is unknown."""
    return SERVICES.get(label.partition(":")[0])


def has_prices(label: str) -> bool:
    """Whether the service of a model label takes money; False if it is unknown."""
    service = service_of(label)
    return service is not None and service.prices is not None


def usual_model(environ: Mapping[str, str], *, own_server: bool = False) -> str:
    """Return the label of a default model for which `environ` has an API key or a URL.

    The label is empty if there is none. With `own_server`, the model is the default model of the
    most common wire format, whatever `environ` holds.
    """
    for name, service in SERVICES.items():
        named = environ.get(service.key_variable) or environ.get(service.url_variable)
        if service.usual_model and (service.wire == OPENAI_CHAT if own_server else named):
            return f"{name}:{service.usual_model}"
    return ""


def loaded(place: str) -> Callable[..., Any]:
    """Import the class or function at `module:name`, relative to this package."""
    module, _, name = place.partition(":")
    return cast("Callable[..., Any]", getattr(import_module(module, __package__), name))
