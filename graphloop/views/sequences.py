"""sequence: a sequence diagram of one run, between the caller, the graph, models, tools and people.

`sequence` replays a journal and returns the messages of the diagram. `sequence_mermaid` and
`sequence_text` write these messages as Mermaid and as plain text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar, assert_never, final

from ..conversation import latest_answer
from ..effects import (
    AskHuman,
    AwaitCaller,
    CallModel,
    CallTool,
    CheckCalls,
    Effect,
    Invoke,
    StartRun,
    ToolQuestion,
)
from ..events import (
    AnswerChecked,
    CallbackAnswer,
    CallbackReturned,
    Cancelled,
    ChildEnded,
    Decided,
    EffectFailed,
    EffectsStarted,
    Event,
    ModelReplied,
    NodeReturned,
    Queued,
    RequestYielded,
    Resumed,
    Started,
    Steered,
    StopRequested,
    ToolAsked,
    ToolReturned,
)
from ..graph import NodeGraph
from ..replay import replay_steps
from ..run import Run
from ..values import Message, Reply, TextPart, UserMessage, UserPart
from .drawing import visible
from .mermaid import mermaid_escaped

__all__ = ["Party", "SequenceMessage", "sequence", "sequence_mermaid", "sequence_text"]

S = TypeVar("S")

PartyKind: TypeAlias = Literal["you", "loop", "model", "tool", "person", "agent", "function"]

_LONG: Final = 120
"""The maximum number of characters that are shown of a message."""

_WIDTH: Final = 80
_GAP: Final = 4
"""The number of columns between the lifelines of a text diagram."""

_SAFE: Final = "_ ,.:()?!'/-\"{}[]=+*@$"
"""The characters, beside letters and digits, that Mermaid shows unchanged in a message."""

_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@final
@dataclass(frozen=True, slots=True)
class Party:
    """A participant of a sequence diagram, for example the caller, a model, a tool or a person."""

    kind: PartyKind
    name: str

    def __str__(self) -> str:
        return self.name if self.kind == self.name else f"{self.kind} {self.name}"


@final
@dataclass(frozen=True, slots=True)
class SequenceMessage:
    """An arrow of a sequence diagram, from its sender to its receiver.

    Attributes:
        at: the time of the message, in seconds since the run started.
        source: the sender.
        target: the receiver.
        words: the text.
        is_reply: whether the message answers an earlier message.
    """

    at: float
    source: Party
    target: Party
    words: str
    is_reply: bool = False


_YOU: Final = Party("you", "you")
_PERSON: Final = Party("person", "person")


def sequence(graph: NodeGraph[S], events: Sequence[Event]) -> tuple[SequenceMessage, ...]:
    """Replay a journal, and return the messages of the run's sequence diagram in order.

    Raises:
        StoreError: the journal does not begin with `Started`, or belongs to another graph.
        IllegalEvent: an event does not fit the graph.
    """
    return tuple(_messages_of_run(graph, events))


def _messages_of_run(graph: NodeGraph[S], events: Sequence[Event]) -> Iterator[SequenceMessage]:
    loop = Party("loop", graph.name)
    before: Run[S] | None = None
    for step in replay_steps(graph, events):
        run, event = step.run, step.event
        at = run.at - run.record.started_at
        effect = None if before is None else before.pending.get(getattr(event, "effect", 0))
        sender = _YOU if effect is None else _effect_message(effect)[0]
        if sender is not None and (words := _event_words(event)):
            yield SequenceMessage(at, sender, loop, _one_line(words), is_reply=effect is not None)
        for receiver, words in map(_effect_message, step.effects):
            if receiver is not None:
                yield SequenceMessage(at, loop, receiver, _one_line(words))
        if run.ended:
            yield SequenceMessage(at, loop, _YOU, _one_line(_ending_text(run)), is_reply=True)
        before = run


def _effect_message(effect: Effect) -> tuple[Party | None, str]:  # noqa: PLR0911 - one for each effect
    """Return the receiver and the text of an effect's message; the receiver is None without one."""
    match effect:
        case CallModel(model=model, request=request):
            count = len(request.messages)
            return Party("model", model or "model"), f"{count} message{'s' * (count != 1)}"
        case CallTool(call=call):
            return Party("tool", call.name), call.arguments or "{}"
        case AskHuman(question=ToolQuestion(text=text), call=call):
            return _PERSON, f"{call.name} asks: {text}"
        case AskHuman(call=call):
            again = " once more" if effect.unknown else ""
            return _PERSON, f"may {call.name} run{again}? {call.arguments}"
        case StartRun(agent=agent, arguments=arguments):
            return Party("agent", agent), arguments or "go on from here"
        case Invoke(callback=callback):
            return Party("function", callback), "called"
        case AwaitCaller():
            return _YOU, "look"
        case CheckCalls():
            return None, ""
        case _:
            assert_never(effect)


