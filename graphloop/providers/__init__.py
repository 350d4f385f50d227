"""Clients for model APIs: wire formats, HTTP transport, retries, time limits and prices.

A wire format (wire) is an encoder for requests and a decoder for streamed replies. A stream that
ends early raises an error and never counts as a reply.
Start with `base.py`; `services.py` lists the services, and `registry.py` resolves a name.
`http.py` makes the attempts of a model call; `exchange.py` is one attempt.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door

if TYPE_CHECKING:
    from .anthropic.blocks import ANTHROPIC_WIRE
    from .anthropic.server_tools import (
        anthropic_code_execution,
        anthropic_web_fetch,
        anthropic_web_search,
    )
    from .asked import entry_text
    from .base import (
        DELTAS,
        LIVE,
        ApiKey,
        Delta,
        Live,
        MediaDelta,
        ModelSession,
        Postponed,
        Provider,
        ProviderToolDelta,
        ReasoningDelta,
        Restarted,
        StreamItem,
        TextDelta,
        ToolCallDelta,
        UsageSoFar,
        Waiting,
        is_delta,
        is_live,
    )
    from .google.server_tools import (
        google_code_execution,
        google_file_search,
        google_maps,
        google_search,
        google_url_context,
    )
    from .live_requests import allow_requests, check_request, refuse_requests
    from .openai_chat.messages import CHAT_REASONING, CHAT_WIRE
    from .openai_responses.decode import message_of_items
    from .openai_responses.items import RESPONSES_WIRE
    from .openai_responses.server_tools import (
        openai_code_interpreter,
        openai_file_search,
        openai_image_generation,
        openai_web_search,
    )
    from .pace import Limits
    from .prices import price, price_with, published_price, published_windows
    from .registry import (
        Access,
        accessed,
        check_content,
        check_settings,
        check_tools,
        connect,
        keys_deferred,
        lacking_keys,
        resolve,
        why_unfit,
    )
    from .retries import Retries
    from .script import ScriptedModel
    from .services import SERVICES, Service, has_prices, service_of, usual_model
    from .timeouts import Timeouts
    from .wire_json import is_list, is_object, json_text

__all__ = [
    "ANTHROPIC_WIRE",
    "CHAT_REASONING",
    "CHAT_WIRE",
    "DELTAS",
    "LIVE",
    "RESPONSES_WIRE",
    "SERVICES",
    "Access",
    "ApiKey",
    "Delta",
    "Limits",
    "Live",
    "MediaDelta",
    "ModelSession",
    "Postponed",
    "Provider",
    "ProviderToolDelta",
    "ReasoningDelta",
    "Restarted",
    "Retries",
    "ScriptedModel",
    "Service",
    "StreamItem",
    "TextDelta",
    "Timeouts",
    "ToolCallDelta",
    "UsageSoFar",
    "Waiting",
    "accessed",
    "allow_requests",
    "anthropic_code_execution",
    "anthropic_web_fetch",
    "anthropic_web_search",
    "check_content",
    "check_request",
    "check_settings",
    "check_tools",
    "connect",
    "entry_text",
    "google_code_execution",
    "google_file_search",
    "google_maps",
    "google_search",
    "google_url_context",
    "has_prices",
    "is_delta",
    "is_list",
    "is_live",
    "is_object",
    "json_text",
    "keys_deferred",
    "lacking_keys",
    "message_of_items",
    "openai_code_interpreter",
    "openai_file_search",
    "openai_image_generation",
    "openai_web_search",
    "price",
    "price_with",
    "published_price",
    "published_windows",
    "refuse_requests",
    "resolve",
    "service_of",
    "usual_model",
    "why_unfit",
]

__getattr__ = front_door(
    __name__,
    {
        ".anthropic.blocks": ("ANTHROPIC_WIRE",),
        ".anthropic.server_tools": (
            "anthropic_code_execution",
            "anthropic_web_fetch",
            "anthropic_web_search",
        ),
        ".asked": ("entry_text",),
        ".base": (
            "DELTAS",
            "LIVE",
            "ApiKey",
            "Delta",
            "Live",
            "MediaDelta",
            "ModelSession",
            "Provider",
            "ProviderToolDelta",
            "ReasoningDelta",
            "Restarted",
            "StreamItem",
            "TextDelta",
            "ToolCallDelta",
            "Postponed",
            "UsageSoFar",
            "Waiting",
            "is_delta",
            "is_live",
        ),
        ".google.server_tools": (
            "google_code_execution",
            "google_file_search",
            "google_maps",
            "google_search",
            "google_url_context",
        ),
        ".live_requests": (
            "allow_requests",
            "check_request",
            "refuse_requests",
        ),
        ".openai_chat.messages": (
            "CHAT_REASONING",
            "CHAT_WIRE",
        ),
        ".openai_responses.decode": ("message_of_items",),
        ".openai_responses.items": ("RESPONSES_WIRE",),
        ".openai_responses.server_tools": (
            "openai_code_interpreter",
            "openai_file_search",
            "openai_image_generation",
            "openai_web_search",
        ),
        ".pace": ("Limits",),
        ".prices": (
            "price",
            "price_with",
            "published_price",
            "published_windows",
        ),
        ".registry": (
            "Access",
            "accessed",
            "check_content",
            "check_settings",
            "check_tools",
            "connect",
            "keys_deferred",
            "lacking_keys",
            "resolve",
            "why_unfit",
        ),
        ".retries": ("Retries",),
        ".script": ("ScriptedModel",),
        ".services": (
            "SERVICES",
            "Service",
            "has_prices",
            "service_of",
            "usual_model",
        ),
        ".timeouts": ("Timeouts",),
        ".wire_json": (
            "is_list",
            "is_object",
            "json_text",
        ),
    },
)
