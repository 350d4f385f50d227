"""OpenTelemetry: spans and metrics of runs, by the semantic conventions for generative AI.

Owns the observer `otel()`, for `watch=[otel()]`, and `spans`, which makes the same spans from a
journal. Needs the extra `otel`. Refuses to record messages unless an environment variable asks.
Start with `span_tree.py`.
"""

from .observer import CAPTURE, OpenTelemetry, captures_content, otel, spans
from .span_tree import SpanTree

__all__ = ["CAPTURE", "OpenTelemetry", "SpanTree", "captures_content", "otel", "spans"]
