"""`graphloop replay`: what happened in a run, and how it stood after any event."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Final

from pydantic_core import to_jsonable_python

from ..codec import Codec
from ..drivers.pending import pending_of
from ..effects import Effect, StartRun
from ..errors import GraphloopError
from ..front.graph import Graph
from ..front.journals import state_after
from ..run import Run
from ..values import AssistantMessage, SystemMessage, ToolResult, UserMessage
from .happened import effects_of, happened
from .journal import Journal, read
from .lines import (
    ask_text,
    call_text,
    counted,
    one_line,
    safe_json,
    state_text,
    time_text,
    tokens_text,
)
from .request import refuse_blanks
from .status import Status, tell

__all__ = ["replay"]

TEXT_MAX: Final = 200


def replay(
    run: str, *, store: str | None, target: str | None, upto: int | None, as_json: bool
) -> Status:
    """Print a run's journal and, if its graph is known, its state; nothing is performed.

    Raises:
        ConfigError: there is no such run or event, or the target cannot be loaded.
        StoreError: the journal cannot be read.
    """
    refuse_blanks({"RUN": run, "--target": target})
    journal = asyncio.run(read(store, run)).first(upto)
    known = _known(journal, target)
    lines = _json_lines(journal, known) if as_json else _text_lines(journal, known)
    for line in lines:
        sys.stdout.write(f"{safe_json(line) if as_json else line}\n")
    return Status.OK


def _known(journal: Journal, target: str | None) -> tuple[Run[None] | None, Mapping[int, Effect]]:
    """Return the run's state and all its wishes, if its graph is known and fits.

    A target that was only noted long ago may be gone; one that was given now has to do.
    """
    if not (target or journal.target):
        return None, {}
    try:
        graph: Graph[None] = journal.graph(target)
        return state_after(graph, journal.events), effects_of(graph, journal.events)
    except GraphloopError as error:
        if target:
            raise
        tell(f"the state is not shown: {error}")
        return None, {}


def _json_lines(
    journal: Journal, known: tuple[Run[None] | None, Mapping[int, Effect]]
) -> Iterator[str]:
    """Yield the events as a journal of JSON lines holds them and, last, the state."""
    codec, run = Codec(), known[0]
    for seq, event in enumerate(journal.events, 1):
        yield codec.encode(seq, event).decode()
    if run is not None:
        ending = run.ending if run.ended else None
        state = {
            "seq": run.seq,
            "node": run.node,
            "end_reason": ending.reason if ending is not None else None,
            "steps": len(run.steps),
            "messages": len(run.messages),
            "total_tokens": run.spent.usage.total_tokens,
            "pending": [one.key for one in pending_of(run, {}, None)],
            "value": to_jsonable_python(run.state, fallback=repr),
        }
        yield json.dumps({"state": state}, ensure_ascii=False)


def _text_lines(
    journal: Journal, known: tuple[Run[None] | None, Mapping[int, Effect]]
) -> Iterator[str]:
    run, effects = known
    digits = len(str(len(journal.events)))
    width = max(len(type(event).__name__) for event in journal.events)
    for seq, event in enumerate(journal.events, 1):
        kind = type(event).__name__
        yield f"{seq:{digits}}  {time_text(event.at)}  {kind:{width}}  {happened(event, effects)}"
    if run is not None:
        yield ""
        yield from _state_lines(run)


def _state_lines(run: Run[None]) -> Iterator[str]:
    where = f"at {run.node}"
    if run.ended and run.ending is not None:
        where = f"ended, {run.ending.reason}"
    facts = [
        where,
        counted(len(run.steps), "step"),
        counted(len(run.messages), "message"),
        tokens_text(run.spent.told_usage),
    ]
    yield f"after event {run.seq}: {' · '.join(facts)}"
    if said := state_text(run):
        yield f"  {said}"
    for one in pending_of(run, {}, None):
        yield f"  waits for {one.key}: {ask_text(one)}"
    for effect in run.pending.values():
        if isinstance(effect, StartRun):
            yield f"  waits for {effect.key}: agent {effect.agent}, run {run.id}/{effect.key}"
    for message in run.messages:
        if not isinstance(message, SystemMessage):
            yield f"  {message.role}: {one_line(_said(message), TEXT_MAX)}"


def _said(message: UserMessage | AssistantMessage | ToolResult) -> str:
    match message:
        case AssistantMessage():
            calls = [call_text(one.name, one.arguments) for one in message.calls]
            said = " ".join(one for one in (message.text, *(f"→ {one}" for one in calls)) if one)
        case ToolResult():
            said = message.text
        case UserMessage():
            content = message.content
            said = content if isinstance(content, str) else f"[{counted(len(content), 'part')}]"
    return said