def _event_words(event: Event) -> str:  # noqa: C901, PLR0911 - one for each event
    """Return the text of an event's message; empty if the event is not shown in the diagram."""
    match event:
        case Started(messages=messages):
            return _prompt_text(messages)
        case Queued(message=message):
            return f"meanwhile: {_content_text(message.content)}"
        case Cancelled(reason=reason):
            return _with_reason("stop", reason)
        case Resumed() | Steered():
            return "go on"
        case EffectsStarted():
            return ""
        case ModelReplied(reply=reply):
            return _reply_text(reply)
        case ToolReturned() | ChildEnded():
            return f"{event.status}: {_content_text(event.content)}"
        case ToolAsked(question=question):
            return f"asks: {question.text}" if question.text else "goes on"
        case Decided(approved=approved, reason=reason):
            edited = ", with other arguments" if event.arguments else ""
            return _with_reason(f"{'approved' if approved else 'denied'}{edited}", reason)
        case CallbackReturned(answer=answer):
            return _answer_text(answer)
        case EffectFailed(failure=failure):
            return f"failed: {failure.error}: {failure.message}"
        case _:
            return type(event).__name__


def _answer_text(answer: CallbackAnswer) -> str:
    match answer:
        case NodeReturned(outcome=outcome):
            return outcome
        case AnswerChecked(accepted=accepted, feedback=feedback):
            return "accepted" if accepted else f"rejected: {feedback}"
        case RequestYielded(ask=ask):
            return f"ask: {ask.kind}"
        case StopRequested(names=names) if names:
            return f"stop: {', '.join(names)}"
        case StopRequested():
            return "go on"
        case _:
            return "answered"


def _with_reason(words: str, reason: str) -> str:
    return f"{words}: {reason}" if reason else words


def _reply_text(reply: Reply) -> str:
    calls = [f"call {call.name}({call.arguments})" for call in reply.message.calls]
    return (
        "; ".join(filter(None, [reply.message.text, *calls])) or f"nothing ({reply.finish_reason})"
    )


def _prompt_text(messages: Sequence[Message]) -> str:
    prompts = [message for message in messages if isinstance(message, UserMessage)]
    return _content_text(prompts[-1].content) if prompts else "begin"


def _content_text(content: str | tuple[UserPart, ...]) -> str:
    if isinstance(content, str):
        return content
    return " ".join(
        part.text if isinstance(part, TextPart) else f"[{part.kind}]" for part in content
    )


def _ending_text(run: Run[S]) -> str:
    reason = str(run.ending.reason) if run.ending is not None else "over"
    return _with_reason(reason, latest_answer(run))


def _one_line(text: str) -> str:
    return _cut(" ".join(text.split()), _LONG)


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _columns(messages: Sequence[SequenceMessage]) -> Mapping[Party, int]:
    """Map each participant to its column number, in the order of the first messages."""
    parties = dict.fromkeys(party for sent in messages for party in (sent.source, sent.target))
    return {party: place for place, party in enumerate(parties)}


def sequence_mermaid(messages: Sequence[SequenceMessage]) -> str:
    """Write messages as a Mermaid `sequenceDiagram`."""
    places = _columns(messages)
    lines = ["sequenceDiagram"]
    for party, place in places.items():
        word = "actor" if party.kind in {"you", "person"} else "participant"
        lines.append(f"  {word} p{place} as {mermaid_escaped(str(party), _SAFE)}")
    for sent in messages:
        arrow = "-->>" if sent.is_reply else "->>"
        # An empty message is a syntax error in Mermaid.
        words = mermaid_escaped(sent.words, _SAFE).strip() or "…"
        lines.append(f"  p{places[sent.source]}{arrow}p{places[sent.target]}: {words}")
    return "".join(f"{line}\n" for line in lines)


def sequence_text(messages: Sequence[SequenceMessage]) -> str:
    """Write messages as text of 80 columns: a row for each message, after its lifelines."""
    places = _columns(messages)
    lines = [_cut(f"{_letter_of(n)}  {visible(str(party))}", _WIDTH) for party, n in places.items()]
    lines += ["", "".join(f"{_letter_of(place):<{_GAP}}" for place in places.values())]
    room = max(16, _WIDTH - _GAP * len(places) - 9)
    for sent in messages:
        arrow = _draw_arrow(places[sent.source], places[sent.target], len(places))
        lines.append(f"{arrow}{sent.at:7.2f}  {_cut(visible(sent.words), room)}")
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _draw_arrow(source: int, target: int, count: int) -> str:
    """Draw `count` lifelines with an arrow from `source` to `target`, or a dot if these are equal.

    A lifeline is the vertical line of a participant.
    """
    low, high = sorted((source * _GAP, target * _GAP))
    cells = ["│" if at % _GAP == 0 else " " for at in range(count * _GAP)]
    cells[low : high + 1] = ["─" if at % _GAP else "┼" for at in range(low, high + 1)]
    cells[low], cells[high] = "├", "┤"
    if source < target:
        cells[high - 1] = "▶"
    elif target < source:
        cells[low + 1] = "◀"
    else:
        cells[low] = "●"
    return "".join(cells)


def _letter_of(place: int) -> str:
    """Return the letter for a participant's column: A to Z, then A1, B1 and so on."""
    again, letter = divmod(place, len(_LETTERS))
    return f"{_LETTERS[letter]}{again or ''}"
