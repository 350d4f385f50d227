"""Desk: drives the runs of an agent for A2A, and tells their tasks what becomes of them.

Arguments travel as JSON text: a number in a data part is a float, and an approval holds for exactly
the arguments of its call.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, cast, final

from a2a.helpers import (
    get_data_parts,
    get_message_text,
    new_data_part,
    new_message,
    new_task,
    new_text_part,
)
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import InternalError, Message, Part, Task, TaskState

from ..a2a import message_part
from ..agent import Agent, RunResult, RunStream
from ..effects import IN_WORDS
from ..errors import RunBusy, UnknownRun
from ..media import MediaPart
from ..policy import Approval, decline, digest
from ..questions import Pending, question_in
from ..run import EndReason
from ..stores import OVER, Catalog, Store
from ..values import TextPart
from .a2a_answer import AnswerSender, ended_artifact
from .served import (
    WHOLE,
    RequestRefused,
    decision_of,
    deps_options,
    ended_result,
    question_about,
)

__all__ = ["Desk"]

LOG: Final = logging.getLogger("graphloop")
WAITING: Final = frozenset({"interrupted", "ready"})
"""The statuses of runs whose process was killed, or whose questions the operator has answered."""
ENDINGS: Final = {
    **dict.fromkeys(WHOLE, TaskState.TASK_STATE_COMPLETED),
    EndReason.ABORTED: TaskState.TASK_STATE_CANCELED,
}
"""The states of tasks by the end of their runs; any other end is a failure."""


@final
class Desk(AgentExecutor):
    """Drives the runs of an agent, and tells their tasks what becomes of them.

    Attributes:
        unsaved: the new tasks that memory does not have yet, whose runs may be ahead of them.
    """

    def __init__(
        self, agent: Agent[Any, Any], store: Store, deps: Callable[[str], object] | None
    ) -> None:
        self._agent, self._store, self._deps = agent, store, deps
        self.unsaved: set[str] = set()
        self._live: dict[str, tuple[RunStream[Any], asyncio.Task[None]]] = {}
        self._senders: dict[str, AnswerSender] = {}
        self._streams: dict[str, set[object]] = {}

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Start the run of a new task, or go on with a parked run by the answers of a message.

        The run has a task of its own, which the end of the server does not cancel: so the run's
        calls get their results, and its journal has its end.
        """
        message = context.message
        assert message is not None, "a task is executed for a message"
        run_id = message.task_id
        updater = TaskUpdater(event_queue, run_id, message.context_id)
        if context.current_task is None:
            self.unsaved.add(run_id)
            await event_queue.enqueue_event(_new_task(message))
        try:
            stream = await self._open_stream(run_id, message, new=context.current_task is None)
        except RequestRefused as error:
            asked = await self.waiting(run_id)
            await _ask_client(updater, asked, str(error), message.message_id)
            return
        except Exception as error:  # noqa: BLE001 - `deps` is the user's, and may raise any
            await _tell_failure(updater, error)
            return
        await updater.start_work()
        task = self._keep_live(run_id, stream, self._drive_run(updater, run_id, stream))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            stream.abort("the server stops")
            raise

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End the run of a task as aborted."""
        run_id, context_id = cast("str", context.task_id), cast("str", context.context_id)
        if await self.aborted(run_id):
            await TaskUpdater(event_queue, run_id, context_id).cancel()

    async def aborted(self, run_id: str) -> bool:
        """Abort a run that this process drives, or that is parked.

        Returns:
            Whether the run was parked, so that no task here has told its end.

        Raises:
            InternalError: the run could not be read or ended.
        """
        if (live := self._live.get(run_id)) is not None:
            live[0].abort("the client cancelled the task")
            await asyncio.wait([live[1]])
        if not await self.waiting(run_id):
            return False
        with _hide_errors(run_id):
            await self._agent.runs(self._store).cancel(run_id, "the client cancelled the task")
        return True

    def saved(self, task_id: str) -> None:
        """Note that memory has all that was told of a task."""
        self.unsaved.discard(task_id)
        if (sender := self._senders.get(task_id)) is not None:
            sender.arrive()

    def reads(self, stream: object, task_id: str) -> None:
        """Note that a client reads a stream of a task, until `leaves`."""
        self._streams.setdefault(task_id, set()).add(stream)

    def has_read(self, stream: object, task_id: str) -> None:
        """Note that a client has an event of a stream."""
        if (sender := self._senders.get(task_id)) is not None:
            sender.arrive(stream)

    def leaves(self, stream: object, task_id: str) -> None:
        """Note that a stream is over, or its client has left."""
        streams = self._streams.get(task_id, set())
        streams.discard(stream)
        self.has_read(stream, task_id)
        if not streams and task_id not in self._senders:
            self._streams.pop(task_id, None)

    async def settled(self) -> None:
        """Wait until no run is under way."""
        if self._live:
            await asyncio.wait([task for _, task in self._live.values()])

    async def waiting(self, run_id: str) -> tuple[Pending, ...]:
        """Return the questions that a run waits for; none for an unknown run.

        Raises:
            InternalError: the store could not read the run.
        """
        with suppress(UnknownRun), _hide_errors(run_id):
            return await self._agent.runs(self._store).waiting(run_id)
        return ()

    async def kept(self, run_id: str, context_id: str, known: Task | None) -> Task | None:
        """Return a task as the store has its run, which another process may drive.

        A run that waits for a process is resumed here, and works.

        Args:
            run_id: the id of both.
            context_id: the context of a task that this process does not know.
            known: the task as this process knows it, with its history; None if it does not.

        Returns:
            `known` if the store has no more to tell.

        Raises:
            InternalError: the store could not read the run.
        """
        if run_id in self.unsaved or run_id in self._senders:
            return known
        task = Task(id=run_id, context_id=context_id)
        if known is not None:
            task.CopyFrom(known)
            task.ClearField("status")
        status = await self._status_of(run_id)
        if status in WAITING and not self.drives(run_id):
            self._drive_alone(run_id)
        if status in WAITING or self.drives(run_id):
            task.status.state = TaskState.TASK_STATE_WORKING
            return task
        if status not in OVER and (asked := await self.waiting(run_id)):
            message = _asking_message(run_id, task.context_id, asked)
            if known is not None and known.status.message.parts[-1:] == message.parts[-1:]:
                return known  # Its message may also tell why an answer did not fit.
            task.status.state = TaskState.TASK_STATE_INPUT_REQUIRED
            task.status.message.CopyFrom(message)
            return task
        result = None
        with suppress(UnknownRun), _hide_errors(run_id):
            result = await ended_result(self._agent, self._store, run_id)
        if result is not None:
            task.status.state = ENDINGS.get(result.end_reason, TaskState.TASK_STATE_FAILED)
            task.ClearField("artifacts")
            if (answer := ended_artifact(result)) is not None:
                task.artifacts.append(answer)
        elif status == "running":
            task.status.state = TaskState.TASK_STATE_WORKING
        else:
            return known
        return task

    def drives(self, run_id: str) -> bool:
        """Whether this process drives a run."""
        return run_id in self._live

    async def _status_of(self, run_id: str) -> str:
        """Return the status of a run in the store; empty for an unknown run."""
        if not isinstance(self._store, Catalog):
            return ""
        with _hide_errors(run_id):
            records = await self._store.overview(run_id)
        (status,) = [one.status for one in records if one.run_id == run_id] or ("",)
        return status

    def _drive_alone(self, run_id: str) -> None:
        """Resume a run of which no client hears; the store tells its end."""
        with _hide_errors(run_id):
            options = deps_options(self._agent, self._deps, run_id)
        stream = self._agent.resume_stream(run_id, **options)
        self._keep_live(run_id, stream, _end_of(stream, run_id))

    def _keep_live(
        self, run_id: str, stream: RunStream[Any], driven: Coroutine[Any, Any, None]
    ) -> asyncio.Task[None]:
        """Start the task that drives a run, which is known until its end."""
        task = asyncio.create_task(driven)
        self._live[run_id] = stream, task
        task.add_done_callback(lambda _: self._live.pop(run_id, None))
        return task

    async def _open_stream(self, run_id: str, message: Message, *, new: bool) -> RunStream[Any]:
        """Return the stream of a new run, or of a parked run with the answers of a message."""
        options = deps_options(self._agent, self._deps, run_id)
        if new:
            return self._agent.stream(_prompt_in(message), run_id=run_id, **options)
        answers = _decisions_in(await self.waiting(run_id), message)
        return self._agent.resume_stream(run_id, approvals=answers, **options)

    async def _drive_run(self, updater: TaskUpdater, run_id: str, stream: RunStream[Any]) -> None:
        """Drive a run until it ends or parks, and tell its task so."""
        streams = self._streams.setdefault(run_id, set())
        sender = self._senders[run_id] = AnswerSender(updater, streams)
        try:
            result = await sender.send(stream)
        except RunBusy:
            asked = await self.waiting(run_id)
            await _ask_client(updater, asked, "This run is being driven already. Fix: ask again.")
        except Exception as error:  # noqa: BLE001 - a run's functions may raise any error
            await _tell_failure(updater, error)
        else:
            await _tell_end(updater, result)
        finally:
            del self._senders[run_id]
            if not streams:
                self._streams.pop(run_id, None)


@contextmanager
def _hide_errors(run_id: str) -> Generator[None]:
    """Tell a client only the type of an error of the store or of `deps`, but for an unknown run."""
    try:
        yield
    except UnknownRun:
        raise
    except Exception as error:
        LOG.exception("a served run could not be opened: %s", run_id)
        raise InternalError(type(error).__name__) from None


async def _end_of(stream: RunStream[Any], run_id: str) -> None:
    """Drive a run until it ends or parks; what it raises is logged."""
    try:
        await stream.result()
    except RunBusy:
        pass  # Another process was quicker.
    except Exception:
        LOG.exception("a served run failed: %s", run_id)


async def _tell_failure(updater: TaskUpdater, error: Exception) -> None:
    """Tell a task the type of an error: the message may hold what only the operator may read."""
    LOG.error("a served run failed: %s", updater.task_id, exc_info=error)
    await updater.failed(_agent_message(updater, f"run failed: {type(error).__name__}."))


async def _tell_end(updater: TaskUpdater, result: RunResult[Any]) -> None:
    """Tell a task how its run ended, or what it waits for."""
    if result.pending:
        await _ask_client(updater, result.pending)
        return
    state = ENDINGS.get(result.end_reason, TaskState.TASK_STATE_FAILED)
    failed = state == TaskState.TASK_STATE_FAILED
    why = _agent_message(updater, f"run ended: {result.end_reason}.") if failed else None
    await updater.update_status(state, why)


async def _ask_client(
    updater: TaskUpdater, asked: Sequence[Pending], problem: str = "", answer_id: str = ""
) -> None:
    """Ask, or ask again because of a problem with the message of an id."""
    message = _asking_message(updater.task_id, updater.context_id, asked, problem)
    if problem:  # An id that was answered would say that the answer is still under way.
        message.message_id = digest(f"{message.message_id}\0{problem}\0{answer_id}")
    await updater.requires_input(message)


def _asking_message(
    task_id: str, context_id: str, asked: Sequence[Pending], problem: str = ""
) -> Message:
    """Return the message of a task that asks; equal questions have one id, in each process."""
    message = new_message(_question_parts(asked, problem), context_id=context_id, task_id=task_id)
    message.message_id = digest(f"{task_id}\0{[(one.key, one.arguments) for one in asked]}")
    return message


def _question_parts(asked: Iterable[Pending], problem: str = "") -> list[Part]:
    """Return the parts that ask for approvals; calls of other kinds wait for the operator."""
    words: list[str] = []
    approvals: list[dict[str, str]] = []
    for one in asked:
        if one.kind == "approval":
            words.append(question_about(one))
            takes = {} if question_in(one) is None else {"takes": one.parameters}
            told = {"question": words[-1], **takes}
            approvals.append({"key": one.key, "tool": one.name, "arguments": one.arguments, **told})
        else:
            words.append(f"{one.name} ({one.key}) waits for a result on the server.")
    texts = [problem] if problem else []
    texts.append("\n".join(words))
    return [*map(new_text_part, texts), new_data_part({"approvals": approvals})]


def _prompt_in(message: Message) -> str | list[TextPart | MediaPart]:
    """Return the question of a message: its text, or its parts if some are data or files."""
    if all(part.HasField("text") for part in message.parts):
        return get_message_text(message)
    return [message_part(part) for part in message.parts]


def _decisions_in(asked: Sequence[Pending], message: Message) -> dict[str, Approval]:
    """Return the decisions in a client's message.

    Raises:
        RequestRefused: the message names no open question, an edit does not fit, or a call waits
            for no approval.
    """
    given: dict[str, object] = {}
    for data in cast("list[object]", get_data_parts(message.parts)):
        given |= cast("dict[str, object]", data) if isinstance(data, dict) else {}
    keys = [one.key for one in asked]
    if strange := sorted(given.keys() - keys):
        raise RequestRefused(f"expected answers to {keys}, found {strange}.")
    if any(one.kind != "approval" for one in asked):
        raise RequestRefused("A call waits for a result on the server.")
    text = get_message_text(message).strip()
    words = text or "The client did not approve."
    answers: dict[str, Approval] = {}
    for one in asked:
        answer = given.get(one.key)
        if isinstance(answer, dict):
            said = cast("dict[str, object]", answer)
            yes, reason, edit = said.get("approved"), said.get("reason"), said.get("edit")
            answers[one.key] = decision_of(one, yes, reason, edit)
        elif one.parameters == IN_WORDS and question_in(one) is not None and not given:
            said_so = json.dumps({"answer": words}, ensure_ascii=False)
            answers[one.key] = decision_of(one, yes=bool(text), reason=None, edit=said_so)
        else:
            answers[one.key] = decline(words)
    return answers


def _new_task(message: Message) -> Task:
    state = TaskState.TASK_STATE_SUBMITTED
    return new_task(message.task_id, message.context_id, state, history=[message])


def _agent_message(updater: TaskUpdater, text: str) -> Message:
    return updater.new_agent_message([new_text_part(text)])
