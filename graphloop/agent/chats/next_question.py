"""Next question: from the last question of a chat to the run of the next one.

An interrupted run is finished first, so that no question is lost and none is asked twice. A run
that waits for a person keeps the next question from being asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from ...errors import ConfigError, IllegalEvent, StoreError
from ...events import Setup
from ...questions import Pending
from ...rules import Monitor, Rules, TemporalRule
from ...run import History
from ...spending import Budget, ChatSoFar
from ...stores import Mailbox
from ...values import Message, UserMessage, evolve
from ..inputs import (
    AccessOptions,
    AnswersInput,
    ChatInput,
    MessageInput,
    PromptInput,
    QuestionInput,
    asked_message,
    messages_of,
    refuse_blank,
)
from ..options import refuse_unknown_options
from ..result import RunHandle
from ..resumption import waiting
from ..start_and_resume import for_call, resume_run, start_run
from ..terms import RunTerms
from .chain import Chain, Question

__all__ = ["Asked", "Asking", "ChatPrompt"]


GIVEN: Final = frozenset({*AnswersInput.__annotations__, *AccessOptions.__annotations__})
"""The fields that finish the last question; the others are options of the next one alone."""

ANSWERS: Final = ("approvals", "tool_results")
"""The fields of `AnswersInput` about the last question; other fields count for the next, too."""

ChatPrompt: TypeAlias = PromptInput | MessageInput | None
"""A question, or a user's message in any form that `load_messages` reads; None for none."""


class Asked(Struct, frozen=True):
    """A question whose run is ready to be driven.

    Args:
        handle: drives the run.
        number: the number of the question, from 1.
        before: the earlier runs of the chat.
    """

    handle: RunHandle[None]
    number: int
    before: ChatSoFar


