"""Questions: the approvals that a served run waits for, as forms of an MCP client's user.

MCP calls the exchange elicitation: https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation.
A form has plain fields only, so edited arguments travel as JSON text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, cast

import mcp_types as types
from mcp.server import ServerRequestContext

from ..policy import Approval, decline
from ..questions import Pending
from .served import decision_of, question_about

__all__ = ["Context", "approval_of", "elicited", "form_of", "request_headers"]

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


async def elicited(context: Context, asked: Iterable[Pending]) -> dict[str, bool | Approval] | None:
    """Ask the client's user about each call, while the request is open.

    Returns:
        The answers by the calls' keys; None if the client has no way to ask its user.

    Raises:
        RequestRefused: edited arguments do not fit the tool.
    """
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        return None
    answers: dict[str, bool | Approval] = {}
    for one in asked:
        answer = await context.session.elicit_form(
            question_about(one), QUESTION, related_request_id=context.request_id
        )
        answers[one.key] = approval_of(one, answer)
    return answers


def form_of(asked: Pending) -> types.ElicitRequest:
    """Return the request that shows a client's user the form about a call."""
    form = types.ElicitRequestFormParams(message=question_about(asked), requested_schema=QUESTION)
    return types.ElicitRequest(params=form)


def approval_of(asked: Pending, answer: object) -> Approval:
    """Return the decision in a client's answer; all but a clear yes denies the call.

    Raises:
        RequestRefused: edited arguments do not fit the tool, or the call may have run already.
    """
    if not isinstance(answer, types.ElicitResult) or answer.action != "accept":
        return decline("The client's user did not approve.")
    content = answer.content or {}
    return decision_of(asked, content.get("approve"), content.get("reason"), content.get("edit"))


def request_headers(context: Context) -> Mapping[str, str]:
    """Return the headers of an HTTP request, by which `caller` tells clients apart.

    There are none over stdio.
    """
    return cast("Mapping[str, str]", getattr(context.request, "headers", {}))
