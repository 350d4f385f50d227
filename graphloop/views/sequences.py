"""sequence: the messages of one run in order, between you, the loop, models, tools and people.

The run is replayed from its journal. `sequence` finds the messages; `sequence_mermaid` and
`sequence_text` write them.
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
)
from ..events import (
    Answer,
    AnswerChecked,
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
    ToolReturned,
)
from ..graph import NodeGraph
from ..replay import replay_steps
from ..run import Run
from ..values import Message, Reply, UserMessage, UserPart
from .drawing import visible
from .mermaid import mermaid_escaped

__all__ = ["Party", "Said", "sequence", "sequence_mermaid", "sequence_text"]

S = TypeVar("S")

PartyKind: TypeAlias = Literal["you", "loop", "model", "tool", "person", "agent", "function"]

_LONG: Final = 120
"""How many characters of a message are shown."""

_WIDTH: Final = 80
_GAP: Final = 4
"""How many columns apart lifelines stand in a text."""

_SAFE: Final = "_ ,.:()?!'/-\"{}[]=+*@$"
"""Signs that mean nothing to Mermaid in a message, and whose entities would be hard to read."""

_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@final
@dataclass(frozen=True, slots=True)
class Party:
    """A person or a thing that takes part in a run."""

    kind: PartyKind
    name: str

    def __str__(self) -> str:
        return self.name if self.kind == self.name else f"{self.kind} {self.name}"


@final
@dataclass(frozen=True, slots=True)
class Said:
    """A message, at a time in seconds since the run started; `answers` marks a reply."""

    at: float
    source: Party
    target: Party
    words: str
    answers: bool = False


_YOU: Final = Party("you", "you")


def sequence(graph: NodeGraph[S], events: Sequence[Event]) -> tuple[Said, ...]:
    """Return the messages of the run of a journal.

    Raises:
        StoreError: the journal does not begin with `Started`, or is of another graph.
        IllegalEvent: an event does not fit the graph.
    """
    return tuple(_sequence(graph, events))


def sequence_mermaid(said: Sequence[Said]) -> str:
    """Return a Mermaid `sequenceDiagram`: ids are generated, and words escaped."""
    return "".join(f"{line}\n" for line in _mermaid(said))


def sequence_text(said: Sequence[Said]) -> str:
    """Return a row for each message: lifelines on the left, words beside them, 80 columns."""
    return "".join(f"{line.rstrip()}\n" for line in _text(said))


def _sequence(graph: NodeGraph[S], events: Sequence[Event]) -> Iterator[Said]:
    loop = Party("loop", graph.name)
    before: Run[S] | None = None
    for step in replay_steps(graph, events):
        run, event = step.run, step.event
        at = run.at - run.record.started_at
        effect = None if before is None else before.pending.get(getattr(event, "effect", 0))
        party = _YOU if effect is None else _asked(effect)[0]
        if party is not None and (words := _told(event)):
            yield Said(at, party, loop, _short(words), answers=effect is not None)
        for party, words in map(_asked, step.effects):
            if party is not None:
                yield Said(at, loop, party, _short(words))
        if run.ended:
            yield Said(at, loop, _YOU, _short(_ending(run)), answers=True)
        before = run


def _asked(effect: Effect) -> tuple[Party | None, str]:  # noqa: PLR0911 - one for each effect
    """Return the party that an effect asks, and the words; None for what asks no party."""
    match effect:
        case CallModel(model=model, request=request):
            count = len(request.messages)
            return Party("model", model or "model"), f"{count} message{'s' * (count != 1)}"
        case CallTool(call=call):
            return Party("tool", call.name), call.arguments or "{}"
        case AskHuman(call=call):
            again = " once more" if effect.unknown else ""
            return Party("person", "person"), f"may {call.name} run{again}? {call.arguments}"
        case StartRun(agent=agent, arguments=arguments):
            return Party("agent", agent), arguments or "go on from here"
        case Invoke(callback=callback):
            return Party("function", callback), "called"
        case AwaitCaller():
            return _YOU, "look"
        case CheckCalls():
            return None, ""  # The check stays within the process.
        case _:
            assert_never(effect)


def _told(event: Event) -> str:  # noqa: C901, PLR0911 - one for each event
    """Return the words of an event; empty if it is no message."""
    match event:
        case Started(messages=messages):
            return _last(messages)
        case Queued(message=message):
            return f"meanwhile: {_content(message.content)}"
        case Cancelled(reason=reason):
            return f"stop{': ' if reason else ''}{reason}"
        case Resumed() | Steered():
            return "go on"
        case EffectsStarted():
            return ""
        case ModelReplied(reply=reply):
            return _reply(reply)
        case (
            ToolReturned(content=content, status=status)
            | ChildEnded(content=content, status=status)
        ):
            return f"{status}: {_content(content)}"
        case Decided(approved=approved, reason=reason):
            verdict = "approved" if approved else "denied"
            edited = ", with other arguments" if event.arguments else ""
            return f"{verdict}{edited}{': ' if reason else ''}{reason}"
        case CallbackReturned(answer=answer):
            return _returned(answer)
        case EffectFailed(failure=failure):
            return f"failed: {failure.error}: {failure.message}"
        case _:
            return type(event).__name__


def _returned(answer: Answer) -> str:
    match answer:
        case NodeReturned(outcome=outcome):
            return outcome
        case AnswerChecked(accepted=accepted, feedback=feedback):
            return "accepted" if accepted else f"rejected: {feedback}"
        case RequestYielded(ask=ask):
            return f"ask: {ask.kind}"
        case StopRequested(names=names):
            return f"stop: {', '.join(names)}" if names else "go on"
        case _:
            return "answered"


def _reply(reply: Reply) -> str:
    calls = [f"call {call.name}({call.arguments})" for call in reply.message.calls]
    said = [words for words in (reply.message.text, *calls) if words]
    return "; ".join(said) or f"nothing ({reply.finish_reason})"


def _last(messages: Sequence[Message]) -> str:
    asked = [message for message in messages if isinstance(message, UserMessage)]
    return _content(asked[-1].content) if asked else "begin"


def _content(content: str | tuple[UserPart, ...]) -> str:
    return content if isinstance(content, str) else f"[{len(content)} parts]"


def _ending(run: Run[S]) -> str:
    reason = str(run.ending.reason) if run.ending is not None else "over"
    text = latest_answer(run)
    return f"{reason}: {text}" if text else reason


def _short(text: str) -> str:
    return _cut(" ".join(text.split()), _LONG)


def _places(said: Sequence[Said]) -> Mapping[Party, int]:
    """Return the parties, numbered in the order in which they first take part."""
    parties = dict.fromkeys(party for message in said for party in (message.source, message.target))
    return {party: place for place, party in enumerate(parties)}


def _mermaid(said: Sequence[Said]) -> Iterator[str]:
    places = _places(said)
    yield "sequenceDiagram"
    for party, place in places.items():
        word = "actor" if party.kind in {"you", "person"} else "participant"
        yield f"  {word} p{place} as {mermaid_escaped(str(party), _SAFE)}"
    for message in said:
        arrow = "-->>" if message.answers else "->>"
        # A message must not be empty.
        words = mermaid_escaped(message.words, _SAFE).strip() or "…"
        yield f"  p{places[message.source]}{arrow}p{places[message.target]}: {words}"


def _text(said: Sequence[Said]) -> Iterator[str]:
    places = _places(said)
    for party, place in places.items():
        yield _cut(f"{_letter(place)}  {visible(str(party))}", _WIDTH)
    yield ""
    yield "".join(f"{_letter(place):<{_GAP}}" for place in places.values())
    room = max(16, _WIDTH - _GAP * len(places) - 9)
    for message in said:
        arrow = _arrow(places[message.source], places[message.target], len(places))
        yield f"{arrow}{message.at:7.2f}  {_cut(visible(message.words), room)}"


def _arrow(source: int, target: int, count: int) -> str:
    """Return the lifelines with an arrow between two of them, or a dot on one."""
    low, high = sorted((source * _GAP, target * _GAP))
    cells = [("│" if at % _GAP == 0 else " ") for at in range(count * _GAP)]
    for at in range(low, high + 1):
        cells[at] = "─" if at % _GAP else "┼"
    cells[low], cells[high] = "├", "┤"
    if source < target:
        cells[high - 1] = "▶"
    elif target < source:
        cells[low + 1] = "◀"
    else:
        cells[low] = "●"
    return "".join(cells)


def _letter(place: int) -> str:
    """Return A to Z, then A1, B1 and so on."""
    again, letter = divmod(place, len(_LETTERS))
    return f"{_LETTERS[letter]}{again or ''}"


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"
