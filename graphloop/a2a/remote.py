"""Remote: a tool that gives tasks to an agent on another machine, by the A2A protocol.

    call ──► the journal has the call ──► task ──► the journal has the task ──► its text, its end
                                           │                      ▲
                                           └─ needs input: the run parks; its answer goes on

A call is one task, at most. Its context id follows from the run and the call, so a process that
resumes the run finds a task that started just before a crash. The protocol:
https://a2a-protocol.org/v1.0.0/specification/.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from itertools import groupby
from typing import Final, cast, final

from a2a.helpers import get_message_text, new_text_part
from a2a.types import Message, Part, Task, TaskState
from google.protobuf.json_format import MessageToDict

from ..effects import ToolAnswer
from ..errors import ConfigError, ToolError
from ..media import MediaPart, received
from ..tools import NOT_DONE, UNKNOWN, AnyTool, Approval, NotFound, Tool, ToolContext, ToolReturn
from ..values import TextPart
from .link import ASKING, FAILURES, Hear, Link, asked_id, linked
from .task_questions import answer_parts, asked_by, kept_of, task_kept, with_decision

__all__ = ["remote"]

TIMEOUT_S: Final = 600.0
SHOWN_MAX: Final = 200
"""The characters of the answer's end that a progress report shows."""
PARAMETERS: Final[dict[str, object]] = {
    "type": "object",
    "properties": {"prompt": {"type": "string", "description": "The task, in words."}},
    "required": ["prompt"],
    "additionalProperties": False,
}


def remote(
    url: str,
    *,
    name: str,
    description: str,
    headers: Mapping[str, str] | None = None,
    needs_approval: Approval = False,
    timeout_s: float | None = TIMEOUT_S,
) -> AnyTool:
    """Return a tool that gives its task to a remote agent, and returns the agent's answer.

        desk = remote("https://desk.example", name="desk", description="Pays invoices.")
        agent = Agent(model, tools=[desk])

    Nothing is sent before the first call. The text of the answer comes as `tool-progress` parts. A
    task that needs input parks the run with a question, and the answer goes to the same task. An
    aborted run cancels its task. A resumed run goes on with its task, and never starts it twice.

    Args:
        url: where the agent card is: the address before `/.well-known/agent-card.json`.
        name: the tool's name for models.
        description: what a model reads of the agent; the agent's own card is never shown to it.
        headers: further headers of each request, such as a key.
        needs_approval: whether a person must approve a call before anything is sent.
        timeout_s: the seconds that a task may go on before it is cancelled; time in which it waits
            for a person does not count. None for no limit.

    Raises:
        ConfigError: the URL is not one of HTTP.
        ToolDefinitionError: the name is no legal name of a tool.
    """
    if not url.startswith(("http://", "https://")):
        raise ConfigError(
            f"remote: expected a URL that begins with https:// or http://, found {url!r}. Fix: "
            "write the whole address."
        )
    agent = _RemoteAgent(url, name, dict(headers or {}), timeout_s)
    return Tool(
        name=name,
        description=description,
        parameters=PARAMETERS,
        execute=agent,
        needs_approval=needs_approval,
        effect="reconcile",
        reconcile=agent.reconcile,
        server=url,
    )


