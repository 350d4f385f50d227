"""The chain of a chat: the runs of its questions in a store, numbered from 1 without gaps.

The run of question 7 of chat "user-42" has the id "user-42.7". Each run begins with the whole
conversation before it, as the model reads it. So the next question needs only the last run, and
each run can be replayed and resumed by itself. A store on disk keeps the messages that several
runs begin with once (`stores/beginnings.py`). `docs/decisions` has the reasons.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ...conversation import BLOCKED_NOTE
from ...errors import ConfigError, IllegalEvent, StoreError
from ...events import (
    AnswerChecked,
    CallbackReturned,
    Cancelled,
    ChildEnded,
    EffectFailed,
    EffectsStarted,
    Event,
    ModelReplied,
    Started,
    ToolAsked,
    ToolReturned,
)
from ...graph import NodeGraph
from ...replay import journal_happenings
from ...rules import Monitor, TemporalRule
from ...run import Ending, EndReason, History, Record, Run
from ...spending import ChatSoFar, Spent
from ...stores import (
    OVER,
    Catalog,
    Leases,
    Store,
    has_run,
    keep_all,
    renamed,
    state_after,
    those_of,
)
from ...values import AssistantMessage, Message, SystemMessage, TextPart, UserMessage, evolve
from ..final_answer import FINAL_ANSWER

__all__ = ["Chain", "Question"]

STRIDES: Final = 16
"""How many runs the search for a chat's last question asks for at once."""


class Question(Struct, frozen=True):
    """A question of a chat with its run.

    Args:
        number: the number of the question, from 1.
        run: the run of the question, as far as its journal goes.
        before: the earlier runs of the chat.
        new: the messages that the run began with after those of the earlier runs.
        warning: a warning for the next question; empty for none.
    """

    number: int
    run: Run[None]
    before: ChatSoFar
    new: tuple[Message, ...] = ()
    warning: str = ""

    @property
    def spent(self) -> Spent:
        """The spending of the chat up to the end of this run."""
        return self.before.spent + self.run.spent

    @property
    def rules(self) -> tuple[TemporalRule, ...]:
        """The chat's own temporal rules in this run: the last rules of its setup."""
        watch = self.run.setup.watch
        return watch[len(watch) - len(self.before.states) :]

    @property
    def heard(self) -> int:
        """The number of messages in `history`."""
        return len(self.run.messages) - _count_instructions(self.run.messages)

    @property
    def history(self) -> tuple[Message, ...]:
        """The conversation in the form that the model reads, without the agent's instructions."""
        return _without_instructions(self.run.messages)

    def conversation(self, instructions: object) -> History[Message]:
        """Return the conversation that the next question continues.

        The history is followed by the caller's messages that the run's model never read. It is not
        copied if the next question has the same instructions, since a chat has many messages.

        Args:
            instructions: the instructions of the next question: a text, a function or None.
        """
        inbox, heard = self.run.inbox, self.run.messages
        said = (SystemMessage(instructions),) if isinstance(instructions, str) else ()
        kept = heard if said == heard[: _count_instructions(heard)] else History(self.history)
        return kept.append(*inbox.steering, *inbox.follow_ups)


