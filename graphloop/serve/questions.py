"""Questions: the approvals that a served run waits for, as forms of an MCP client's user.

MCP calls the exchange elicitation: https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation.
A form has plain fields only, so edited arguments travel as JSON text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp.server import ServerRequestContext

from ..policy import AS_IT_WAS, Approval, approve, decline
from ..questions import Pending, unfit

__all__ = ["Context", "RequestRefused", "approval_of", "elicited", "form_of"]

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


class RequestRefused(Exception):
    """A request that is answered by an error; the message is for the client."""


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
            _message(one), QUESTION, related_request_id=context.request_id
        )
        answers[one.key] = approval_of(one, answer)
    return answers


def form_of(asked: Pending) -> types.ElicitRequest:
    """Return the request that shows a client's user the form about a call."""
    form = types.ElicitRequestFormParams(message=_message(asked), requested_schema=QUESTION)
    return types.ElicitRequest(params=form)


def _message(asked: Pending) -> str:
    again = " It may have run already." if asked.unknown else ""
    return f"May {asked.name} run with {asked.arguments}?{again}"


def approval_of(asked: Pending, answer: object) -> Approval:
    """Return the decision in a client's answer; all but a clear yes denies the call.

    Raises:
        RequestRefused: edited arguments do not fit the tool, or the call may have run already.
    """
    if not isinstance(answer, types.ElicitResult) or answer.action != "accept":
        return decline("The client's user did not approve.")
    content = answer.content or {}
    reason, edit = content.get("reason"), content.get("edit")
    said = reason if isinstance(reason, str) else ""
    if content.get("approve") is not True:
        return decline(said)
    if not isinstance(edit, str) or not edit.strip():
        return approve(reason=said, token=asked.token)
    problem = AS_IT_WAS if asked.unknown else unfit(asked.name, asked.parameters, edit)
    if problem is not None:
        raise RequestRefused(f"`edit` of {asked.key}: {problem}")
    return approve(edit=edit, reason=said, token=asked.token)
