"""Export: the spans of a stored run, printed as a tree or sent to a trace backend.

Needs OpenTelemetry's SDK, which programs that only trace live runs choose for themselves.
The environment names the exporter, by the standard variables:
https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from os import environ
from random import Random
from typing import Any, Final, final

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from ..errors import ConfigError
from ..events import Event, Started
from ..graph import NodeGraph
from .observer import spans

__all__ = ["StoredSpans"]

EXPORTERS: Final = "opentelemetry_traces_exporter"
"""The entry points by which packages offer their exporters."""
PROTOCOLS: Final = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
"""The exporter for each protocol of `OTEL_EXPORTER_OTLP_PROTOCOL`."""
BATCH_MAX: Final = 512
"""The most spans of one request, as in the SDK's own batches; servers limit the size of one."""
INPUT: Final = "gen_ai.usage.input_tokens"
OUTPUT: Final = "gen_ai.usage.output_tokens"
FACTS: Final = ("graphloop.end_reason", "error.type")
"""The attributes that a tree shows, beside the tokens."""


@final
class StoredSpans:
    """The spans of a stored run and of its child runs, by their starts.

    The ids of the spans follow from the run's id, so a backend that gets a run twice shows it once.

    Attributes:
        spans: the spans, with the times of the run's events.

    Raises:
        ConfigError: the environment turns OpenTelemetry off.
        StoreError: a journal does not begin with `Started`, or belongs to another graph.
        IllegalEvent: an event does not fit its graph.
    """

    def __init__(
        self,
        graph: NodeGraph[Any],
        events: Sequence[Event],
        journals: Mapping[str, Sequence[Event]],
    ) -> None:
        kept = InMemorySpanExporter()
        # The environment's sampler chooses among live runs; the caller has chosen this one.
        provider = TracerProvider(ALWAYS_ON, shutdown_on_exit=False, id_generator=_Ids(events))
        provider.add_span_processor(SimpleSpanProcessor(kept))
        spans(graph, events, journals, tracer_provider=provider)
        if not kept.get_finished_spans():
            raise ConfigError(
                "OTEL_SDK_DISABLED: expected OpenTelemetry to be on, found it off. Fix: unset it."
            )
        self.spans: Sequence[ReadableSpan] = sorted(kept.get_finished_spans(), key=_start_time)

    def lines(self) -> Iterator[str]:
        """Yield a line for each span: its duration, its place in the tree, and facts about it."""
        below: dict[int | None, list[ReadableSpan]] = {}
        for span in self.spans:
            below.setdefault(span.parent.span_id if span.parent else None, []).append(span)
        width = max(len(_duration(span)) for span in self.spans)

        def branch(span: ReadableSpan, before: str, after: str) -> Iterator[str]:
            facts = " · ".join([f"{before}{span.name}", *_fact_lines(span)])
            yield f"{_duration(span):>{width}}  {facts}"
            inner = below.get(span.context.span_id, []) if span.context else []
            for number, one in enumerate(inner, 1):
                last = number == len(inner)
                yield from branch(
                    one,
                    f"{after}{'└── ' if last else '├── '}",
                    f"{after}{'    ' if last else '│   '}",
                )

        for root in below[None]:
            yield from branch(root, "", "")

    def send(self) -> Sequence[str]:
        """Send the spans to each exporter that `OTEL_TRACES_EXPORTER` names, and return the names.

        Raises:
            ConfigError: no such exporter is installed.
            ConnectionError: an exporter could not deliver the spans; its log says why.
        """
        names = [*_exporter_names()]
        exporters = [_make_exporter(name) for name in names]
        for name, exporter in zip(names, exporters, strict=True):
            try:
                for first in range(0, len(self.spans), BATCH_MAX):
                    batch = self.spans[first : first + BATCH_MAX]
                    if exporter.export(batch) is not SpanExportResult.SUCCESS:
                        raise ConnectionError(
                            f"the exporter {name!r} could not deliver {len(self.spans)} spans. "
                            "Fix: name the endpoint in OTEL_EXPORTER_OTLP_ENDPOINT, and try again."
                        )
            finally:
                exporter.shutdown()
        return names


@final
class _Ids(IdGenerator):
    """Makes the same ids for the same run, in the order in which its spans start."""

    def __init__(self, events: Sequence[Event]) -> None:
        first = events[0] if events else None
        seed = f"{first.run_id} {first.at}" if isinstance(first, Started) else ""
        self._random = Random(seed)  # noqa: S311 - ids are no secrets

    def generate_trace_id(self) -> int:
        return self._random.getrandbits(128) or 1

    def generate_span_id(self) -> int:
        return self._random.getrandbits(64) or 1


def _start_time(span: ReadableSpan) -> int:
    return span.start_time or 0


def _duration(span: ReadableSpan) -> str:
    return f"{((span.end_time or 0) - _start_time(span)) / 1e9:.2f} s"


def _fact_lines(span: ReadableSpan) -> Iterator[str]:
    about = span.attributes or {}
    if span.links:
        yield "resumed"
    yield from [str(about[name]) for name in FACTS if name in about]
    if INPUT in about:
        yield f"{about[INPUT]!r} tokens in, {about[OUTPUT]!r} out"


def _exporter_names() -> Iterator[str]:
    """Yield the entry points that the environment's exporters have."""
    for name in (environ.get("OTEL_TRACES_EXPORTER") or "otlp").split(","):
        if name.strip() != "otlp":
            yield name.strip()
            continue
        protocol = (
            environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
            or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
            or "http/protobuf"
        )
        yield PROTOCOLS.get(protocol, protocol)


def _make_exporter(name: str) -> SpanExporter:
    """Return an exporter, which reads the rest of the environment's variables itself."""
    for found in entry_points(group=EXPORTERS, name=name):
        exporter: SpanExporter = found.load()()
        return exporter
    known = ", ".join(sorted(entry_points(group=EXPORTERS).names))
    package = f"opentelemetry-exporter-{name.replace('_', '-')}"
    raise ConfigError(
        f"OTEL_TRACES_EXPORTER: expected an installed exporter, found {name!r}; installed are: "
        f"{known}. Fix: pip install {package}, or print the spans with --print."
    )
