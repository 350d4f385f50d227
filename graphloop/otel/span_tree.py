"""SpanTree: the spans of runs, as a fold of their steps.

    invoke_agent NAME                 a run, from its start or resume until it ends or rests
    ├── chat MODEL                    a model call
    ├── execute_tool NAME             a tool call
    │   └── invoke_agent CHILD        … of a tool that is an agent
    └── graphloop.ask                 the wait for a person

All times are the times of events, so a live run and its journal give the same tree. A run that
is resumed gets a new `invoke_agent` span, with a link to the span before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, Final

from msgspec import Struct, field
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from ..effects import AskHuman, AwaitCaller, CallModel, CallTool, Effect, StartRun
from ..events import (
    Answering,
    Cancelled,
    ChildEnded,
    Decided,
    EffectFailed,
    Event,
    ModelReplied,
    Resumed,
    Started,
    ToolReturned,
)
from ..graph import NodeGraph
from ..run import EndReason, Run
from ..spending import Spent
from ..step import Step
from ..values import Reply, ToolCall, Usage
from .attributes import (
    ANSWERED,
    Attributes,
    asked_content,
    called,
    model_asked,
    replied,
    replied_content,
    run_started,
    usage_of,
)

__all__ = ["SpanTree"]

END_REASON: Final = "graphloop.end_reason"
APPROVED: Final = "graphloop.approved"

FAILED: Final = frozenset({EndReason.ERROR, EndReason.TIMEOUT})
"""The end reasons of runs that count as errors."""


class _Open(Struct, eq=False):
    """A span that is not over: its effect, its context for spans below it, and its start."""

    span: Span
    context: Context
    effect: Effect
    attributes: Attributes
    started_at: float


class _Leg(Struct, eq=False):
    """A start or resume of a run: its span, and the open spans of its effects by effect id."""

    run: Run[Any]
    span: Span
    context: Context
    agent: str
    before: Spent
    open: dict[int, _Open] = field(default_factory=dict[int, _Open])


class SpanTree:
    """Makes spans from the steps of runs; the methods `see` and `rest` are those of an observer.

    Args:
        tracer: makes the spans.
        parked: keeps a `traceparent` by run id, for the link of a run that is resumed later.
        content: whether spans hold messages, arguments and results.
        on_chat: called at the end of each model call, with its label, its attributes, its start
            and end in seconds, and its reply (None for a failed call).
    """

    def __init__(
        self,
        tracer: trace.Tracer,
        parked: MutableMapping[str, str],
        *,
        content: bool,
        on_chat: Callable[[Attributes, float, float, Reply | None], None] | None = None,
    ) -> None:
        self._tracer, self._parked, self._content = tracer, parked, content
        self._on_chat = on_chat
        self._legs: dict[str, _Leg] = {}

    def see(self, step: Step[Any], graph: NodeGraph[Any], path: tuple[str, ...], /) -> None:
        """Open and end the spans that a step opens and ends."""
        run, event = step.run, step.event
        leg = self._legs.get(run.id)
        if leg is not None and isinstance(event, Resumed):
            self._end_at_rest(leg)
            leg = None
        if leg is None:
            leg = self._open_run(run, graph, event, path)
        self._end_effect(leg, event)
        if isinstance(event, Cancelled) and not event.after_step:
            self._end_effects(leg, leg.open.keys(), event.at)
        self._end_effects(leg, leg.open.keys() - run.pending.keys(), run.at)
        leg.run = run
        for effect in run.pending.values():
            if effect.id not in leg.open:
                self._start_effect(leg, effect, self._conversation_id(run, path))
        if run.ended:
            self._end_run(leg)

    def rest(self, run: Run[Any], /) -> None:
        """End the spans of a run that rests, and of its child runs."""
        below = f"{run.id}/"
        for run_id in [one for one in self._legs if one == run.id or one.startswith(below)][::-1]:
            self._end_at_rest(self._legs[run_id])

    def context_of(self, run: Run[Any], effect: Effect) -> Context | None:
        """Return the context for spans below an effect's span; None for an unknown run."""
        leg = self._legs.get(run.id)
        if leg is None:
            return None
        found = leg.open.get(effect.id)
        return leg.context if found is None else found.context

    def chat_of(self, run: Run[Any], effect: Effect) -> tuple[Attributes, float] | None:
        """Return the attributes and the start of a model call that is not over."""
        leg = self._legs.get(run.id)
        found = None if leg is None else leg.open.get(effect.id)
        return None if found is None else (found.attributes, found.started_at)

    def _open_run(
        self, run: Run[Any], graph: NodeGraph[Any], event: Event, path: tuple[str, ...]
    ) -> _Leg:
        """Open the span of a run, below the call that started it, or the caller's current span."""
        parent, links = self._parent_context(run, path), list[Link]()
        if not isinstance(event, Started) and (known := self._parked.pop(run.id, None)):
            links = [Link(_from_traceparent(known))]
        span = self._tracer.start_span(
            f"invoke_agent {graph.name}",
            context=parent,
            kind=SpanKind.INTERNAL,
            attributes=run_started(run, graph.name, self._conversation_id(run, path)),
            links=links,
            start_time=_nanoseconds(run.at),
        )
        # The spending of a resumed run before this leg belongs to earlier spans.
        before = Spent() if isinstance(event, Started) else run.spent
        leg = _Leg(run, span, trace.set_span_in_context(span, parent), graph.name, before)
        self._legs[run.id] = leg
        return leg

    def _conversation_id(self, run: Run[Any], path: tuple[str, ...]) -> str:
        """Return the id of the chat that a run or its root answers a question of, or the root's."""
        root = _root_id(run, path)
        top = self._legs.get(root)
        chat = run.record.chat if top is None else top.run.record.chat
        return chat or root

    def _parent_context(self, run: Run[Any], path: tuple[str, ...]) -> Context | None:
        if not path:
            return None
        parent = self._legs.get(run.id.removesuffix(f"/{path[-1]}"))
        if parent is None:
            return None
        for one in parent.open.values():
            if isinstance(one.effect, StartRun) and one.effect.key == path[-1]:
                return one.context
        return parent.context

    def _start_effect(self, leg: _Leg, effect: Effect, conversation: str) -> None:
        """Open the span of an effect; some effects have none of their own."""
        name, kind, turn = "", SpanKind.INTERNAL, leg.run.turn
        attributes: Attributes = {}
        match effect:
            case CallModel():
                attributes = model_asked(effect, leg.agent, conversation)
                name, kind = f"chat {attributes['gen_ai.request.model']}", SpanKind.CLIENT
                if self._content:
                    attributes |= asked_content(effect)
            case CallTool(call=call):
                name = f"execute_tool {call.name}"
                attributes = called(call, "function", conversation, content=self._content)
            case StartRun(key=key, agent=agent, arguments=arguments) if turn.has_call(key):
                place = turn.place_of(key)
                call_id = "" if place is None else turn.calls[place].id
                name, call = f"execute_tool {agent}", ToolCall(call_id, agent, arguments)
                attributes = called(call, "agent", conversation, content=self._content)
            case AskHuman(call=call):
                name = "graphloop.ask"
                attributes = {"gen_ai.conversation.id": conversation, "gen_ai.tool.name": call.name}
                if call.id:
                    attributes["gen_ai.tool.call.id"] = call.id
            case _:
                return
        span = self._tracer.start_span(
            name, leg.context, kind, attributes, start_time=_nanoseconds(leg.run.at)
        )
        context = trace.set_span_in_context(span, leg.context)
        leg.open[effect.id] = _Open(span, context, effect, attributes, leg.run.at)

    def _end_effect(self, leg: _Leg, event: Event) -> None:
        """End the span of the effect that an event answers."""
        found = leg.open.pop(event.effect, None) if isinstance(event, Answering) else None
        if found is None:
            return
        span, reply = found.span, event.reply if isinstance(event, ModelReplied) else None
        match event:
            case ModelReplied(reply=reply):
                span.set_attributes(replied(reply))
                if self._content:
                    span.set_attributes(replied_content(reply))
            case EffectFailed(failure=failure):
                _mark_failed(span, failure.error)
                found.attributes["error.type"] = failure.error
            case (
                ToolReturned(status=status, content=content)
                | ChildEnded(status=status, content=content)
            ):
                if status not in ANSWERED:
                    _mark_failed(span, status)
                if self._content:
                    span.set_attribute("gen_ai.tool.call.result", str(content))
            case Decided(approved=approved):
                span.set_attribute(APPROVED, approved)
            case _:
                pass
        span.end(_nanoseconds(event.at))
        if self._on_chat is not None and isinstance(found.effect, CallModel):
            self._on_chat(found.attributes, found.started_at, event.at, reply)

    def _end_effects(self, leg: _Leg, effects: Iterable[int], at: float) -> None:
        """End the open spans of these effects: no event will answer them."""
        for effect in [*effects]:
            leg.open.pop(effect).span.end(_nanoseconds(at))

    def _end_run(self, leg: _Leg) -> None:
        """End the span of a run that has ended."""
        ending = leg.run.ending
        assert ending is not None, "a run that is over has an ending"
        if ending.reason in FAILED:
            _mark_failed(
                leg.span, ending.reason if ending.failure is None else ending.failure.error
            )
        self._end_leg(leg, ending.reason.value)

    def _end_at_rest(self, leg: _Leg) -> None:
        """End the span of a run that rests: it is parked, or its driver left it or has died."""
        waiting = leg.run.pending.values()
        is_parked = all(map(_waits_outside, waiting))
        self._parked[leg.run.id] = _to_traceparent(leg.span.get_span_context())
        self._end_leg(leg, "parked" if is_parked else "interrupted")

    def _end_leg(self, leg: _Leg, reason: str) -> None:
        self._end_effects(leg, leg.open.keys(), leg.run.at)
        used = _usage_since(leg.run.spent.usage, leg.before.usage)
        leg.span.set_attributes({END_REASON: reason, **usage_of(used)})
        leg.span.end(_nanoseconds(leg.run.at))
        self._legs.pop(leg.run.id, None)