def _without_instructions(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return messages without the system messages that they begin with."""
    return tuple(messages[_count_instructions(messages) :])


def _count_instructions(messages: Sequence[Message]) -> int:
    """Return the number of system messages that messages begin with."""
    found = enumerate(messages)
    return next((at for at, one in found if not isinstance(one, SystemMessage)), len(messages))


class Chain(Struct, frozen=True):
    """The runs of one chat.

    Args:
        chat_id: the id of the chat.
        graph: the graph that its runs execute.
    """

    chat_id: str
    graph: NodeGraph[None]

    @property
    def title(self) -> str:
        """The chat in the words of an error message."""
        return f"chat {self.chat_id!r}"

    def run_id(self, number: int) -> str:
        """Return the id of the run of a question."""
        return f"{self.chat_id}.{number}"

    async def length(self, store: Store, known: int = 0) -> int:
        """Return the number of questions in the store.

        Each look into the store asks for several runs, so that the store answers a few looks.

        Args:
            store: the store of the chat.
            known: a number of questions that the chat surely has.
        """
        there, missing = known, 0  # 0: no missing question is known yet.
        while missing - there != 1:
            asked = (
                range(there + 1, missing, max(1, (missing - there) // STRIDES))
                if missing
                else [there + 2**power for power in range(STRIDES)]
            )
            found = await those_of(store, [self.run_id(number) for number in asked])
            for number in asked:
                if self.run_id(number) not in found:
                    missing = number
                    break
                there = number
        return there

    async def question(self, store: Store, number: int) -> Question:
        """Return a question with its run, from the store.

        An agent may change between two questions, so that its graph cannot replay an earlier run.
        If the store knows that this run is over, the answer in its last event is enough.

        Raises:
            StoreError: the journal cannot be read.
            ConfigError: the run with the id of the question is not one of a chat.
            IllegalEvent: the graph has changed, and the run is not over as far as the store knows.
        """
        run_id, warning = self.run_id(number), ""
        first, events, run, error = await self._read_question(store, number)
        if not _is_whole(run, events) and await _is_over(store, run_id):
            # Another driver may have ended the run meanwhile; now the journal is complete.
            first, events, run, error = await self._read_question(store, number)
            if not _is_whole(run, events):
                run = _fold_without_graph(first, events)
                warning = (
                    f"run {run_id!r} of the question before was made by an agent with another "
                    "graph: only its last answer is in the conversation, without its calls"
                )
        if run is None:
            assert error is not None, "a replay gives a run or an error"
            error.add_note(
                f"{self.title} cannot finish its question {number}. Fix: send() with the agent as "
                f"it was then, or go on without the question: chat.fork(at={number - 1})."
            )
            raise error
        before = first.chat or ChatSoFar()
        new = tuple(first.messages[_count_instructions(first.messages) + before.heard :])
        return Question(number, run, before, new, warning)

    async def _read_question(
        self, store: Store, number: int
    ) -> tuple[Started, Sequence[Event], Run[None] | None, Exception | None]:
        """Return the journal of a question with its run, or with the error of its replay.

        Raises:
            StoreError: the journal cannot be read.
            ConfigError: the run with the id of the question is not one of a chat.
        """
        run_id = self.run_id(number)
        events = await store.load(run_id)
        first = next(iter(events), None)
        if not isinstance(first, Started) or first.chat is None:
            raise ConfigError(
                f"{self.title}: expected the run of its question {number}, found run {run_id!r}, "
                "which no chat has started. Fix: open the chat by another id, or go on without "
                f"this run: chat.fork(at={number - 1})."
            )
        try:
            return first, events, state_after(self.graph, events), None
        except (IllegalEvent, StoreError) as error:
            return first, events, None, error

    async def counted(self, store: Store, number: int, monitor: Monitor) -> Monitor:
        """Return the monitor of temporal rules after the run of a question.

        Raises:
            StoreError: the journal cannot be read, or belongs to another graph.
            IllegalEvent: the graph has changed since the run.
        """
        events = await store.load(self.run_id(number))
        state_after(self.graph, events)
        for happenings in journal_happenings(self.graph, events):
            for happening in happenings:
                monitor = monitor.after(happening)
        return monitor

    def own(self, events: Sequence[Event], number: int) -> tuple[Event, ...]:
        """Return the journal of another chat's question as that of a question of this chat."""
        first, *others = renamed(events, self.run_id(number))
        if isinstance(first, Started) and first.chat is not None:
            first = evolve(first, chat=evolve(first.chat, id=self.chat_id))
        return (first, *others)

    async def copy(self, store: Store, chat_id: str, questions: int) -> None:
        """Copy the first questions to a new chat; a `Bulk` store saves all of them or none.

        Raises:
            ConfigError: the new chat exists.
            StoreError: a journal cannot be read or written.
        """
        other = Chain(chat_id, self.graph)
        if await has_run(store, other.run_id(1)):
            raise ConfigError(
                f"chat {chat_id!r}: expected an id that no chat of this store has, found a chat. "
                "Fix: give another id."
            )
        journals = {
            other.run_id(number): other.own(await store.load(self.run_id(number)), number)
            for number in range(1, questions + 1)
        }
        await keep_all(store, journals)
        if isinstance(store, Leases) and questions:
            # The status of the last run tells an agent with another graph that the run is over.
            await store.claim(other.run_id(questions))
            await store.release(other.run_id(questions), "done", ())


NO_VERDICT: Final = re.compile(r'false$|\{.*"passed":\s*false')
"""The answers of an agent that blocks what the user said."""


async def _is_over(store: Store, run_id: str) -> bool:
    """Whether the store has recorded that a run has ended, whatever its graph was."""
    return isinstance(store, Catalog) and (await store.record(run_id)).status in OVER


def _fold_without_graph(first: Started, events: Sequence[Event]) -> Run[None]:
    """Return the end of a run as its events tell it without a graph: its answer and its spending.

    Without the graph, the results of calls cannot be assigned to their calls. A question that a
    screen seems to have blocked is left out with its answer, because no model may read it.
    """
    replied = [event for event in events if isinstance(event, ModelReplied)]
    last = replied[-1].reply.message if replied else AssistantMessage(())
    typed = [call.arguments for call in last.calls if call.name == FINAL_ANSWER]
    text = "".join(typed[:1]) if last.calls else last.text
    answer = (AssistantMessage((TextPart(text),)),) if text else ()
    known = first.messages
    if _seems_blocked(events):
        new = len(_without_instructions(known)) - first.chat.heard if first.chat else 0
        note = UserMessage(BLOCKED_NOTE)
        known, answer = (*known[: len(known) - new], *[note] * new), ()
    return Run(
        id=first.run_id,
        node="END",
        state=None,
        setup=first.setup,
        at=events[-1].at,
        seq=len(events),
        messages=History((*known, *answer)),
        spent=_spent_in(events),
        record=Record(first.at, added=History(answer)),
        ending=Ending(EndReason.COMPLETED),
    )


def _is_whole(run: Run[None] | None, events: Sequence[Event]) -> bool:
    """Whether a replay led to the end of the run.

    A changed graph may take the verdict of a screen for an answer that another node cannot use.
    """
    if run is None or not run.ended:
        return False
    failed = run.ending is not None and run.ending.reason is EndReason.ERROR
    return not (failed and _seems_blocked(events[-1:]))


def _seems_blocked(events: Sequence[Event]) -> bool:
    """Whether the last reply or verdict of a run that is over rejects, and no answer is kept."""
    for event in reversed(events):
        match event:
            case CallbackReturned(answer=AnswerChecked(accepted=accepted, retry=retry)):
                return retry and not accepted
            case ChildEnded(status="ok", content=said):
                return NO_VERDICT.match(said) is not None
            case ModelReplied():
                return False
            case _:
                pass
    return False


def _spent_in(events: Sequence[Event]) -> Spent:
    """Return the spending of a run without its graph; each child run counts as an agent call."""
    spent = Spent()
    for event in events:
        match event:
            case ModelReplied():
                spent = spent.with_model_call(event.reply.usage, event.cost_usd, 0.0)
            case ToolReturned():
                spent += event.spent + Spent(tool_calls=1)
            case ChildEnded():
                spent += event.spent + Spent(agent_calls=1)
            case EffectFailed() | EffectsStarted() | Cancelled() | ToolAsked():
                spent += event.spent
            case _:
                pass
    return spent
