"""otel: the observer that traces live runs, its metrics, and the spans of a finished journal."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from os import environ
from time import time
from types import MappingProxyType
from typing import Any, Final, final

from opentelemetry import context as otel_context
from opentelemetry import metrics, trace

from ..effects import CallModel, Effect, StartRun
from ..events import Event, Resumed
from ..graph import NodeGraph
from ..replay import replay_steps
from ..run import Run
from ..step import Step
from ..stores import typed
from ..values import Reply
from ..views import child_graphs
from .attributes import Attributes
from .span_tree import SpanTree

__all__ = ["CAPTURE", "OpenTelemetry", "captures_content", "otel", "spans"]

CAPTURE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable that asks for messages, arguments and results in spans."""

YES: Final = frozenset({"1", "true", "span_only", "span_and_event"})

PARKED_MAX: Final = 10_000
"""The number of resting runs whose spans an observer remembers, unless it gets a mapping."""

SCOPE: Final = "graphloop"

ABOUT_CHAT: Final = frozenset(
    {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "error.type"}
)
"""The span attributes that metrics have, too; others would make a series for each run."""

_NO_JOURNALS: Final[Mapping[str, Sequence[Event]]] = MappingProxyType({})


def captures_content() -> bool:
    """Whether the environment asks for messages in spans; the default is no."""
    return environ.get(CAPTURE, "").strip().lower() in YES


def _metric_attributes(attributes: Attributes) -> Attributes:
    return {name: value for name, value in attributes.items() if name in ABOUT_CHAT}


@final
class _Latest(OrderedDict[str, str]):
    """A dict that forgets its oldest entries beyond `PARKED_MAX`."""

    def __setitem__(self, key: str, value: str, /) -> None:
        super().__setitem__(key, value)
        while len(self) > PARKED_MAX:
            self.popitem(last=False)


@final
class OpenTelemetry:
    """An observer that makes a span of each run, model call, tool call and question.

    Many agents and runs can share an observer. `otel` describes the arguments.
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        parked: MutableMapping[str, str] | None = None,
    ) -> None:
        meter = metrics.get_meter(SCOPE, meter_provider=meter_provider)
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "GenAI operation duration."
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Number of input and output tokens used."
        )
        self._first = meter.create_histogram(
            "gen_ai.client.operation.time_to_first_chunk", "s", "Time to the first chunk."
        )
        self._tree = SpanTree(
            trace.get_tracer(SCOPE, tracer_provider=tracer_provider),
            _Latest() if parked is None else parked,
            content=captures_content(),
            on_chat=self._chat_ended,
        )
        self._streaming: set[tuple[str, int]] = set()

    def see(self, step: Step[Any], graph: NodeGraph[Any], path: tuple[str, ...], /) -> None:
        """Open and end spans, as `SpanTree.see` does."""
        self._tree.see(step, graph, path)
        if self._streaming:
            run_id, pending = step.run.id, step.run.pending
            over = [one for one in self._streaming if one[0] == run_id and one[1] not in pending]
            self._streaming.difference_update(over)

    def rest(self, run: Run[Any], /) -> None:
        """End the spans of a run that rests."""
        self._tree.rest(run)

    @contextmanager
    def around(self, effect: Effect, run: Run[Any], /) -> Generator[None]:
        """Make the effect's span current, so that spans of tools and HTTP clients lie below it."""
        context = self._tree.context_of(run, effect)
        if context is None:
            yield
            return
        token = otel_context.attach(context)
        try:
            yield
        finally:
            otel_context.detach(token)
            if isinstance(effect, CallModel):
                self._first_item(effect, run)

    def _first_item(self, effect: CallModel, run: Run[Any]) -> None:
        """Record the time to the first item of a reply, by the system clock."""
        place, chat = (run.id, effect.id), self._tree.chat_of(run, effect)
        if place not in self._streaming and chat is not None:
            self._streaming.add(place)
            self._first.record(max(0.0, time() - chat[1]), _metric_attributes(chat[0]))

    def _chat_ended(
        self, attributes: Attributes, started_at: float, at: float, reply: Reply | None
    ) -> None:
        about = _metric_attributes(attributes)
        if reply is not None and reply.model:
            about["gen_ai.response.model"] = reply.model
        self._duration.record(max(0.0, at - started_at), about)
        if reply is not None and reply.usage.total_tokens:
            output = reply.usage.output_tokens
            counts = {"input": reply.usage.total_tokens - output, "output": output}
            for kind, tokens in counts.items():
                self._tokens.record(tokens, {**about, "gen_ai.token.type": kind})


