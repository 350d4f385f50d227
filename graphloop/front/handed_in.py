"""A conversation that is handed in with open calls, and the answers to them.

It names no run, so an approval is bound to what there is: the conversation, the call's place in
it, its tool and its arguments. That it is used once only a store can see to: there, a conversation
is taken up with approvals by one run, whose id is made of it, and an approval whose question a run
in the store has asked is the answer of that run, too. Without a store it can be used again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

from ..approvals import Approval, Capability, claimed, digest, issue, verify
from ..drivers.pending import Pending, bad_edit
from ..drivers.ports import Settler
from ..effects import AskHuman, CallTool
from ..errors import ConfigError, UnknownRun
from ..repair import open_calls, repaired
from ..stores.base import Mailbox, Store
from ..tool_outcome import ToolOutcome
from ..tools import Toolbox
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
from .answers import Answers, approval_of, outcome_of

__all__ = ["HandedIn", "bound", "conversation_digest"]

FOREIGN: Final = ("of another call", "for other arguments", "of another conversation")
"""What a token is that says what it is good for, and was put beside something else."""

BELOW: Final = (
    ". A call in a child run is in no conversation: resume(result, approvals=…) takes its answer"
)

ELSEWHERE: Final = "answered with a conversation that was handed in."


@final
@dataclass(frozen=True)
class HandedIn:
    """A conversation, and the answers to the calls that it ends in.

    Args:
        messages: the conversation, mended.
        answers: who approves what, and what client tools returned, by the calls' names.
        secret: signs the tokens of approvals.
        clock: seconds since the epoch.
    """

    messages: tuple[Message, ...]
    answers: Answers
    secret: bytes | None
    clock: Callable[[], float]

    @property
    def names(self) -> dict[str, str]:
        """By which names the open calls can be answered, and their keys.

        A call's name is its key, which is that of turn -1, or the provider's id; an id that several
        calls have names none of them, for who approves one has not seen the other.
        """
        waiting = {call_key(-1, place): call.id for place, call in open_calls(self.messages)}
        ids = Counter(waiting.values())
        own = {call_id: key for key, call_id in waiting.items() if call_id and ids[call_id] == 1}
        return {**{key: key for key in waiting}, **own}

    @property
    def approves(self) -> bool:
        """Whether anything is approved, so that the answers must not count twice."""
        return any(approval_of(one).approved for one in self.answers.approvals.values())

    @property
    def run_id(self) -> str:
        """The id of the run that takes the conversation up with approvals: always the same."""
        return f"handed-in-{conversation_digest(self.messages)[:32]}"

    def answer(self, key: str) -> object | None:
        """Return the decision about a call, under any of its names; None if there is none."""
        approvals = self.answers.approvals
        names = [name for name, one in self.names.items() if one == key]
        return next((approvals[one] for one in names if one in approvals), None)

    def is_approved(self, key: str) -> bool:
        """Whether a call is approved, by a token of its own where there is one."""
        asked = [(name, call) for name, call in self._asked() if self.names[name] == key]
        decided = self.answers.approvals
        return any(self._verified(approval_of(decided[n]), n, c).approved for n, c in asked)

    def check(self, toolbox: Toolbox) -> None:
        """Refuse answers that answer nothing, before anything is recorded.

        Args:
            toolbox: the tools that the open calls are of.

        Raises:
            ConfigError: one is of the wrong type, names no open call, or another than its token
                does, or has arguments that its tool refuses.
        """
        self.answers.refuse_wrong_types()
        known, given = self.names, self.answers
        for option, keys in (("approvals", given.approvals), ("tool_results", given.tool_results)):
            for key in keys:
                if key not in known:
                    raise ConfigError(
                        f"`{option}` answers {key!r}, which the conversation does not wait for, or "
                        "not once; its open calls are by their keys, and by ids that only one of "
                        f"them has: {', '.join(known) or 'none'}{BELOW if '/' in key else ''}"
                    )
        for name, call in self._asked():
            self._check_approval(f"approvals[{name!r}]", name, call, toolbox)

    def _check_approval(self, place: str, name: str, call: ToolCall, toolbox: Toolbox) -> None:
        approval = approval_of(self.answers.approvals[name])
        refusal = self._refusal(approval, name, call)
        if refusal in FOREIGN:
            raise ConfigError(
                f"{place} has a token that is {refusal}: answer with the `pending.approve()` that "
                "was made for this call and this conversation"
            )
        problem = bad_edit(call.name, "", approval.edit, toolbox)
        if problem is not None:
            raise ConfigError(f"{place}: the edited arguments fail: {problem}")

    async def once(self, store: Store) -> HandedIn:
        """Return the same with those approvals that are not used up, and use them up.

        Raises:
            ConfigError: a run in the store has taken the conversation up with approvals before.
            StoreError: the store cannot be read or written.
        """
        try:
            await store.load(self.run_id)
        except UnknownRun:
            pass
        else:
            raise ConfigError(
                f"run {self.run_id!r} has taken this conversation up with approvals before, and "
                "they count once: take up that run by `resume`, or go on with its messages"
            )
        left = dict(self.answers.approvals)
        for name, call in self._asked():
            approval = self._verified(approval_of(left[name]), name, call)
            if approval.approved and not await self._is_first(store, approval):
                left[name] = Approval(approved=False, reason="the approval is used.")
        return replace(self, answers=replace(self.answers, approvals=left))

    def settler(self) -> Settler:
        """Return what answers the open calls; no answer is a denial."""
        names, approvals = self.names, self.answers.approvals
        results = self.answers.tool_results

        def settle(effect: AskHuman | CallTool) -> Approval | ToolOutcome:
            keys = [name for name, key in names.items() if key == effect.key]
            if isinstance(effect, AskHuman):
                given = next((approvals[key] for key in keys if key in approvals), None)
                if given is None:
                    return Approval(approved=False, reason="nobody has answered.")
                return self._verified(approval_of(given), keys[0], effect.call)
            for key in keys:
                if key in results:
                    return outcome_of(results[key])
            return ToolOutcome("Not run: no result was handed in for this call.", "not_run")

        return settle

    def _asked(self) -> Iterator[tuple[str, ToolCall]]:
        """Yield the calls that somebody has decided about, by the names that were used."""
        names = self.names
        waiting = {call_key(-1, place): call for place, call in open_calls(self.messages)}
        for name in self.answers.approvals:
            yield name, waiting[names[name]]

    def _verified(self, approval: Approval, name: str, call: ToolCall) -> Approval:
        """Deny an approval whose token is not about this call at the end of this conversation."""
        refusal = self._refusal(approval, name, call)
        if not refusal:
            return approval
        return Approval(approved=False, reason=f"the approval is {refusal}.")

    def _refusal(self, approval: Approval, name: str, call: ToolCall) -> str:
        """Return why an approval does not approve this call, or nothing if it does."""
        if not approval.approved or not (approval.token or self.secret is not None):
            return ""
        claim, key = claimed(approval.token), self.names[name]
        if claim is None:
            return "malformed" if approval.token else "not signed"
        # Whichever run has asked: the place of the call in its turn is all that both know.
        expected = evolve(
            claim,
            path="",
            key=claim.key if _place(claim.key) == _place(key) else key,
            tool=call.name,
            digest=digest(call.arguments),
            conversation=conversation_digest(self.messages),
        )
        return verify(approval.token, expected, secret=self.secret, now=self.clock())

    async def _is_first(self, store: Store, approval: Approval) -> bool:
        """Answer the run that has asked, if it is in this store; whether nobody had before."""
        claim = claimed(approval.token)
        if claim is None or not isinstance(store, Mailbox):
            return True
        denial = Approval(approved=False, reason=ELSEWHERE)
        ((key, data),) = Answers({claim.key: denial}).posts(self.clock())
        try:
            posted = await store.post(claim.run_id, key, self.run_id, data)
        except UnknownRun:
            return True
        return posted != "answered"


def conversation_digest(messages: Sequence[Message]) -> str:
    """Return the SHA-256 of a conversation up to its last turn, in hexadecimal.

    It is that of what was said, called and answered, however it was written down: instructions
    at the beginning, reasoning and what wires add are no part of it.
    """
    whole = list(repaired(messages, keep_open=True).messages)
    while whole and isinstance(whole[0], SystemMessage):
        whole.pop(0)
    while whole and not isinstance(whole[-1], AssistantMessage):
        whole.pop()
    return digest(json.dumps([_told(one) for one in whole]))


def bound(pending: Pending, conversation: str, secret: bytes | None) -> Pending:
    """Return what is asked with a token that is good for this conversation, too."""
    claim = claimed(pending.token)
    if claim is None or pending.agents:
        return pending  # A child's call is in no conversation that could be handed in.
    capability: Capability = evolve(claim, conversation=conversation)
    return replace(pending, token=issue(capability, secret))


def _told(message: Message) -> tuple[object, ...]:
    match message:
        case AssistantMessage():
            calls = [(call.id, call.name, call.arguments) for call in message.calls]
            return ("assistant", message.text, calls)
        case ToolResult():
            return ("tool", message.call_id, message.text)
        case _:
            parts = message.content
            return (message.role, [("text", parts)] if isinstance(parts, str) else _parts(parts))


def _parts(parts: Sequence[UserPart]) -> list[tuple[str, ...]]:
    return [
        ("text", one.text) if isinstance(one, TextPart) else (one.type, *_fields(one))
        for one in parts
    ]


def _fields(part: UserPart) -> Iterator[str]:
    for name in part.__struct_fields__:
        yield str(getattr(part, name))


def _place(key: str) -> str:
    """Return the place of a call in its turn, from its key or that of a question asked again."""
    return key.partition("#")[0].rpartition(".")[2]
