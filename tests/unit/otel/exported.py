"""An in-memory exporter for spans and metrics, and the tree of the spans in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from graphloop.otel import OpenTelemetry, otel


class Exported:
    """Collects the spans and metrics of one observer."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._reader = InMemoryMetricReader()
        self.meters = MeterProvider([self._reader])

    def observer(self, parked: dict[str, str] | None = None) -> OpenTelemetry:
        """Return an observer that exports to here."""
        return otel(tracer_provider=self.tracers, meter_provider=self.meters, parked=parked)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """All ended spans."""
        return self._exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        """Return the ended spans with a name, in order of their ends."""
        return [one for one in self.spans if one.name == name]

    def parent(self, span: ReadableSpan) -> ReadableSpan:
        """Return the parent of a span."""
        assert span.parent is not None, f"{span.name} has no parent"
        above = span.parent.span_id
        return next(one for one in self.spans if one.context and one.context.span_id == above)

    def tree(self) -> list[Any]:
        """Return all spans as comparable values, without ids: links name their targets."""
        ids = {one.context.span_id: one for one in self.spans if one.context is not None}

        def node(span: ReadableSpan) -> list[Any]:
            below = [
                one
                for one in self.spans
                if one.parent and span.context and (one.parent.span_id == span.context.span_id)
            ]
            return [
                span.name,
                span.kind,
                span.start_time,
                span.end_time,
                sorted((span.attributes or {}).items()),
                span.status.status_code,
                [_place(ids[link.context.span_id]) for link in span.links],
                sorted(map(node, below), key=repr),
            ]

        roots = [one for one in self.spans if one.parent is None]
        return sorted(map(node, roots), key=repr)

    def metrics(self) -> dict[str, list[Any]]:
        """Return the data points of each metric."""
        return {metric.name: [*metric.data.data_points] for metric in self._metrics()}

    def _metrics(self) -> Iterator[Any]:
        data = cast("Any", self._reader.get_metrics_data())  # Its types are partly unknown.
        for resource in () if data is None else data.resource_metrics:
            for scope in resource.scope_metrics:
                yield from scope.metrics


def _place(span: ReadableSpan) -> tuple[str, int | None]:
    return span.name, span.start_time
