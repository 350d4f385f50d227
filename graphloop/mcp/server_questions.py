"""Server questions: the questions of servers as questions of a run, and what a waiting call keeps.

Since 2026-07-28 a server ends a call that needs answers, and the call is sent again with them: its
state is all that a later process needs (`Rounds`). Until 2025-11-25 a server holds the call open,
so only the process that sent the call can answer (`HeldCall`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..effects import NO_ANSWER, ToolAnswer
from ..errors import ToolError
from ..tools import ToolAsks

__all__ = [
    "HeldCall",
    "Json",
    "Rounds",
    "Waiting",
    "answered",
    "next_question",
    "question",
    "response_to",
    "waiting_for",
]

Json: TypeAlias = dict[str, object]


class HeldCall(Struct, frozen=True, tag="held"):
    """A call that its server holds open, by a name that one connection of one process knows."""

    token: str


class Rounds(Struct, frozen=True, tag="rounds", omit_defaults=True):
    """A call that is sent again with answers.

    Attributes:
        number: how often the server has asked for answers.
        state: the server's own state, which is sent back as it is.
        asked: the server's name of the question that a person is asked.
        remaining: the questions that follow it, by the server's names.
        responses: the answers so far, by the server's names.
    """

    number: int
    state: str | None = None
    asked: str = ""
    remaining: dict[str, Json] = {}
    responses: dict[str, Json] = {}


Waiting: TypeAlias = HeldCall | Rounds


class _Field(Struct, frozen=True):
    default: object = msgspec.UNSET
    enum: list[object] = []


class _Form(Struct, frozen=True):
    properties: dict[str, _Field] = {}
    required: list[str] = []


def question(server: str, params: Mapping[str, object], waiting: Waiting) -> ToolAsks:
    """Return the exception that asks a person a server's question.

    Args:
        server: the server's name, which begins the text.
        params: the parameters of the server's request, as JSON data.
        waiting: what the call keeps until the answer comes.

    Raises:
        ToolError: the server asks by a form that is none.
    """
    text, takes = f"{server} asks: {params.get('message', '')}", NO_ANSWER
    if params.get("mode") == "url":
        text = f"{text} Open {params.get('url')} and say when you are done."
    else:
        takes = json.dumps(_form_of(server, params), ensure_ascii=False)
    return ToolAsks(text, takes, msgspec.json.encode(waiting).decode())


def _form_of(server: str, params: Mapping[str, object]) -> Json:
    """Return the schema of a form, in which no field with a default is required.

    Raises:
        ToolError: the server has sent no form.
    """
    sent = params.get("requestedSchema", {})
    try:
        form = msgspec.convert(sent, _Form)
    except msgspec.ValidationError as error:
        raise ToolError(f"MCP server {server!r} asks by a form that is none: {error}") from error
    known = {name for name, field in form.properties.items() if field.default is not msgspec.UNSET}
    needed = [name for name in form.required if name not in known]
    return {**cast("Json", sent), "required": needed} if known else cast("Json", sent)


def response_to(answer: ToolAnswer) -> Json:
    """Return a person's answer as the server's request wants it, with the form's defaults."""
    if not answer.approved:
        return {"action": "decline"}
    if answer.question.takes == NO_ANSWER:
        return {"action": "accept"}
    fields: dict[str, Json] = json.loads(answer.question.takes).get("properties", {})
    content = {name: field["default"] for name, field in fields.items() if "default" in field}
    return {"action": "accept", "content": content | json.loads(answer.content or "{}")}


def waiting_for(answer: ToolAnswer) -> Waiting:
    """Decode the state that a call of a server saved when it asked the answered question."""
    waiting: Waiting = msgspec.json.decode(answer.question.state, type=HeldCall | Rounds)
    return waiting


def next_question(server: str, rounds: Rounds) -> Rounds:
    """Return rounds without a question that is left.

    Raises:
        ToolAsks: a question is left, and a person is asked the first.
    """
    for key, params in rounds.remaining.items():
        remaining = {name: each for name, each in rounds.remaining.items() if name != key}
        raise question(server, params, replace(rounds, asked=key, remaining=remaining))
    return rounds


def answered(server: str, rounds: Rounds, response: Json) -> Rounds:
    """Return rounds with a person's answer; `ToolAsks` as for `next_question`."""
    responses = {**rounds.responses, rounds.asked: response}
    return next_question(server, replace(rounds, responses=responses))
