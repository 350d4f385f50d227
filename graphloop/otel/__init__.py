"""OpenTelemetry: spans and metrics of runs, by the semantic conventions for generative AI.

Owns the observer `otel()`, for `watch=[otel()]`, and `spans`, which makes the same spans from a
journal; `StoredSpans` prints or sends them. Needs the extra `otel`; `StoredSpans` needs the SDK,
too. Refuses to record messages unless an environment variable asks. Start with `span_tree.py`.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door

if TYPE_CHECKING:
    from .export import StoredSpans
    from .observer import CAPTURE, OpenTelemetry, captures_content, otel, spans
    from .span_tree import SpanTree

__all__ = [
    "CAPTURE",
    "OpenTelemetry",
    "SpanTree",
    "StoredSpans",
    "captures_content",
    "otel",
    "spans",
]

__getattr__ = front_door(
    __name__,
    {
        ".export": ("StoredSpans",),
        ".observer": (
            "CAPTURE",
            "OpenTelemetry",
            "captures_content",
            "otel",
            "spans",
        ),
        ".span_tree": ("SpanTree",),
    },
    needs=dict.fromkeys(
        (".export", ".observer", ".span_tree"),
        "'graphloop[otel]' opentelemetry-sdk opentelemetry-exporter-otlp-proto-http",
    ),
)