@final
class _RemoteAgent:
    """The function of the tool; it keeps no connection between calls."""

    def __init__(
        self, url: str, name: str, headers: Mapping[str, str], timeout_s: float | None
    ) -> None:
        self._url, self._name, self._headers = url, name, headers
        self._timeout_s = timeout_s
        self._found: dict[str, Task] = {}

    @property
    def kept_open(self) -> _RemoteAgent:
        """This object: tasks go on while their runs park, and `withdraw` ends them."""
        return self

    async def aclose(self) -> None:
        """Close nothing: no connection is kept, and tasks of parked runs wait for answers."""

    async def __call__(self, arguments: dict[str, str], context: ToolContext) -> object:
        """Start the task of a call, or go on with it, until it is over or needs a person.

        Raises:
            ToolAsks: the task needs input, or its id is to be journaled.
            ToolError: the agent cannot be reached, refuses, fails, or takes too long.
        """
        task: Task | None = None
        try:
            async with asyncio.timeout(self._timeout_s), self._open_link() as link:
                if context.answer is not None:
                    task = await link.task(task_kept(context.answer).task)
                    return await self._gone_on(link, task, context.answer, context)
                at = context.idempotency_key
                found = self._found.pop(at, None)
                begun = found or await link.start(new_text_part(arguments["prompt"]), at)
                if isinstance(begun, Message):
                    return _answer_content([begun.parts])
                raise kept_of(begun)
        except TimeoutError:
            if task is not None:
                await self._cancel_task(task.id)
            raise ToolError(
                f"Remote agent {self._name!r} has not ended the task within {self._timeout_s} s; "
                "the task was cancelled."
            ) from None

    async def reconcile(self, arguments: dict[str, str], context: ToolContext) -> NotFound:
        """Tell whether a call may go on whose process has stopped: only once its task is found."""
        del arguments
        if context.answer is not None:
            return NOT_DONE
        async with self._open_link() as link:
            found = await link.find(context.idempotency_key)
        if found is None:
            return UNKNOWN
        self._found[context.idempotency_key] = found
        return NOT_DONE

    async def withdraw(self, context: ToolContext) -> None:
        """Cancel the task of a call whose run ends."""
        if context.answer is not None:
            await self._cancel_task(task_kept(context.answer).task)
            return
        async with self._open_link() as link:
            found = await link.find(context.idempotency_key)
        if found is not None:
            await self._cancel_task(found.id)

    async def _gone_on(
        self, link: Link, task: Task, answer: ToolAnswer, context: ToolContext
    ) -> object:
        """Give a task the answer that it waits for, if it still does, and follow it to its end."""
        waiting = task_kept(answer)
        if waiting.approval:
            waiting = with_decision(self._name, waiting, answer)
        if task.status.state in ASKING and asked_id(task) == waiting.asked:
            if not answer.approved and not waiting.approval:
                await self._cancel_task(task.id)
                raise ToolError(
                    f"A person declined to answer the remote agent {self._name!r}; its task was "
                    f"cancelled. {answer.reason}"
                )
            if task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED:
                await link.answer(task, answer_parts(waiting, answer))
        return self._result_of(
            await link.followed(task, _progress_reporter(context), asked=waiting.asked)
        )

    def _result_of(self, task: Task) -> object:
        """Return the result of a task that no longer goes on by itself."""
        if task.status.state in ASKING:
            raise asked_by(self._name, task)
        if task.status.state == TaskState.TASK_STATE_COMPLETED:
            parts = [artifact.parts for artifact in task.artifacts]
            return _answer_content(parts or [task.status.message.parts])
        state = TaskState.Name(task.status.state).removeprefix("TASK_STATE_").lower()
        said = get_message_text(task.status.message)
        raise ToolError(f"The task of remote agent {self._name!r} is {state}. {said}".strip())

    async def _cancel_task(self, task_id: str) -> None:
        """Cancel a task, unless it is over or its server is gone."""
        with suppress(*FAILURES):
            async with self._open_link() as link:
                await link.cancel(task_id)

    def _open_link(self) -> AbstractAsyncContextManager[Link]:
        return linked(self._name, self._url, self._headers)


def _progress_reporter(context: ToolContext) -> Hear:
    """Return a function that reports the text of the answer so far, by its end."""
    chars, shown = 0, ""

    def hear(text: str, *, continues: bool) -> None:
        nonlocal chars, shown
        chars = chars + len(text) if continues else len(text)
        shown = f"{shown if continues else ''}{text}"[-SHOWN_MAX:]
        context.report(chars, None, shown)

    return hear


def _answer_content(said: Sequence[Sequence[Part]]) -> object:
    """Return the parts of an answer in a form that a tool may return; the data also as data."""
    parts: list[TextPart | MediaPart] = []
    for artifact in said:
        # The pieces of a streamed text are parts of one artifact.
        for streamed, pieces in groupby(artifact, key=lambda part: part.HasField("text")):
            if streamed:
                parts.append(TextPart("".join([part.text for part in pieces])))
            else:
                parts += [_part_of(part) for part in pieces]
    data = [
        _whole_numbers(MessageToDict(one.data))
        for each in said
        for one in each
        if one.HasField("data")
    ]
    texts = [one.text for one in parts if isinstance(one, TextPart)]
    content = "\n".join(texts) if len(texts) == len(parts) else parts
    if not data:
        return content
    return ToolReturn(content, data[0] if len(data) == 1 else data)


def _part_of(part: Part) -> TextPart | MediaPart:
    """Return a part of an answer; a URL is only named, and never loaded."""
    match part.WhichOneof("content"):
        case "raw" if not part.raw:
            return TextPart(f"[file {part.filename!r}: empty]")
        case "raw":
            return received(part.raw, part.media_type, part.filename)
        case "url":
            return TextPart(f"[file {part.filename!r} at {part.url}]")
        case _:
            return TextPart(
                json.dumps(_whole_numbers(MessageToDict(part.data)), ensure_ascii=False)
            )


def _whole_numbers(value: object) -> object:
    """Return JSON data with whole numbers as integers: the protocol has floats only."""
    match value:
        case dict():
            return {
                key: _whole_numbers(one) for key, one in cast("dict[str, object]", value).items()
            }
        case list():
            return [_whole_numbers(one) for one in cast("list[object]", value)]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value
