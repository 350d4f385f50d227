"""MCP forms: the questions of a served run, as forms that an MCP client shows its user.

MCP calls the exchange elicitation: https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation.
A form has plain fields only, so edited arguments travel as JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, TypeAlias, cast

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError

from ..effects import IN_WORDS
from ..policy import Approval, decline
from ..questions import Pending, question_in
from .served import RequestRefused, decision_of, question_about

__all__ = ["Context", "approval_of", "elicited", "form_of"]

Context: TypeAlias = ServerRequestContext[dict[str, Any], Any]

QUESTION: Final[types.ElicitRequestedSchema] = {
    "type": "object",
    "properties": {
        "approve": {"type": "boolean", "description": "Whether the call may run."},
        "reason": {"type": "string", "description": "Why; the model reads it."},
        "edit": {
            "type": "string",
            "description": "Arguments in place of the call's own: a JSON object.",
        },
    },
    "required": ["approve"],
}
PLAIN: Final = ("string", "number", "integer", "boolean")
"""The types of a form's fields."""
NESTED: Final = "json"
"""The field of an answer that has other types than a form may have."""
FORMS_MAX: Final = 3
"""How often a user sees the form about one call; edits that never fit deny the call."""


async def elicited(context: Context, asked: Iterable[Pending]) -> dict[str, bool | Approval] | None:
    """Ask the client's user about each call, while the request is open.

    Returns:
        The answers by the calls' keys; None if the client has no way to ask its user.
    """
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        return None
    return {one.key: await _ask_user(context, one) for one in asked}


async def _ask_user(context: Context, asked: Pending) -> Approval:
    """Ask about a call, and once more about each edit that does not fit."""
    problem = ""
    for _ in range(FORMS_MAX):
        try:
            answer: object = await context.session.elicit_form(
                _form_text(asked, problem),
                _form_fields(asked),
                related_request_id=context.request_id,
            )
        except MCPError:
            answer = None  # The client failed to ask.
        try:
            return approval_of(asked, answer)
        except RequestRefused as error:
            problem = str(error)
    return decline(problem)


def form_of(asked: Pending, problem: str = "") -> types.ElicitRequest:
    """Return the request that shows a client's user the form about a call.

    Args:
        asked: the call.
        problem: why the last answer does not fit, if the form is shown again.
    """
    form = types.ElicitRequestFormParams(
        message=_form_text(asked, problem), requested_schema=_form_fields(asked)
    )
    return types.ElicitRequest(params=form)


def _form_text(asked: Pending, problem: str) -> str:
    return f"{problem}\n{question_about(asked)}".lstrip()


def _form_fields(asked: Pending) -> types.ElicitRequestedSchema:
    """Return the fields of a form: those of a question's answer, else those of a decision."""
    if question_in(asked) is None:
        return QUESTION
    if (fields := _plain_fields(asked)) is not None:
        needed = json.loads(asked.parameters).get("required", [])
        return {"type": "object", "properties": fields, "required": needed}
    told = f"A JSON object that fits this schema: {asked.parameters}"
    fields = {NESTED: {"type": "string", "description": told}}
    return {"type": "object", "properties": fields, "required": [NESTED]}


def _plain_fields(asked: Pending) -> dict[str, Any] | None:
    """Return the fields of a question's answer; None if a form may not have them."""
    fields: dict[str, Any] = json.loads(asked.parameters).get("properties", {})
    if asked.parameters == IN_WORDS:
        del fields["question"]  # The answer need not repeat it.
    known = [cast("dict[str, Any]", one) for one in fields.values() if isinstance(one, dict)]
    plain = [field for field in known if field.get("type") in PLAIN]
    return fields if len(plain) == len(fields) else None


def approval_of(asked: Pending, answer: object) -> Approval:
    """Return the decision in a client's answer; all but a clear yes denies the call.

    Raises:
        RequestRefused: the answer or the edit does not fit, or the call may have run already.
    """
    if not isinstance(answer, types.ElicitResult) or answer.action != "accept":
        return decline("The client's user did not approve.")
    content = answer.content or {}
    if question_in(asked) is not None:
        nested = _plain_fields(asked) is None
        said = content.get(NESTED) if nested else json.dumps(content, ensure_ascii=False)
        return decision_of(asked, True, None, said)  # noqa: FBT003 - `yes` is what a client said
    return decision_of(asked, content.get("approve"), content.get("reason"), content.get("edit"))
