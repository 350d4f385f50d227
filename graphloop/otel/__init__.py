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

_found = front_door(
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
)


def __getattr__(name: str) -> object:
    """Return a public name, or say which package is missing.

    Raises:
        ModuleNotFoundError: OpenTelemetry is not installed.
    """
    try:
        return _found(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"graphloop.otel.{name} needs {error.name}, which is not installed. Fix: pip install "
            "'graphloop[otel]' opentelemetry-sdk opentelemetry-exporter-otlp-proto-http",
            name=error.name,
        ) from error