class Asking(Struct, frozen=True):
    """Opens the runs of a chat's questions.

    Args:
        chain: the chain of the chat's runs.
        own: the terms of the agent's runs, with the store of the chat.
        budget: the budget of the whole chat; None for no limit.
        rules: the temporal rules of the whole chat, with their words resolved.
    """

    chain: Chain
    own: RunTerms[None]
    budget: Budget | None
    rules: tuple[TemporalRule, ...]

    @property
    def terms(self) -> RunTerms[None]:
        """The terms of the chat's runs; inside `Agent.override`, those that replace them."""
        return self.own.current

    async def open(
        self, last: Question | None, prompt: ChatPrompt, asking: ChatInput[Any], *, keep: bool
    ) -> Asked:
        """Return the run of a prompt, ready to be driven; without a prompt, that of the last one.

        An unfinished run before a prompt is driven to its end here.

        Args:
            last: the last question of the chat; None if the chat has none.
            prompt: the next question; None for the run of the last question.
            asking: answers to the calls that the last question waits for, and the options of the
                next question's run.
            keep: whether the stream keeps its parts for all readers.

        Raises:
            ConfigError: the prompt or an answer is invalid, the last question waits for an answer,
                or the budget is spent. Nothing was asked.
            Exception: the unfinished run was interrupted again; its failure is raised.
        """
        refuse_unknown_options(asking, ChatInput, "a question of a chat")
        if prompt is None:
            if last is None:
                raise ConfigError(
                    f"{self.chain.title}: expected its first question, found none. Fix: ask one."
                )
            answers = cast("AnswersInput[Any]", asking)
            resumed = resume_run(self.terms, last.run.id, answers, keep=keep)
            return Asked(await resumed.open_run(), last.number, last.before)
        asked = _user_message(prompt)
        others = {name: value for name, value in asking.items() if name not in ANSWERS}
        asked_on, options = for_call(self.terms, others)
        other_model = last is not None and last.run.setup.model != asked_on.setup.model
        given = GIVEN - {"model"} if other_model else GIVEN
        answers = cast(
            "AnswersInput[Any]", {name: value for name, value in asking.items() if name in given}
        )
        warnings = [last.warning] if last is not None and last.warning else []
        if last is not None and not last.run.ended:
            waited = await self._was_answered(last, answers)
            last = await self._finish_last(last, answers)
            if not waited:
                warnings = [f"run {last.run.id!r} of the question before was finished first"]
        elif handed := [name for name in ANSWERS if answers.get(name)]:
            raise ConfigError(
                f"{self.chain.title}: expected no answers, since its last question waits for none, "
                f"found {', '.join(handed)}. Fix: send the prompt alone."
            )
        number = 1 if last is None else last.number + 1
        before = await self._chat_so_far(last)
        setup = self._setup_of_next(asked_on.setup, before)
        terms = asked_on.evolved(setup=setup, chat=before)
        history: History[Message] = History()
        if last is not None:
            history = last.conversation(asked_on.options.instructions)
        run_id = self.chain.run_id(number)
        conversation = {"run_id": run_id, "messages": history.append(asked)}
        question = cast(
            "QuestionInput[Any]", {**options, **conversation}
        )  # mypy merges no TypedDicts.
        handle = await start_run(terms, None, None, question, keep=keep).open_run()
        warned = evolve(handle, warnings=(*handle.warnings, *warnings)) if warnings else handle
        return Asked(warned, number, before)

    async def _was_answered(self, last: Question, answers: AnswersInput[Any]) -> bool:
        """Return whether the last question waits for calls, each of which has its answer.

        Raises:
            ConfigError: a call has no answer; the message names it.
        """
        store = self.terms.shared.store()
        asked = await waiting(last.run, self.terms.ports(store))
        given = {*(answers.get("approvals") or ()), *(answers.get("tool_results") or ())}
        if isinstance(store, Mailbox):
            given |= (await store.posted(last.run.id)).keys()
        decides = self.terms.approver is not None
        left = [
            call
            for call in asked
            if call.key not in given and not (decides and call.kind == "approval")
        ]
        if left:
            raise self._not_over(last, left)
        return bool(asked)

    async def _finish_last(self, last: Question, answers: AnswersInput[Any]) -> Question:
        """Drive the run of the last question to its end, and return the question.

        A run that ends by an error is over, and the chat goes on after it.

        Raises:
            ConfigError: an answer is invalid, or the run waits for another answer.
            Exception: the run was interrupted again; its failure is raised.
        """
        resumed = resume_run(self.terms, last.run.id, answers, keep=False)
        await resumed.consume()
        run = resumed.run
        if run is not None and run.ended:
            return replace(last, run=run)
        result = await resumed.result()
        raise self._not_over(last, result.pending)

    def _not_over(self, last: Question, calls: Sequence[Pending]) -> ConfigError:
        listed = ", ".join(f"{call.name} ({call.key}, {call.kind})" for call in calls)
        return ConfigError(
            f"{self.chain.title}: expected its last question to be over, found that run "
            f"{last.run.id!r} waits for {listed or 'a driver'}. Fix: answer with "
            "send(approvals={key: True}) or send(tool_results={key: …}), then ask again."
        )

    async def _chat_so_far(self, last: Question | None) -> ChatSoFar:
        """Return what the earlier runs of the chat leave to the run of the next question."""
        states = await self._rule_states(last)
        if last is None:
            return ChatSoFar(self.chain.chat_id, states=states)
        return ChatSoFar(self.chain.chat_id, last.spent, states, last.heard)

    async def _rule_states(self, last: Question | None) -> tuple[int, ...]:
        """Return the state of each temporal rule of the chat after the last question.

        New rules are counted in the journals of all earlier questions.

        Raises:
            ConfigError: the rules are new, and an earlier question's journal cannot be read, or its
                graph was another one.
        """
        monitor = Monitor.of(Rules(self.rules))
        if last is None or not self.rules:
            return monitor.states
        known = last.run.watch.monitor.states
        if known and last.rules == self.rules:
            return known[len(known) - len(self.rules) :]
        for number in range(1, last.number + 1):
            try:
                monitor = await self.chain.counted(self.terms.shared.store(), number, monitor)
            except (IllegalEvent, StoreError) as error:
                raise ConfigError(
                    f"{self.chain.title}: expected `rules` that count all its questions, found "
                    f"that question {number} cannot be counted: {error}. Fix: open the chat with "
                    "the agent and the rules that it had, or start another chat."
                ) from error
        return monitor.states

    def _setup_of_next(self, setup: Setup, before: ChatSoFar) -> Setup:
        """Return the setup of the next question: with the chat's rules, and what its budget leaves.

        Raises:
            ConfigError: the budget of the chat is spent.
        """
        budget = self.budget
        if self.rules:
            setup = evolve(setup, watch=(*setup.watch, *self.rules))
        if budget is None:
            return setup
        if tripped := budget.tripped(before.spent):
            raise ConfigError(
                f"{self.chain.title}: expected something left of its budget, found that "
                f"it is spent ({', '.join(tripped)}). Fix: open the chat with a larger budget."
            )
        return evolve(setup, budget=setup.budget.tightened(budget.remaining(before.spent)))


def _user_message(prompt: PromptInput | MessageInput) -> UserMessage:
    """Return a prompt as a user's message.

    Raises:
        ConfigError: the prompt is neither text nor one message of a user.
    """
    if isinstance(prompt, str | Sequence):
        return asked_message(prompt)
    messages = messages_of([prompt], may_be_empty=True)
    match messages:
        case (UserMessage() as message,):
            return refuse_blank(message, "prompt")
        case _:
            found = ", ".join(message.role for message in messages) or "nothing"
            raise ConfigError(
                f"`prompt`: expected text, or one message of role user, found {found}. Fix: send "
                "only what the user says now; the chat has the earlier messages."
            )