def otel(
    *,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
    parked: MutableMapping[str, str] | None = None,
) -> OpenTelemetry:
    """Return an observer that sends the spans and metrics of runs to OpenTelemetry.

        agent = Agent("openai:gpt-5", watch=[otel()])

    Spans hold no prompts, arguments and results, unless the environment variable
    `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` is `true` when `otel` is called.

    Args:
        tracer_provider: makes the tracer; None for the global one.
        meter_provider: makes the meter; None for the global one.
        parked: keeps a `traceparent` by run id, so that a run that another process resumes gets a
            link to its earlier span; None remembers the latest 10,000 runs of this process.
    """
    return OpenTelemetry(tracer_provider, meter_provider, parked)


def spans(
    graph: NodeGraph[Any],
    events: Sequence[Event],
    journals: Mapping[str, Sequence[Event]] = _NO_JOURNALS,
    *,
    tracer_provider: trace.TracerProvider | None = None,
) -> None:
    """Make the spans of a journal, with the times of its events: the tree of the live run.

    Args:
        graph: the run's graph, such as `agent.graph`.
        events: the run's journal (`await store.load(run_id)`).
        journals: maps the id of each descendant run, without the prefix of this run's id and "/",
            to its journal.
        tracer_provider: makes the tracer; None for the global one.

    Raises:
        StoreError: a journal does not begin with `Started`, or belongs to another graph.
        IllegalEvent: an event does not fit its graph.
    """
    tracer = trace.get_tracer(SCOPE, tracer_provider=tracer_provider)
    tree = SpanTree(tracer, {}, content=captures_content())
    run: Run[Any] | None = None
    for step, at_graph, path in _merged_steps(graph, events, journals, ()):
        tree.see(step, at_graph, path)
        run = step.run if not path else run
    if run is not None and not run.ended:
        tree.rest(run)


_Seen = tuple[Step[Any], NodeGraph[Any], tuple[str, ...]]


class _Feed:
    """The steps of a child run, with a look at the next one."""

    def __init__(self, steps: Iterator[_Seen]) -> None:
        self._steps = steps
        self.next: _Seen | None = next(steps, None)

    def until(self, at: float, *, resumed: bool = False) -> Iterator[_Seen]:
        """Yield the steps up to a time; with `resumed`, only those before the child's resume."""
        while (found := self.next) is not None and found[0].run.at <= at:
            if resumed and isinstance(found[0].event, Resumed):
                return
            yield found
            self.next = next(self._steps, None)


def _merged_steps(
    graph: NodeGraph[Any],
    events: Sequence[Event],
    journals: Mapping[str, Sequence[Event]],
    path: tuple[str, ...],
) -> Iterator[_Seen]:
    """Yield the steps of a run and of its child runs in the order in which they happened."""
    known = {child[:2]: child.graph for child in child_graphs(graph)} if journals else {}
    feeds: dict[str, _Feed] = {}
    for step in replay_steps(graph, typed(graph, events)):
        for feed in feeds.values():
            yield from feed.until(step.run.at, resumed=isinstance(step.event, Resumed))
        yield step, graph, path
        for effect in step.effects:
            child = None
            if isinstance(effect, StartRun) and effect.key in journals:
                child = known.get((step.run.node, effect.agent))
            if child is not None and isinstance(effect, StartRun):
                key = effect.key
                below = {
                    one.removeprefix(f"{key}/"): journal
                    for one, journal in journals.items()
                    if one.startswith(f"{key}/")
                }
                feeds[key] = _Feed(_merged_steps(child, journals[key], below, (*path, key)))
    for feed in feeds.values():
        yield from feed.until(float("inf"))
