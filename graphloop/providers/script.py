"""A provider that answers from a list of scripted replies, without a network.

This module keeps the order of the replies and records the requests. All replies but functions are
built when the script is read, so a mistake is found before a run.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final, TypeAlias, cast, final

from ..errors import ScriptError, ScriptExhausted
from ..values import AssistantMessage, Message, ModelRequest, Reply, UserMessage, evolve
from .asked import asked_of, asked_text, request_difference
from .base import StreamItem
from .script_form import ReadyReply, load_script, ready_reply

__all__ = ["Entry", "ScriptSession", "ScriptedModel"]

Json: TypeAlias = "str | float | bool | Sequence[Json] | Mapping[str, Json] | None"
ScriptedAnswer: TypeAlias = str | Mapping[str, Json] | Mapping[str, object] | Reply
Entry: TypeAlias = ScriptedAnswer | Exception | Callable[[ModelRequest], ScriptedAnswer]
"""A script entry: a text, a mapping of fields, a `Reply`, an exception, or a function."""

MARK: Final = "script"
"""The `extra` key that marks a scripted reply, so that a resumed run can count its replies."""

_Item: TypeAlias = ReadyReply | Callable[[ModelRequest], ScriptedAnswer]


@final
class ScriptedModel:
    """A provider that returns scripted replies in order and records its requests.

    All sessions share one position in the script, unless `restart` makes each run start at the
    first reply. A resumed run, even in another process, then counts this script's replies in its
    history since the last user message, and continues after them. Replies that are not in the
    history (failed, retried or compacted) do not count; `after` sets the number exactly.

    An entry is a text; a mapping with `text`, `reasoning`, `calls` (each with `name`, `arguments`
    as a mapping or as JSON text kept verbatim, `id`), `finish_reason`, `usage`, `deltas` (the
    text in pieces) or `error` (the reply fails after its deltas); a `Reply`; an exception to
    raise; or a function of the request that returns a text, a mapping or a `Reply`.

    If any entry has `to` (a text or several texts), the order no longer decides. Each request gets
    the first entry whose `to` texts all occur in its conversation, any number of times. So one
    script can answer several agents in any order, and resumed runs.

    An entry with `asked`, as `graphloop.testing.recorded` writes it, answers only the request that
    it was recorded for. The n-th of equal requests gets the n-th of their replies, or the last.

    Args:
        replies: the entries of the script.
        label: the provider's name in journals and diagrams.
        model: the model name in the replies.
        restart: whether each run starts with the first reply; the replies then store the label.

    Raises:
        ScriptError: an entry is not a valid reply.
    """

    def __init__(
        self,
        # Type checkers infer `list[object]` for a variable with entries of several forms.
        replies: Iterable[Entry] | Iterable[object],
        *,
        label: str = "script",
        model: str = "scripted",
        restart: bool = False,
    ) -> None:
        self.label = label
        self._model = model
        self._mark = json.dumps({MARK: label}) if restart else ""
        self._items = tuple(
            self._item(entry, f"{label}: reply {number}") for number, entry in enumerate(replies, 1)
        )
        self._cursor = None if restart else _Cursor(0)
        self._begins: int | None = None
        self._times: dict[str, int] = {}
        self.requests: list[ModelRequest] = []

    @classmethod
    def from_file(cls, path: str | Path, *, label: str = "") -> ScriptedModel:
        """Return a scripted model with the replies of a YAML or JSON file.

        Each run starts with the first reply.

        Args:
            path: the file.
            label: the provider's name; by default `script:` and the path.

        Raises:
            ScriptError: the file cannot be read, or is not a valid script.
        """
        entries, model = load_script(Path(path))
        return cls(entries, label=label or f"script:{path}", model=model, restart=True)

    def after(self, replies: int) -> ScriptedModel:
        """Return a copy of this script for runs that already received `replies` replies."""
        rest = ScriptedModel((), label=self.label, model=self._model, restart=True)
        rest._items, rest._begins = self._items, replies
        return rest

    def accessed(self, **access: object) -> ScriptedModel:  # noqa: ARG002 - no request is sent
        """Return this model: a program under test may pass `headers` and `timeouts`."""
        return self

    def __repr__(self) -> str:
        return f"<ScriptedModel {self.label!r}>"

    def session(self) -> ScriptSession:
        """Return a new session for the model calls of one run."""
        return ScriptSession(self, self._cursor or _Cursor(self._begins))

    async def aclose(self) -> None:
        """Do nothing: a script has no connections to close."""

    def take(self, cursor: _Cursor, request: ModelRequest) -> ReadyReply:
        """Record `request` and return the scripted reply to it."""
        self.requests.append(request)
        count = len(self._items)
        if self._recorded_replies:
            return self._reply_to_recorded(request)
        if self._has_questions:
            return self._next_reply(request)
        if cursor.at is None:
            cursor.at = _count_replies(request.messages, self._mark)
        if cursor.at >= count:
            raise ScriptExhausted(
                f"{self.label} holds {count} replies and was asked for one more. Add reply "
                f"{count + 1}, or have the run stop before it: its last request held "
                f"{len(request.messages)} messages."
            )
        item = self._items[cursor.at]
        cursor.at += 1
        if isinstance(item, ReadyReply):
            return item
        return self._make_ready(
            item(request), f"{self.label}: reply {cursor.at}, a function's answer"
        )

    @cached_property
    def _has_questions(self) -> bool:
        """Whether any entry has `to`, so that the conversation selects replies, not their order."""
        asked = [item.to for item in self._items if isinstance(item, ReadyReply)]
        return asked.count(None) < len(asked)

    @cached_property
    def _recorded_replies(self) -> Sequence[ReadyReply]:
        """The replies to recorded requests, which only these requests get."""
        return [each for each in self._items if isinstance(each, ReadyReply) and each.asked]

    def _reply_to_recorded(self, request: ModelRequest) -> ReadyReply:
        asked = asked_of(request)
        found = [reply for reply in self._recorded_replies if reply.asked == asked]
        if not found:
            changed = request_difference(
                [reply.asked or {} for reply in self._recorded_replies], asked
            )
            raise ScriptError(
                f"{self.label}: expected a request that was recorded, found another:\n{changed}\n"
                "Fix: record the talk again (delete its file), or change the program back."
            )
        text = asked_text(asked)
        self._times[text] = times = self._times.get(text, 0) + 1
        return found[min(times, len(found)) - 1]

    def _next_reply(self, request: ModelRequest) -> ReadyReply:
        for item in self._items:
            if isinstance(item, ReadyReply) and item.fits(request):
                return item
        last = str(request.messages[-1])[:200] if request.messages else "nothing"
        raise ScriptExhausted(
            f"{self.label} holds no reply to what it was asked; the last message is {last}. Add "
            "an entry whose `to` was said, or one without `to` at the end, for all else."
        )

    def _item(self, entry: object, place: str) -> _Item:
        if isinstance(entry, Exception):
            return ReadyReply((), entry)
        if callable(entry):
            return cast("Callable[[ModelRequest], ScriptedAnswer]", entry)
        return self._make_ready(entry, place)

    def _make_ready(self, entry: object, place: str) -> ReadyReply:
        ready = ready_reply(entry, place, self._model)
        reply = ready.end
        # The request finds a recorded reply, so a replay's journal is that of the live run.
        if not self._mark or ready.asked or isinstance(reply, Exception) or reply.message.extra:
            return ready
        marked = evolve(reply, message=evolve(reply.message, extra=self._mark))
        return replace(ready, end=marked)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ScriptSession:
    """The session of one run with a scripted model; it holds the position in the script."""

    _model: ScriptedModel
    _cursor: _Cursor

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield the deltas of the next scripted reply, then the `Reply`.

        Raises:
            ScriptExhausted: the script has no reply to `request`.
            ScriptError: a function in the script returned no valid reply.
        """
        ready = self._model.take(self._cursor, request)
        for delta in ready.deltas:
            yield delta
        if isinstance(ready.end, Exception):
            raise ready.end
        yield ready.end


@final
@dataclass(slots=True, eq=False)
class _Cursor:
    """The index of the next reply; None until the first request's history determines it."""

    at: int | None


def _count_replies(messages: Sequence[Message], mark: str) -> int:
    """Return the number of replies with this `mark` since the last user message."""
    count = 0
    for message in reversed(messages):
        if isinstance(message, UserMessage) and not message.origin:
            return count
        count += isinstance(message, AssistantMessage) and message.extra == mark
    return count