def _waits_outside(effect: Effect) -> bool:
    is_client = isinstance(effect, CallTool) and effect.client
    return is_client or isinstance(effect, AskHuman | AwaitCaller | StartRun)


def _mark_failed(span: Span, error: str) -> None:
    # The message of an error may quote a prompt: the span has the error's type alone.
    span.set_attribute("error.type", str(error))
    span.set_status(Status(StatusCode.ERROR))


def _usage_since(usage: Usage, before: Usage) -> Usage:
    return Usage(
        usage.input_tokens - before.input_tokens,
        usage.output_tokens - before.output_tokens,
        usage.cache_read_tokens - before.cache_read_tokens,
        usage.cache_write_tokens - before.cache_write_tokens,
        usage.reasoning_tokens - before.reasoning_tokens,
    )


def _root_id(run: Run[Any], path: tuple[str, ...]) -> str:
    return run.id.removesuffix("".join([f"/{key}" for key in path]))


def _nanoseconds(at: float) -> int:
    return round(at * 1e9)


def _to_traceparent(context: SpanContext) -> str:
    """Return a span context as a W3C `traceparent`."""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def _from_traceparent(traceparent: str) -> SpanContext:
    _, trace_id, span_id, flags = traceparent.split("-")
    number = TraceFlags(int(flags, 16))
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=number)
