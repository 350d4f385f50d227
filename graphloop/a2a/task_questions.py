"""Task questions: what a call keeps of its task, and the questions of a task as questions of a run.

A task that asks for approvals (`graphloop.serve.a2a_app`) asks a person for each of them, and takes
all decisions in one message. Another task that needs input takes an answer in words.
"""

from __future__ import annotations

import json
from typing import Final, cast

import msgspec
from a2a.helpers import (
    get_data_parts,
    get_message_text,
    get_text_parts,
    new_data_part,
    new_text_part,
)
from a2a.types import Part, Task, TaskState
from msgspec import Struct
from msgspec.structs import replace

from ..effects import IN_WORDS, NO_ANSWER, ToolAnswer
from ..tools import ToolAsks, kept
from .link import asked_id

__all__ = ["TaskKept", "answer_parts", "asked_by", "kept_of", "task_kept", "with_decision"]

DECISION: Final = json.dumps(
    {
        "type": "object",
        "properties": {
            "edit": {
                "type": "string",
                "description": "Arguments in place of the call's own: a JSON object.",
            }
        },
    }
)


class TaskKept(Struct, frozen=True, omit_defaults=True):
    """The facts of a task that the journal keeps: enough for any process to go on with it.

    Attributes:
        task: the task's id.
        context: the id of the task's context.
        asked: what `asked_id` says of the question; empty while the task does not ask.
        approval: the key of the approval that a person is asked for; empty for other questions.
        remaining: the questions about further approvals, by their keys.
        forms: the schemas of answers that are no decisions about a call, by their keys.
        given: the decisions so far, by their keys.
    """

    task: str
    context: str
    asked: str = ""
    approval: str = ""
    remaining: dict[str, str] = {}
    forms: dict[str, str] = {}
    given: dict[str, dict[str, object]] = {}


class _Form(Struct, frozen=True):
    properties: dict[str, dict[str, object]]
    required: list[str] = []


def kept_of(task: Task) -> ToolAsks:
    """Return the exception by which the journal keeps a task that goes on."""
    return kept(_waiting_text(TaskKept(task.id, task.context_id)))


def task_kept(answer: ToolAnswer) -> TaskKept:
    """Return what the journal has kept of a task."""
    return msgspec.json.decode(answer.question.state, type=TaskKept)


def asked_by(name: str, task: Task) -> ToolAsks:
    """Return the exception by which a task asks a person.

    Args:
        name: the tool's name, which begins the text.
        task: a task that needs input, or an authentication outside of the protocol.
    """
    said = task.status.message
    waiting, words = TaskKept(task.id, task.context_id, asked_id(task)), get_message_text(said)
    if task.status.state == TaskState.TASK_STATE_AUTH_REQUIRED:
        text = f"{name} needs an authentication: {words} Say when it is done."
        return ToolAsks(text, NO_ANSWER, _waiting_text(waiting))
    questions, forms = _approval_questions(task)
    if questions:
        told = get_text_parts(said.parts)[:-1]  # Why the last answer did not fit.
        return _next_question(name, replace(waiting, remaining=questions, forms=forms), *told)
    return ToolAsks(f"{name} asks: {words}", IN_WORDS, _waiting_text(waiting))


def with_decision(name: str, waiting: TaskKept, answer: ToolAnswer) -> TaskKept:
    """Return what is kept with a person's decision about an approval.

    Raises:
        ToolAsks: another approval is left, and a person is asked for it.
    """
    said: dict[str, object] = {"approved": answer.approved, "reason": answer.reason}
    content = answer.content or "{}"
    edit = content if waiting.approval in waiting.forms else json.loads(content).get("edit")
    if answer.approved and isinstance(edit, str):
        said["edit"] = edit
    waiting = replace(waiting, given={**waiting.given, waiting.approval: said})
    if waiting.remaining:
        raise _next_question(name, waiting)
    return waiting


def answer_parts(waiting: TaskKept, answer: ToolAnswer) -> list[Part]:
    """Return the parts of the message that answers a task."""
    if waiting.given:
        return [new_data_part(waiting.given)]
    return [new_text_part(str(json.loads(answer.content or "{}").get("answer", "")))]


def _next_question(name: str, waiting: TaskKept, *told: str) -> ToolAsks:
    key, text = next(iter(waiting.remaining.items()))
    remaining = {other: question for other, question in waiting.remaining.items() if other != key}
    return ToolAsks(
        "\n".join([*told, f"{name} asks: {text}"]),
        waiting.forms.get(key, DECISION),
        _waiting_text(replace(waiting, approval=key, remaining=remaining)),
    )


def _approval_questions(task: Task) -> tuple[dict[str, str], dict[str, str]]:
    """Return the questions of a task, and the schemas of answers in words, by the keys of both."""
    found: dict[str, str] = {}
    forms: dict[str, str] = {}
    for data in cast("list[object]", get_data_parts(task.status.message.parts)):
        asked = cast("dict[str, object]", data).get("approvals") if isinstance(data, dict) else None
        for one in cast("list[object]", asked if isinstance(asked, list) else []):
            if not isinstance(one, dict):
                continue
            said = cast("dict[str, object]", one)
            key, takes = said.get("key"), said.get("takes")
            if isinstance(key, str) and key:
                usual = f"Run {said.get('tool')} with {said.get('arguments')}?"
                found[key] = str(said.get("question", usual))
                if isinstance(takes, str) and _is_schema(takes):
                    forms[key] = takes
    return found, forms


def _is_schema(text: str) -> bool:
    """Whether a text of a stranger is the JSON Schema text of an object, field by field."""
    try:
        msgspec.json.decode(text, type=_Form)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _waiting_text(waiting: TaskKept) -> str:
    return msgspec.json.encode(waiting).decode()
