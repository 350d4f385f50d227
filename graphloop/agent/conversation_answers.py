"""Answers to the open calls at the end of a conversation that a caller passes as `messages`.

Such a conversation does not name its run. A token is therefore bound to the conversation, and to
the place, tool and arguments of its call. With a store, the id of the new run is derived from the
conversation, so the approvals count only once. Without a store they count each time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final, final

from msgspec import Struct

from ..conversation import open_calls, repaired
from ..driver import GivenAnswer
from ..effects import AskHuman, CallTool
from ..errors import ConfigError
from ..policy import Approval, Capability, claimed, digest, issue, verify
from ..questions import Pending, bad_edit
from ..stores import Store, those_within
from ..tools import Toolbox, ToolOutcome
from ..values import (
    AssistantMessage,
    Message,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserPart,
    call_key,
    evolve,
)
from .answers import Answers, approval_from, outcome_of

__all__ = ["ConversationAnswers", "bind_token", "conversation_digest"]

FOREIGN: Final = ("of another call", "for other arguments", "of another conversation")
"""The refusals of a valid token that belongs to another call or conversation."""

IN_A_CHILD: Final = ". Fix: answer a call of a child run by resume(result, approvals=…)"


@final
class ConversationAnswers(Struct, frozen=True):
    """A conversation, with answers to the open calls at its end.

    Args:
        messages: the repaired conversation.
        answers: approvals and client tool results, each by the key or provider id of its call.
        secret: the key that signs approval tokens, or None.
        clock: returns the seconds since the epoch.
    """

    messages: tuple[Message, ...]
    answers: Answers
    secret: bytes | None
    clock: Callable[[], float]

    @property
    def calls(self) -> dict[str, ToolCall]:
        """The open calls by key; each key contains -1 as the number of the turn."""
        return {call_key(-1, place): call for place, call in open_calls(self.messages)}

    @property
    def names(self) -> dict[str, str]:
        """Maps each accepted name of an open call, its key or its unique provider id, to its key.

        An id that several calls share is left out, because a person approves only one call.
        """
        calls = self.calls
        ids = Counter(call.id for call in calls.values())
        own = {call.id: key for key, call in calls.items() if call.id and ids[call.id] == 1}
        return {**{key: key for key in calls}, **own}

    def check(self, toolbox: Toolbox, agents: Collection[str]) -> None:
        """Raise an error for answers that would have no effect, before any event is recorded.

        Args:
            toolbox: the tools of the open calls.
            agents: the names of the agents that models can call.

        Raises:
            ConfigError: an answer has a wrong type, names no open call, has the token of another
                call or arguments that its tool refuses; a result is for a tool that runs here; or a
                call of an agent is open.
        """
        self._refuse_agents(agents)
        self.answers.refuse_wrong_types()
        known, given = self.names, self.answers
        tools = {name: toolbox.get(self.calls[key].name) for name, key in known.items()}
        clients = [name for name, one in tools.items() if one and one.spec.kind == "client"]
        for option, keys, takes, kind in (
            ("approvals", given.approvals, known, ""),
            ("tool_results", given.tool_results, clients, " of a client tool"),
        ):
            for key in keys:
                if key not in takes:
                    raise ConfigError(
                        f"`{option}`: expected the key or the unique id of an open call{kind} "
                        f"({', '.join(takes) or 'none'}), found {key!r}"
                        f"{IN_A_CHILD if '/' in key else ''}"
                    )
        for name, decision in given.approvals.items():
            self._check_approval(name, approval_from(decision), toolbox)

    def _refuse_agents(self, agents: Collection[str]) -> None:
        """Raise an error if a call of an agent is open: its child run may have started already."""
        for key, call in self.calls.items():
            if call.name in agents:
                raise ConfigError(
                    f"`messages`: the call {key} of agent {call.name!r} is open, and may have "
                    "started a child run, which must not start twice. Fix: resume the run of the "
                    "conversation by resume(result, approvals=…). If that run is gone, answer the "
                    "call by a message of role tool."
                )

    def _check_approval(self, name: str, approval: Approval, toolbox: Toolbox) -> None:
        place, call = f"approvals[{name!r}]", self.calls[self.names[name]]
        refusal = self._token_flaw(approval, name)
        if refusal in FOREIGN:
            raise ConfigError(
                f"{place} has a token that is {refusal}. Fix: answer with the `pending.approve()` "
                "of this call and this conversation."
            )
        problem = bad_edit(call.name, "", approval.edit, toolbox)
        if problem is not None:
            raise ConfigError(f"{place}: the edited arguments fail: {problem}")

    async def run_id(self, agent: str, store: Store) -> str | None:
        """Derive a run id from the conversation if a call is approved; otherwise return None.

        The id depends only on the agent and the conversation, so the store refuses a second run.

        Raises:
            ConfigError: the store already has a run with this id.
            StoreError: the store cannot be read.
        """
        given = self.answers.approvals
        if not any(self._check_token(approval_from(given[name]), name).approved for name in given):
            return None
        run_id = f"handed-in-{digest(json.dumps([agent, conversation_digest(self.messages)]))[:32]}"
        if await those_within(store, run_id):
            raise ConfigError(
                f"`approvals`: expected them to count once, found that run {run_id!r} has taken "
                f"this conversation up with approvals. Fix: resume({run_id!r}), or go on with its "
                "messages."
            )
        return run_id

    def given_answer(self) -> GivenAnswer:
        """Return a function that maps the effect of an open call to its approval or result.

        The function declines a question without an answer. A client tool call without a result is
        answered as not run.
        """
        names, approvals = self.names, self.answers.approvals
        results = self.answers.tool_results

        def given_answer(effect: AskHuman | CallTool) -> Approval | ToolOutcome:
            own = [name for name, key in names.items() if key == effect.key]
            if isinstance(effect, AskHuman):
                name = next((name for name in own if name in approvals), None)
                if name is None:
                    return Approval(approved=False, reason="no person has answered.")
                return self._check_token(approval_from(approvals[name]), name)
            for name in own:
                if name in results:
                    return outcome_of(results[name])
            return ToolOutcome("Not run: no result was handed in for this call.", "not_run")

        return given_answer

    def _check_token(self, approval: Approval, name: str) -> Approval:
        """Return the approval, or a decline if the approval's token is not valid for the call."""
        refusal = self._token_flaw(approval, name)
        if not refusal:
            return approval
        return Approval(approved=False, reason=f"the approval is {refusal}.")

    def _token_flaw(self, approval: Approval, name: str) -> str:
        """Return the reason why an approval's token is invalid for its call; empty if valid."""
        if not approval.approved or not (approval.token or self.secret is not None):
            return ""
        claim, key = claimed(approval.token), self.names[name]
        if claim is None:
            return "malformed" if approval.token else "not signed"
        # The conversation does not tell the original run and turn, so they are not compared.
        expected = evolve(
            claim,
            path="",
            key=claim.key if _place_of_key(claim.key) == _place_of_key(key) else key,
            tool=self.calls[key].name,
            digest=digest(self.calls[key].arguments),
            conversation=conversation_digest(self.messages),
        )
        return verify(approval.token, expected, secret=self.secret, now=self.clock())


def conversation_digest(messages: Sequence[Message]) -> str:
    """Return the SHA-256 of a conversation up to its last model reply, in hexadecimal.

    The digest covers texts, calls and results. It leaves out leading system messages, reasoning
    and provider-specific fields, because callers often drop these.
    """
    whole = list(repaired(messages, keep_open=True).messages)
    while whole and isinstance(whole[0], SystemMessage):
        whole.pop(0)
    while whole and not isinstance(whole[-1], AssistantMessage):
        whole.pop()
    return digest(json.dumps([_compared_content(message) for message in whole]))


def bind_token(pending: Pending, conversation: str, secret: bytes | None) -> Pending:
    """Return the pending question with its token also bound to this conversation digest."""
    claim = claimed(pending.token)
    if claim is None or pending.agents:
        return pending  # No conversation contains calls of child runs.
    capability: Capability = evolve(claim, conversation=conversation)
    return replace(pending, token=issue(capability, secret))


def _compared_content(message: Message) -> tuple[object, ...]:
    match message:
        case AssistantMessage():
            calls = [(call.id, call.name, call.arguments) for call in message.calls]
            return ("assistant", message.text, calls)
        case ToolResult():
            return ("tool", message.call_id, message.text)
        case _:
            parts = message.content
            return (
                message.role,
                [("text", parts)] if isinstance(parts, str) else _compared_parts(parts),
            )


def _compared_parts(parts: Sequence[UserPart]) -> list[tuple[str, str]]:
    # Names and exact types are left out: the forms of other libraries drop some of them.
    return [
        ("text", part.text) if isinstance(part, TextPart) else (part.type, part.identity)
        for part in parts
    ]


def _place_of_key(key: str) -> str:
    """Extract the position of a call in its turn from the call's key or its question's key."""
    return key.partition("#")[0].rpartition(".")[2]
